"""HTTP with SSE and WebSocket, against real servers and broken ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from websockets.asyncio.server import ServerConnection as Socket
from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from shared.errors import MCPConnectionError, MCPTimeoutError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.sse import SseTransport
from shared.upstream.connection.state import ServerState
from shared.upstream.connection.tail import Tail
from shared.upstream.connection.websocket import WebSocketTransport
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import Answer, Seen, demo, http_server, scripted, self_signed, server, until

SETTINGS = UpstreamSettings()
KEY = "sk-live-5f4dcc3b5aa765d6"


def said(result: Any) -> str:
    return str(result.content[0].text)


def sse(url: str, **fields: Any) -> ServerConnection:
    return ServerConnection(server(transport="sse", url=url, **fields), SETTINGS)


# HTTP with SSE


@pytest.mark.parametrize("kind", ["sdk", "fastmcp"])
def test_real_sse_server(kind: str) -> None:
    """HoloDeck US6."""

    async def main(port: int) -> None:
        async with sse(f"http://127.0.0.1:{port}/sse") as web:
            assert {"echo", "add", "steps"} <= {tool.name for tool in web.tools}
            assert web.session_id is not None
            assert said(await web.call_tool("echo", {"text": "é😀日本"})) == "é😀日本"
            # The SDK's own client of this transport takes no event above 1 MiB.
            large = "x" * 3_000_000
            assert said(await web.call_tool("echo", {"text": large})) == large
            results = await asyncio.gather(*(web.call_tool("echo", {"text": str(n)}) for n in range(20)))
            assert [said(one) for one in results] == [str(n) for n in range(20)]
            steps: list[float] = []
            await web.call_tool("steps", {"count": 3}, on_progress=lambda step, *_: steps.append(step))
            assert steps == [1, 2, 3]
        assert web.state is ServerState.DISCONNECTED

    with demo(kind, "sse") as (port, _):
        asyncio.run(main(port))


def test_sse_server_that_is_killed() -> None:
    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        with demo("sdk", "sse") as (port, process):
            config = server(transport="sse", url=f"http://127.0.0.1:{port}/sse")
            assert said(await pool.call(config, "counter")) == "1"
            call = asyncio.create_task(pool.call(config, "sleep", {"seconds": 60}))
            await asyncio.sleep(0.3)
            process.kill()
            with pytest.raises(MCPConnectionError, match="no longer available"):
                await asyncio.wait_for(call, 5)
        with demo("sdk", "sse", port):
            assert said(await pool.call(config, "counter")) == "1"
        await pool.close()

    asyncio.run(main())


class Scripted:
    """An SSE server in this process. `refuse`: the status for messages that are calls; `endless`: whether what
    it answers to a message itself never ends."""

    def __init__(
        self, endpoint: str = "/messages?session_id=1", refuse: int = 0, *, endless: bool = False
    ) -> None:
        self.endpoint = endpoint
        self.refuse = refuse
        self.endless = endless
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, seen: Seen) -> Answer | None:
        if seen.method == "GET":
            return 200, {"content-type": "text/event-stream"}, self.stream()
        message = seen.message
        if self.refuse and message["method"] == "tools/call":
            return self.refuse, {"content-type": "text/plain"}, self.noise() if self.endless else b"no"
        if (answer := scripted(message)) is not None:
            self.events.put_nowait(f"event: message\ndata: {json.dumps(answer)}\n\n".encode())
        return 202, {}, self.noise() if self.endless else b""

    async def noise(self) -> AsyncGenerator[bytes]:
        while True:
            yield b"noise" * 1000

    async def stream(self) -> AsyncGenerator[bytes]:
        yield f"event: endpoint\ndata: {self.endpoint}\n\n".encode()
        yield b"event: message\ndata: {broken\n\n"
        while True:
            yield await self.events.get()


@pytest.mark.parametrize(
    ("status", "text"), [(500, "HTTP 500"), (404, "does not know the session"), (401, "HTTP 401")]
)
def test_refused_message_fails_its_call_at_once(status: int, text: str) -> None:
    """The SDK's own client would let the call wait for all of its time. Row 19."""

    async def main() -> None:
        async with http_server(Scripted(refuse=status)) as web, sse(web.url) as refused:
            assert "skipped an event" in refused.log()
            started = time.perf_counter()
            with pytest.raises(MCPConnectionError, match=text):
                await refused.call_tool("work", timeout=30)
            assert time.perf_counter() - started < 2

    asyncio.run(main())


def test_what_a_message_is_answered_with_is_read_no_further_than_it_is_used() -> None:
    """The result is among the events. Read to its end, an endless answer would fill the memory."""

    async def main() -> None:
        async with http_server(Scripted(endless=True)) as web, sse(web.url) as one:
            assert said(await one.call_tool("work", timeout=5)) == "done"
        async with http_server(Scripted(refuse=500, endless=True)) as web, sse(web.url) as one:
            with pytest.raises(MCPConnectionError, match="HTTP 500 Internal Server Error: noise"):
                await one.call_tool("work", timeout=5)

    asyncio.run(main())


