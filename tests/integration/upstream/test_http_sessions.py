"""Streamable HTTP: sessions and their own stream.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio

import pytest

from shared.errors import MCPConnectionError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.integration.upstream.web import at, plain, said, sessions
from tests.support.upstream import Answer, Seen, http_server, until

SETTINGS = UpstreamSettings()


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
