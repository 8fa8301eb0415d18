"""Streamable HTTP: real servers in both eras of the protocol, and what else answers on a URL.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from shared.errors import MCPConnectionError, MCPProtocolError, MCPTimeoutError
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.limits import MESSAGE_BYTES
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import (
    INITIALIZED,
    Answer,
    Seen,
    demo,
    error_of,
    http_server,
    json_answer,
    result_of,
    scripted,
    self_signed,
    server,
    until,
)

SETTINGS = UpstreamSettings()
KEY = "sk-live-5f4dcc3b5aa765d6"


def said(result: Any) -> str:
    return str(result.content[0].text)


def at(url: str, **fields: Any) -> ServerConfig:
    return server(transport="http", url=url, **fields)


async def plain(seen: Seen) -> Answer | None:
    """A server without sessions that answers JSON; 405 to anything but POST."""
    if seen.method != "POST":
        return 405, {}, b""
    answer = scripted(seen.message)
    return (202, {}, b"") if answer is None else json_answer(answer)


@pytest.mark.parametrize("kind", ["sdk", "fastmcp"])
@pytest.mark.parametrize("era", ["http", "legacy-http"])
def test_real_servers_in_both_eras(kind: str, era: str) -> None:
    """HoloDeck US6, US8. A session only in the older era; its id is shown by its start."""

    async def main(port: int) -> None:
        async with ServerConnection(at(f"http://127.0.0.1:{port}/mcp"), SETTINGS) as web:
            assert {"echo", "add", "steps"} <= {tool.name for tool in web.tools}
            assert [prompt.name for prompt in web.prompts] == ["greet"]
            assert said(await web.call_tool("echo", {"text": "é😀日本"})) == "é😀日本"
            results = await asyncio.gather(*(web.call_tool("echo", {"text": str(n)}) for n in range(20)))
            assert [said(one) for one in results] == [str(n) for n in range(20)]
            steps: list[tuple[float, float | None, str | None]] = []
            await web.call_tool("steps", {"count": 3}, on_progress=lambda *step: steps.append(step))
            assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
            if era == "http":
                assert web.session_id is None
            else:
                assert web.session_id is not None
                assert len(web.session_id) == 9
        assert web.state is ServerState.DISCONNECTED

    with demo(kind, era) as (port, _):
        asyncio.run(main(port))


@pytest.mark.parametrize("era", ["http", "legacy-http"])
def test_logs_find_their_call_among_many(era: str) -> None:
    """Each request has a stream of its own, so a line belongs to one call, however many run."""

    async def main(port: int) -> None:
        async with ServerConnection(at(f"http://127.0.0.1:{port}/mcp"), SETTINGS) as web:
            seen: list[list[str]] = [[] for _ in range(5)]

            async def steps(count: int) -> None:
                await web.call_tool("steps", {"count": count}, on_log=lambda _, text: seen[count].append(text))

            await asyncio.gather(*(steps(count) for count in range(5)))
            assert [len(lines) for lines in seen] == [0, 1, 2, 3, 4]

    with demo("sdk", era) as (port, _):
        asyncio.run(main(port))


@pytest.mark.parametrize("era", ["http", "legacy-http"])
def test_changed_list_is_seen_in_both_eras(era: str) -> None:
    """Row 7. The newer era tells only those that listen."""

    async def main(port: int) -> None:
        async with ServerConnection(at(f"http://127.0.0.1:{port}/mcp"), SETTINGS) as web:
            await asyncio.sleep(0.3)
            assert said(await web.call_tool("grow", timeout=5)) == "grown"
            await until(lambda: "late" in web.tools_by_name)

    with demo("sdk", era) as (port, _):
        asyncio.run(main(port))


@pytest.mark.parametrize("era", ["http", "legacy-http"])
def test_server_killed_between_two_calls_and_started_again(era: str) -> None:
    """Must show: the second call works without restarting the app. Row 18: the old session is forgotten."""

    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        with demo("sdk", era) as (port, _):
            config = at(f"http://127.0.0.1:{port}/mcp")
            assert said(await pool.call(config, "counter")) == "1"
        started = time.perf_counter()
        with pytest.raises(MCPConnectionError):
            await pool.call(config, "counter")
        assert time.perf_counter() - started < 3
        assert pool.status(config).state is ServerState.ERROR
        with demo("sdk", era, port):
            assert said(await pool.call(config, "counter")) == "1"
            assert said(await pool.call(config, "counter")) == "2"
            assert pool.status(config).connected
        await pool.close()

    asyncio.run(main())


def test_server_killed_during_a_call() -> None:
    """Rows 4, 5: a bounded error; other calls are not cancelled; what came of it is said to be unknown."""

    async def main() -> None:
        with demo("sdk", "http") as (port, process):
            async with ServerConnection(at(f"http://127.0.0.1:{port}/mcp"), SETTINGS) as web:
                calls = [asyncio.create_task(web.call_tool("sleep", {"seconds": 60})) for _ in range(3)]
                await asyncio.sleep(0.3)
                started = time.perf_counter()
                process.kill()
                results = await asyncio.gather(*calls, return_exceptions=True)
                assert time.perf_counter() - started < 3
                assert all(isinstance(one, MCPConnectionError) for one in results)
                assert "no longer available" in str(results[0])
                assert "unknown" in str(results[0])

    asyncio.run(main())


def test_stream_that_breaks_off() -> None:
    """Row 5: the socket closes in the middle of an event stream."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/call":

                async def parts() -> AsyncGenerator[bytes]:
                    yield b": hello\n\ndata: {"

                return 200, {"content-type": "text/event-stream"}, parts()
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as broken:
            with pytest.raises(MCPConnectionError, match="broke off during the call of 'work'"):
                await broken.call_tool("work", timeout=10)
            assert broken.state is ServerState.CONNECTED

    asyncio.run(main())