NOTE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
FLOOD = 1000


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_flood_of_messages_is_held_up_until_they_are_read(transport: str) -> None:
    async def handler(_: Seen) -> Answer | None:
        async def stream() -> AsyncGenerator[bytes]:
            yield b"event: endpoint\ndata: /messages\n\n" + f"event: message\ndata: {NOTE}\n\n".encode() * FLOOD
            await asyncio.Event().wait()

        return 200, {"content-type": "text/event-stream"}, stream()

    async def flood(socket: Socket) -> None:
        for _ in range(FLOOD):
            await socket.send(NOTE)
        await socket.wait_closed()

    async def main() -> None:
        one: SseTransport | WebSocketTransport
        async with http_server(handler) as web, websocket_server(flood) as url:
            if transport == "sse":
                one = SseTransport(server(transport="sse", url=web.url), Tail())
                opened = one.open(5)
            else:
                one = WebSocketTransport(server(transport="websocket", url=url), Tail())
                opened = one.open(5, 1)
            async with opened as streams:
                waiting = one._inbox._messages
                await until(lambda: len(waiting) >= 256)
                await asyncio.sleep(0.1)  # in which nothing more is taken
                assert len(waiting) == 256
                for _ in range(FLOOD):
                    await asyncio.wait_for(streams.read.receive(), 5)
                    assert len(waiting) <= 256

    asyncio.run(main())


def test_endpoint_of_another_origin_is_refused() -> None:
    """The configured headers are for the configured server only."""

    async def main() -> None:
        async with http_server(Scripted("http://evil.example/messages")) as web:
            with pytest.raises(MCPConnectionError, match=r"an endpoint of another origin \(evil\.example\)"):
                await sse(web.url, headers={"X-Key": KEY}).connect()
            assert [seen.method for seen in web.seen] == ["GET"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((401, {}, b""), "HTTP 401 Unauthorized"),
        ((404, {}, b""), "HTTP 404 Not Found"),
        ((500, {}, b"boom"), "HTTP 500 Internal Server Error: boom"),
        ((200, {"content-type": "text/html"}, b"<p>hi"), "text/html, not JSON or an event stream"),
        ((200, {"content-type": "text/event-stream"}, b""), "ended before it began"),
        (None, "RemoteProtocolError"),
    ],
)
def test_url_that_is_no_sse_server(answer: Answer | None, text: str) -> None:
    """Rows 3, 19, and section 6: each is seen at once."""

    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            return answer

        async with http_server(handler) as web:
            started = time.perf_counter()
            with pytest.raises(MCPConnectionError, match=text):
                await sse(web.url).connect()
            assert time.perf_counter() - started < 2

    asyncio.run(main())


def test_sse_server_that_names_no_endpoint() -> None:
    async def main() -> None:
        async def handler(_: Seen) -> Answer | None:
            async def silence() -> AsyncGenerator[bytes]:
                while True:
                    yield b": ping\n\n"
                    await asyncio.sleep(0.05)

            return 200, {"content-type": "text/event-stream"}, silence()

        async with http_server(handler) as web:
            with pytest.raises(MCPTimeoutError, match=r"not ready within 0\.3 s"):
                await sse(web.url, init_timeout=0.3).connect()

    asyncio.run(main())


# WebSocket


async def serve_mcp(socket: Socket) -> None:
    """The SDK's server over one WebSocket."""
    demo = MCPServer("socket")
    demo.add_tool(lambda text: text, name="echo")
    count = {"calls": 0}

    def counter() -> int:
        count["calls"] += 1
        return count["calls"]

    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    def large(size: int) -> str:
        return "x" * size

    for tool in (counter, sleep, large):
        demo.add_tool(tool, structured_output=False)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](8)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](8)

    async def read() -> None:
        async with to_server:
            async for frame in socket:
                await to_server.send(
                    SessionMessage(jsonrpc_message_adapter.validate_json(frame, by_name=False))
                )

    async def write() -> None:
        async with from_server:
            async for item in from_server:
                await socket.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        lowlevel = demo._lowlevel_server
        await lowlevel.run(from_client, to_client, lowlevel.create_initialization_options())
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def websocket_server(handler: Any = serve_mcp, port: int = 0, **options: Any) -> AsyncIterator[str]:
    async with serve(handler, "127.0.0.1", port, subprotocols=["mcp"], max_size=None, **options) as listening:  # type: ignore[list-item]
        yield f"ws://127.0.0.1:{next(iter(listening.sockets)).getsockname()[1]}/mcp"


