"""Streamable HTTP: calls of servers in both eras of the protocol, and how they can end.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest

from shared.errors import MCPConnectionError, MCPProtocolError, MCPTimeoutError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.limits import MESSAGE_BYTES
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.integration.upstream.web import at, plain, said
from tests.support.upstream import Answer, Seen, demo, http_server, json_answer, result_of, until

SETTINGS = UpstreamSettings()


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