def test_refused_connection_is_seen_at_once() -> None:
    """Section 2.9: no wait for the whole time when nobody listens."""

    async def main() -> None:
        closed = ServerConnection(at("http://127.0.0.1:9/mcp"), SETTINGS)
        started = time.perf_counter()
        with pytest.raises(MCPConnectionError, match="cannot be reached: ConnectError"):
            await closed.connect()
        assert time.perf_counter() - started < 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [401, 403])
def test_refused_credentials_are_named(status: int) -> None:
    """Row 3: bounded, with the status. Row 16: no other transport is tried."""

    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            return status, {"content-type": "text/plain"}, f"bad key {KEY}".encode()

        async with http_server(handler) as web:
            refused = ServerConnection(at(web.url, headers={"Authorization": f"Bearer {KEY}"}), SETTINGS)
            started = time.perf_counter()
            with pytest.raises(MCPConnectionError, match=f"HTTP {status} .*credentials") as error:
                await refused.connect()
            assert time.perf_counter() - started < 1
            assert KEY not in str(error.value)
            assert "[redacted]" in str(error.value)
            assert {seen.method for seen in web.seen} == {"POST"}
            assert {seen.headers["authorization"] for seen in web.seen} == {f"Bearer {KEY}"}

    asyncio.run(main())


def test_post_500_is_no_reason_for_another_transport() -> None:
    """Rows 16, 19."""

    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            return 500, {}, b"boom"

        async with http_server(handler) as web:
            with pytest.raises(MCPConnectionError, match="HTTP 500 Internal Server Error: boom"):
                await ServerConnection(at(web.url), SETTINGS).connect()
            assert {seen.method for seen in web.seen} == {"POST"}

    asyncio.run(main())


def test_post_400_shows_what_was_said() -> None:
    """Row 16: 400 with a body."""

    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            return 400, {"content-type": "text/plain"}, b"the header X-Tenant is missing"

        async with http_server(handler) as web:
            with pytest.raises(
                MCPConnectionError, match="HTTP 400 Bad Request: the header X-Tenant is missing"
            ):
                await ServerConnection(at(web.url), SETTINGS).connect()
            assert {seen.method for seen in web.seen} == {"POST"}

    asyncio.run(main())