def ws(url: str, **fields: Any) -> ServerConnection:
    return ServerConnection(server(transport="websocket", url=url, **fields), SETTINGS)


def test_websocket_server() -> None:
    """HoloDeck US7: connects, and one connection serves all calls."""

    async def main() -> None:
        seen: list[Socket] = []

        async def handler(socket: Socket) -> None:
            seen.append(socket)
            await serve_mcp(socket)

        async with websocket_server(handler) as url, ws(url, headers={"X-Key": KEY}) as socket:
            assert [tool.name for tool in socket.tools] == ["echo", "counter", "sleep", "large"]
            assert [said(await socket.call_tool("counter")) for _ in range(3)] == ["1", "2", "3"]
            results = await asyncio.gather(*(socket.call_tool("echo", {"text": str(n)}) for n in range(20)))
            assert [said(one) for one in results] == [str(n) for n in range(20)]
            assert len(said(await socket.call_tool("large", {"size": 3_000_000}))) == 3_000_000
            assert len(seen) == 1
            assert seen[0].subprotocol == "mcp"
            assert seen[0].request is not None
            assert seen[0].request.headers["X-Key"] == KEY
        assert socket.state is ServerState.DISCONNECTED

    asyncio.run(main())


def test_websocket_that_is_closed_between_and_during_calls() -> None:
    """Rows 4, 5."""

    async def main() -> None:
        sockets: list[Socket] = []

        async def handler(socket: Socket) -> None:
            sockets.append(socket)
            await serve_mcp(socket)

        pool = ConnectionPool(SETTINGS)
        async with websocket_server(handler) as url:
            config = server(transport="websocket", url=url)
            assert said(await pool.call(config, "counter")) == "1"
            await sockets[0].close(1001, "going away")
            assert said(await pool.call(config, "counter")) == "1"
            call = asyncio.create_task(pool.call(config, "sleep", {"seconds": 60}))
            await asyncio.sleep(0.1)
            await sockets[1].close(1011, "crash")
            with pytest.raises(MCPConnectionError, match=r"closed with code 1011 \(crash\).*unknown"):
                await call
            assert said(await pool.call(config, "counter")) == "1"
            await pool.close()

    asyncio.run(main())


def test_frame_that_is_too_large_and_one_that_is_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.upstream.connection.websocket.MESSAGE_BYTES", 2_000_000)

    async def main() -> None:
        async def handler(socket: Socket) -> None:
            await socket.send("hello there")
            await serve_mcp(socket)

        async with websocket_server(handler) as url, ws(url) as socket:
            await until(lambda: "skipped a frame that is no message: hello there" in socket.log())
            with pytest.raises(MCPConnectionError, match="larger than the"):
                await socket.call_tool("large", {"size": 3_000_000})

    asyncio.run(main())


@pytest.mark.parametrize("status", [401, 404, 302])
def test_websocket_that_is_refused(status: int) -> None:
    """Row 3. A redirect is not followed: the headers are for the configured server."""

    async def main() -> None:
        async def refuse(_: Socket, __: Request) -> Response:
            return Response(
                status, "Any", Headers({"Location": "ws://127.0.0.1:9/"}), f"not you {KEY}".encode()
            )

        async with websocket_server(process_request=refuse) as url:
            with pytest.raises(MCPConnectionError, match=f"HTTP {status}") as error:
                await ws(url, headers={"Authorization": f"Bearer {KEY}"}).connect()
            assert KEY not in str(error.value)

    asyncio.run(main())


def test_websocket_where_nobody_listens_or_http_answers() -> None:
    async def main() -> None:
        with pytest.raises(MCPConnectionError, match="cannot be reached"):
            await ws("ws://127.0.0.1:9/").connect()

        async def handler(_: Seen) -> Answer | None:
            return 200, {}, b"hello"

        async with http_server(handler) as web:
            with pytest.raises(MCPConnectionError, match="HTTP 200"):
                await ws(web.url.replace("http:", "ws:")).connect()

    asyncio.run(main())


def test_websocket_server_that_never_answers() -> None:
    async def main() -> None:
        async def handler(socket: Socket) -> None:
            await socket.wait_closed()

        async with websocket_server(handler) as url:
            with pytest.raises(MCPTimeoutError):
                await ws(url, init_timeout=0.3).connect()

    asyncio.run(main())


def test_certificates_of_a_websocket() -> None:
    async def main() -> None:
        async with websocket_server(ssl=self_signed()) as url:
            secure = url.replace("ws:", "wss:")
            with pytest.raises(MCPConnectionError, match=r"(?i)certificate"):
                await ws(secure).connect()
            async with ws(secure, verify=False) as trusting:
                assert said(await trusting.call_tool("counter")) == "1"

    asyncio.run(main())
