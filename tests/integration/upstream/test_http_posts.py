"""How requests of streamable HTTP leave: over kept connections, none in another's way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from shared.errors import MCPError, MCPTimeoutError
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection import direct
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import Answer, Seen, http_server, json_answer, scripted, server

SETTINGS = UpstreamSettings()


def at(url: str, **fields: Any) -> ServerConfig:
    return server(transport="http", url=url, **fields)


@dataclass
class Keeping:
    """A server that keeps its connections, and counts them."""

    url: str = ""
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while head := await reader.readline():
            size = 0
            while (line := await reader.readline()) != b"\r\n":
                name, _, value = line.lower().partition(b":")
                size = int(value) if name == b"content-length" else size
            answer = scripted(json.loads(await reader.readexactly(size))) if head.startswith(b"POST") else None
            data = b"" if answer is None else json.dumps(answer).encode()
            status = b"200 OK" if data else b"202 Accepted" if size else b"405 Method Not Allowed"
            writer.write(
                b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
                % (status, len(data), data)
            )
        writer.close()


def test_calls_share_a_kept_connection() -> None:
    async def main() -> None:
        keeping = Keeping()
        async with await asyncio.start_server(keeping.serve, "127.0.0.1", 0) as listening:
            url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
            async with ServerConnection(at(url), SETTINGS) as connection:
                assert (await connection.call_tool("work")).success  # on a connection that only calls use
                before = keeping.connections
                for _ in range(20):
                    assert (await connection.call_tool("work")).success
                assert keeping.connections == before

    asyncio.run(main())


def test_a_notification_that_is_never_answered_holds_up_no_call() -> None:
    """Older servers are told of a cancelled call by a request of its own, which this one leaves hanging."""
    told = asyncio.Event()

    async def handler(seen: Seen) -> Answer | None:
        if seen.method != "POST":
            return 405, {}, b""
        message = seen.message
        if message["method"] == "notifications/cancelled":
            told.set()
            await asyncio.sleep(60)
        if message["method"] == "tools/call" and "slow" in message["params"]["arguments"]:
            await asyncio.sleep(60)
        answer = scripted(message)
        return (202, {}, b"") if answer is None else json_answer(answer)

    async def main() -> None:
        async with (
            http_server(handler) as upstream,
            ServerConnection(at(upstream.url), SETTINGS) as connection,
        ):
            with pytest.raises(MCPTimeoutError):
                await connection.call_tool("work", {"slow": True}, timeout=0.2)
            await asyncio.wait_for(told.wait(), 5)
            async with asyncio.timeout(3):
                assert (await connection.call_tool("work", timeout=10)).success

    asyncio.run(main())


def test_a_fault_in_one_request_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with a request that nobody foresaw: the connection stays."""
    post = direct.DirectPosts.post

    async def faulty(self: direct.DirectPosts, body: bytes, headers: Any) -> Any:
        if b"broken" in body:
            raise ZeroDivisionError
        return await post(self, body, headers)

    async def handler(seen: Seen) -> Answer | None:
        if seen.method != "POST":
            return 405, {}, b""
        if seen.message["method"] == "tools/call":
            await asyncio.sleep(0.3)
        answer = scripted(seen.message)
        return (202, {}, b"") if answer is None else json_answer(answer)

    async def main() -> None:
        monkeypatch.setattr(direct.DirectPosts, "post", faulty)
        async with (
            http_server(handler) as upstream,
            ServerConnection(at(upstream.url), SETTINGS) as connection,
        ):
            other = asyncio.create_task(connection.call_tool("work"))
            await asyncio.sleep(0)
            with pytest.raises(MCPError, match="ZeroDivisionError"):
                await connection.call_tool("work", {"how": "broken"}, timeout=5)
            assert (await other).success

    asyncio.run(main())