@pytest.mark.parametrize("status", [404, 405])
def test_older_server_is_found_by_its_event_stream(status: int) -> None:
    """Row 16: POST refused, GET answers events."""

    async def main() -> None:
        answers: asyncio.Queue[bytes] = asyncio.Queue()

        async def handler(seen: Seen) -> Answer | None:
            import json

            if seen.method == "GET":

                async def stream() -> AsyncGenerator[bytes]:
                    yield b"event: endpoint\ndata: /messages?session_id=abcdef0123456789\n\n"
                    while True:
                        yield await answers.get()

                return 200, {"content-type": "text/event-stream"}, stream()
            if seen.path.startswith("/messages"):
                if (answer := scripted(seen.message)) is not None:
                    answers.put_nowait(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())
                return 202, {}, b""
            return status, {}, b""

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as older:
            assert said(await older.call_tool("work")) == "done"
            assert older.session_id == "abcdef01…"
            assert f"HTTP {status}" in older.log()

    asyncio.run(main())


def test_both_transports_refused_tells_what_each_said() -> None:
    """Row 16: the first error is kept. A 404 on the first POST is no ended session (row 18)."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            return (404 if seen.method == "POST" else 503), {}, b""

        async with http_server(handler) as web:
            with pytest.raises(
                MCPConnectionError, match="HTTP 404 Not Found; tried as HTTP with SSE as well: HTTP 503"
            ):
                await ServerConnection(at(web.url), SETTINGS).connect()

    asyncio.run(main())


def test_page_in_the_place_of_an_answer() -> None:
    """Row 19: seen at once, not after the whole time."""

    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            return 200, {"content-type": "text/html"}, b"<html><title>Sign in</title></html>"

        async with http_server(handler) as web:
            started = time.perf_counter()
            with pytest.raises(
                MCPConnectionError, match=r"the answer is text/html, not JSON or an event stream"
            ):
                await ServerConnection(at(web.url), SETTINGS).connect()
            assert time.perf_counter() - started < 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [400, 404, 405, 406])
def test_optional_stream_may_be_missing(status: int) -> None:
    """Row 17. Row 15: a server that takes POST only."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "GET":
                return status, {}, b""
            answer = await plain(seen)
            if answer is not None and seen.method == "POST" and seen.message["method"] == "initialize":
                return answer[0], {**answer[1], "mcp-session-id": "s-1"}, answer[2]
            return answer

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as simple:
            await until(lambda: any(seen.method == "GET" for seen in web.seen))
            assert [tool.name for tool in simple.tools] == ["work"]
            assert said(await simple.call_tool("work")) == "done"
            assert simple.state is ServerState.CONNECTED

    asyncio.run(main())


def sessions(forget: int) -> Any:
    """A server with sessions that forgets each after so many calls; 0: before the first."""
    state = {"ids": 0, "calls": 0}

    async def handler(seen: Seen) -> Answer | None:
        if seen.method != "POST":
            return (200 if seen.method == "DELETE" else 405), {}, b""
        message = seen.message
        if message["method"] == "initialize":
            state["ids"] += 1
            state["calls"] = 0
            return json_answer(result_of(message, INITIALIZED), headers={"mcp-session-id": f"s{state['ids']}"})
        if message["method"] == "tools/call":
            state["calls"] += 1
            if state["calls"] > forget:
                return json_answer(error_of(message, -32600, "Session not found"), 404)
        return await plain(seen)

    return handler


def test_session_that_is_forgotten_is_made_anew() -> None:
    """Row 18: after the 404 once more, without the old id; then the call, under the new one."""

    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        async with http_server(sessions(1)) as web:
            config = at(web.url, terminate_on_close=False)
            assert said(await pool.call(config, "work")) == "done"
            web.seen.clear()
            assert said(await pool.call(config, "work")) == "done"
            ids = [
                (seen.message["method"], seen.headers.get("mcp-session-id"))
                for seen in web.seen
                if seen.method == "POST" and seen.message["method"] in ("tools/call", "initialize")
            ]
            assert ids == [("tools/call", "s1"), ("initialize", None), ("tools/call", "s2")]
            await pool.close()

    asyncio.run(main())


