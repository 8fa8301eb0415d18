"""Streamable HTTP: what else answers on a URL, or refuses, and what is told of it.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator

import pytest
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from shared.errors import MCPConnectionError, MCPProtocolError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.integration.upstream.web import at, plain, said, sessions
from tests.support.upstream import Answer, Seen, error_of, http_server, json_answer, scripted, self_signed

SETTINGS = UpstreamSettings()
KEY = "sk-live-5f4dcc3b5aa765d6"


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


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, None), (405, None), (404, -32000), (404, -32600), (405, -32000), (405, METHOD_NOT_FOUND)],
)
def test_older_server_is_found_by_its_event_stream(status: int, code: int | None) -> None:
    """Row 16: POST refused, GET answers events. `code`: of a JSON-RPC error in the refusal."""

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
            if code is not None:
                return json_answer(error_of(seen.message, code, "GET only"), status)
            return status, {}, b""

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as older:
            assert said(await older.call_tool("work")) == "done"
            assert older.session_id == "abcdef01…"
            assert f"HTTP {status}" in older.log()
            assert ("GET only" in older.log()) is (code is not None)

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


@pytest.mark.parametrize(("status", "phrase"), [(404, "Not Found"), (405, "Method Not Allowed")])
def test_a_refusal_in_json_rpc_is_told_with_its_status(status: int, phrase: str) -> None:
    """Row 16: what the first transport met is kept, with what the server said about it."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "GET":
                return 503, {}, b""
            return json_answer(error_of(seen.message, -32000, "Method not allowed here"), status)

        async with http_server(handler) as web:
            told = f"HTTP {status} {phrase}: Method not allowed here; tried as HTTP with SSE as well: HTTP 503"
            with pytest.raises(MCPConnectionError, match=told):
                await ServerConnection(at(web.url), SETTINGS).connect()

    asyncio.run(main())


@pytest.mark.parametrize("code", [METHOD_NOT_FOUND, INVALID_PARAMS])
def test_a_404_of_the_protocol_is_no_older_server(code: int) -> None:
    """2026-07-28 answers 404 when a method is unknown: the endpoint is there and has said why."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            return json_answer(error_of(seen.message, code, "no such method"), 404)

        async with http_server(handler) as web:
            with pytest.raises(MCPProtocolError, match=f"no such method \\(code {code}\\)"):
                await ServerConnection(at(web.url), SETTINGS).connect()
            assert {seen.method for seen in web.seen} == {"POST"}

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