def test_sessions_that_are_always_forgotten_are_tried_once_more() -> None:
    """Row 18: a permanent 404 is exactly one retry."""

    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        async with http_server(sessions(0)) as web:
            with pytest.raises(MCPConnectionError, match="does not know the session any more"):
                await pool.call(at(web.url), "work")
            assert web.methods().count("tools/call") == 2
            assert web.methods().count("initialize") == 2
            await pool.close()

    asyncio.run(main())


@pytest.mark.parametrize("keep", [True, False])
def test_terminate_on_close(keep: bool) -> None:
    """HoloDeck US8: the session is ended at the server, unless configured otherwise."""

    async def main() -> None:
        async with http_server(sessions(9)) as web:
            async with ServerConnection(at(web.url, terminate_on_close=not keep), SETTINGS) as web_connection:
                await web_connection.call_tool("work")
            deleted = [seen.headers["mcp-session-id"] for seen in web.seen if seen.method == "DELETE"]
            assert deleted == ([] if keep else ["s1"])

    asyncio.run(main())


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("declared", [True, False])
def test_image_of_100_megabytes(content_type: str, declared: bool) -> None:
    """Refused before it is decoded, declared or not; other calls go on."""

    async def main() -> None:
        sent = 0

        async def handler(seen: Seen) -> Answer | None:
            if seen.method != "POST" or seen.message["method"] != "tools/call":
                return await plain(seen)
            if seen.message["params"]["arguments"]:
                return await plain(seen)

            async def parts() -> AsyncGenerator[bytes]:
                nonlocal sent
                head = '{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"image","data":"'
                start = head % seen.message["id"]
                yield (b"data: " if content_type == "text/event-stream" else b"") + start.encode()
                for _ in range(100):
                    sent += 1
                    yield b"A" * 1_000_000
                yield b'","mimeType":"image/png"}]}}\n\n'

            size = {"content-length": "100000000"} if declared and content_type == "application/json" else {}
            return 200, {"content-type": content_type, **size}, parts()

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as huge:
            with pytest.raises(MCPProtocolError, match=r"too large|at most 64 MiB are taken"):
                await huge.call_tool("work", timeout=60)
            assert sent * 1_000_000 < MESSAGE_BYTES + 8_000_000
            assert said(await huge.call_tool("work", {"small": True})) == "done"

    asyncio.run(main())


def test_cancelled_call_of_the_newer_era_closes_its_stream() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def handler(seen: Seen) -> Answer | None:
            message = seen.message
            if message["method"] == "server/discover":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}
                return json_answer(result_of(message, {**result, "ttlMs": 0, "cacheScope": "private"}))
            if message["method"] == "tools/call":

                async def silence() -> AsyncGenerator[bytes]:
                    try:
                        while True:
                            yield b": ping\n\n"
                            await asyncio.sleep(0.02)
                    finally:
                        closed.set()

                return 200, {"content-type": "text/event-stream"}, silence()
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as newer:
            call = asyncio.create_task(newer.call_tool("work"))
            await until(lambda: "tools/call" in web.methods())
            await asyncio.sleep(0.05)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(closed.wait(), 5)
            assert "notifications/cancelled" not in web.methods()
            assert newer.state is ServerState.CONNECTED

    asyncio.run(main())


def test_cancelled_call_of_the_older_era_is_told() -> None:
    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/call":
                await asyncio.sleep(60)
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as older:
            with pytest.raises(MCPTimeoutError):
                await older.call_tool("work", timeout=0.2)
            await until(lambda: "notifications/cancelled" in web.methods())
            assert [tool.name for tool in await older.list_tools()] == ["work"]

    asyncio.run(main())


def test_input_that_a_server_asks_for_is_refused() -> None:
    """Elicitation of the newer era comes as a result that asks."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            message = seen.message
            if message["method"] == "tools/call":
                return json_answer(result_of(message, {"resultType": "input_required", "inputRequests": {}}))
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as asks:
            with pytest.raises(MCPProtocolError, match="asks for a person's input"):
                await asks.call_tool("work")

    asyncio.run(main())


def test_redirect_to_another_origin_gets_no_headers() -> None:
    async def main() -> None:
        async with http_server(plain) as other:

            async def handler(_: Seen) -> Answer | None:
                return 307, {"location": other.url}, b""

            async with http_server(handler) as web:
                with pytest.raises((MCPConnectionError, MCPProtocolError), match="not followed"):
                    await ServerConnection(at(web.url, headers={"X-Key": KEY}), SETTINGS).connect()
                assert other.seen == []

    asyncio.run(main())


def test_answer_that_is_no_json() -> None:
    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/call":
                return 200, {"content-type": "application/json"}, b"{oops"
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as broken:
            with pytest.raises(MCPProtocolError):
                await broken.call_tool("work", timeout=5)
            assert broken.state is ServerState.CONNECTED

    asyncio.run(main())


def test_connection_that_is_closed_without_an_answer_in_a_call() -> None:
    """What came of it is unknown, so it is not repeated, unless it may be."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/call":
                return None
            return await plain(seen)

        pool = ConnectionPool(SETTINGS)
        async with http_server(handler) as web:
            with pytest.raises(MCPConnectionError, match=r"RemoteProtocolError.*unknown"):
                await pool.call(at(web.url), "work")
            assert web.methods().count("tools/call") == 1
            with pytest.raises(MCPConnectionError):
                await pool.call(at(web.url), "work", repeatable=True)
            assert web.methods().count("tools/call") == 3
            await pool.close()

    asyncio.run(main())


def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The HTTP client and the SDK would log each URL and the session's id."""

    async def main() -> None:
        async with http_server(sessions(9)) as web:
            config = at(f"{web.url}?sig={KEY}", headers={"X-Key": KEY})
            async with ServerConnection(config, SETTINGS) as quiet:
                await quiet.call_tool("work")
                assert web.seen[0].path == f"/mcp?sig={KEY}"

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    assert KEY not in caplog.text
    assert "session" not in caplog.text.lower()


def test_certificates_are_checked_unless_the_configuration_says_otherwise() -> None:
    async def main() -> None:
        async with http_server(plain, self_signed()) as web:
            with pytest.raises(MCPConnectionError, match=r"(?i)certificate"):
                await ServerConnection(at(web.url), SETTINGS).connect()
            assert web.seen == []
            async with ServerConnection(at(web.url, verify=False), SETTINGS) as trusting:
                assert said(await trusting.call_tool("work")) == "done"

    asyncio.run(main())


def test_sse_read_timeout_bounds_the_silence_of_an_answer() -> None:
    """HoloDeck US6. Without it only the call's own time counts."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/call":
                await asyncio.sleep(0.4)
            return await plain(seen)

        async with http_server(handler) as web:
            async with ServerConnection(at(web.url, sse_read_timeout=0.1), SETTINGS) as hasty:
                with pytest.raises(MCPConnectionError, match=r"ReadTimeout.*unknown"):
                    await hasty.call_tool("work")
            async with ServerConnection(at(web.url), SETTINGS) as patient:
                assert said(await patient.call_tool("work")) == "done"

    asyncio.run(main())


def test_results_are_not_checked_here() -> None:
    """The app checks them with cached validators; the SDK's client would raise for this one."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "POST" and seen.message["method"] == "tools/list":
                schema = {"type": "object", "required": ["sum"]}
                tool = {"name": "work", "inputSchema": {"type": "object"}, "outputSchema": schema}
                return json_answer(result_of(seen.message, {"tools": [tool]}))
            if seen.method == "POST" and seen.message["method"] == "tools/call":
                return json_answer(result_of(seen.message, {"content": [], "structuredContent": {"other": 1}}))
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as loose:
            assert loose.tools[0].output_schema == {"type": "object", "required": ["sum"]}
            assert (await loose.call_tool("work")).structured_content == {"other": 1}

    asyncio.run(main())
