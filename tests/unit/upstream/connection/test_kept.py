"""Connections that are kept between calls: what is read from them, and when they are used again."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from shared.upstream.connection import kept
from shared.upstream.connection.kept import KeptConnection, KeptConnections
from tests.support.upstream import until

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
HEADERS = ((b"Host", b"a.example"),)
type Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request with the next answer; None: closes the connection."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = [*answers]
        self.connections = 0
        self.requests: list[bytes] = []
        self.open: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                if b"\r\n\r\n" in answer and b"content-length" not in answer and b"chunked" not in answer:
                    break
        self.open.discard(writer)
        writer.close()


@asynccontextmanager
async def connections(server: Server, seconds: float | None = 5) -> AsyncIterator[KeptConnections]:
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        made = KeptConnections("127.0.0.1", port, None, connect_seconds=5, read_seconds=seconds)
        try:
            yield made
        finally:
            await made.close()


async def body_of(connection: KeptConnection) -> bytes:
    parts = []
    while (part := await connection.part()) is not None:
        parts.append(part)
    return b"".join(parts)


async def asked(pool: KeptConnections, body: bytes = b"{}") -> bytes:
    """The body of the answer; the connection is given back."""
    connection = await pool.take()
    try:
        await connection.send(b"/mcp", HEADERS, body)
        return await body_of(connection)
    finally:
        pool.give_back(connection)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK, b"{}"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n1\r\n \r\n0\r\na: b\r\n\r\n",
            b"{} ",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1", b"1"),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", b""),
    ],
)
def test_answers_are_read_and_the_connection_is_used_again(answer: bytes, body: bytes) -> None:
    async def main() -> None:
        server = Server(answer, answer, answer)
        async with connections(server) as pool:
            assert [await asked(pool, b"first"), await asked(pool), await asked(pool)] == [body] * 3
        assert server.connections == 1
        assert server.requests[0] == b"POST /mcp HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nfirst"

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\n\r\n{}",
        OK + b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
    ],
)
def test_a_connection_that_is_over_is_not_used_again(answer: bytes) -> None:
    """Said so, ended so, or with something that nobody has asked for."""

    async def main() -> None:
        server = Server(answer, OK)
        async with connections(server) as pool:
            assert await asked(pool) == b"{}"
            assert await asked(pool) == b"{}"
        assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("word", "leaves"),
    [
        (b"", True),
        (b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", False),
    ],
)
@pytest.mark.parametrize("noticed", [True, False])
def test_a_server_that_leaves_while_nothing_runs_costs_no_call(
    word: bytes, leaves: bool, noticed: bool
) -> None:
    """Also when the event loop has not got to hear of it; what it says before it leaves is nobody's answer."""

    async def main() -> None:
        server = Server(OK, OK)
        async with connections(server) as pool:
            assert await asked(pool) == b"{}"
            (writer,) = server.open
            taken = writer.get_extra_info("socket").dup()
            with taken:
                taken.setblocking(True)
                taken.sendall(word)
                if leaves:
                    taken.shutdown(socket.SHUT_WR)
            if noticed:
                await asyncio.sleep(0.05)
            assert await asked(pool) == b"{}"
        assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "disconnected without sending a response"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}", "without sending complete message body"),
        (b"what is this\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, "buffer too long"),
        (b"HTTP/1.1 101 Other\r\nupgrade: x\r\n\r\n", "_SWITCH_UPGRADE"),
    ],
)
def test_what_is_no_answer(answer: bytes | None, text: str) -> None:
    async def main() -> None:
        server = Server(answer, OK)

        async def asked_in_vain(pool: KeptConnections) -> None:
            connection = await pool.take()
            try:
                await connection.send(b"/mcp", HEADERS, b"{}")
                for writer in server.open:
                    writer.close()
                await body_of(connection)
            finally:
                pool.give_back(connection)

        async with connections(server) as pool:
            with pytest.raises(httpx2.RemoteProtocolError, match=text):
                await asked_in_vain(pool)
            assert await asked(pool) == b"{}"

    asyncio.run(main())


def test_silence_is_bounded_where_that_is_asked_for() -> None:
    async def main() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
        async with connections(server, 0.1) as pool:
            with pytest.raises(httpx2.ReadTimeout):
                await asked(pool)

    asyncio.run(main())


def test_a_refused_connection_was_not_sent_on() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        pool = KeptConnections("127.0.0.1", port, None, connect_seconds=5, read_seconds=None)
        with pytest.raises(httpx2.ConnectError, match=r"(?i)refused|connect call failed"):
            await pool.take()
        await pool.close()

    asyncio.run(main())


@pytest.mark.parametrize("value", [b"two\r\nX-Other: 1", b"nul\0"])
def test_no_header_can_end_the_head(value: bytes) -> None:
    async def main() -> None:
        server = Server(OK)
        async with connections(server) as pool:
            connection = await pool.take()
            with pytest.raises(httpx2.LocalProtocolError):
                await connection.send(b"/mcp", (*HEADERS, (b"X-Key", value)), b"{}")
            pool.drop(connection)
            assert await asked(pool) == b"{}"
        assert len(server.requests) == 1

    asyncio.run(main())


def test_an_answer_that_nobody_reads_is_held_up() -> None:
    """The server's socket fills; what has come in is bounded, and read on when somebody does."""

    async def main() -> None:
        size = 40_000_000
        server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
        async with connections(server) as pool:
            connection = await pool.take()
            await connection.send(b"/mcp", HEADERS, b"{}")
            await until(lambda: connection._held_up)
            before = connection._unread
            for _ in range(20):
                await asyncio.sleep(0)
            assert connection._unread == before < 4_000_000
            assert len(await body_of(connection)) == size
            pool.give_back(connection)

    asyncio.run(main())


def test_few_are_kept_and_none_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_CONNECTIONS", 2)

    async def main() -> None:
        server = Server(*[OK] * 9)
        async with connections(server) as pool:
            await asyncio.gather(*(asked(pool) for _ in range(4)))
            assert server.connections == 4
            await until(lambda: len(pool._open) == 2)
            await asyncio.gather(*(asked(pool) for _ in range(2)))
            assert server.connections == 4
            monkeypatch.setattr(kept, "KEPT_SECONDS", 0.0)
            await asked(pool)
            assert server.connections == 5
        assert pool._open == set()

    asyncio.run(main())


def test_closing_ends_what_is_under_way() -> None:
    async def main() -> None:
        server = Server(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
        async with connections(server) as pool:
            under_way = asyncio.create_task(asked(pool))
            await until(lambda: bool(server.requests))
            await pool.close()
            with pytest.raises(httpx2.ReadError):
                await asyncio.wait_for(under_way, 5)

    asyncio.run(main())


@pytest.mark.parametrize("answers", [True, False])
def test_closing_gives_up_what_is_being_opened(answers: bool) -> None:
    """At once, whether or not a connection still comes: nothing is sent on it, and none stays open."""

    async def main() -> None:
        server = Server(OK)
        async with connections(server, 5) as pool:
            loop = asyncio.get_running_loop()
            connect, asked_to = loop.create_connection, asyncio.Event()

            async def slowly(*given: Any, **options: Any) -> Any:
                asked_to.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if not answers:
                        raise
                return await connect(*given, **options)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loop, "create_connection", slowly)
                under_way = asyncio.create_task(asked(pool))
                await asked_to.wait()
                await pool.close()
                with pytest.raises(httpx2.ConnectError, match="closed"):
                    await asyncio.wait_for(under_way, 2)
            with pytest.raises(httpx2.ConnectError, match="closed"):
                await pool.take()
            assert pool._open == set()
        assert server.requests == []

    asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ECONNREFUSED, "Connect call failed ('10.1.2.3', 80)"), os.strerror(errno.ECONNREFUSED)),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('10.1.2.3', 80)"), "All attempts"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "certificate verify failed"),
    ],
)
def test_a_failed_attempt_names_no_address(error: OSError, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async def fails(*_: Any, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", fails)
        pool = KeptConnections("a.example", 80, None, connect_seconds=5, read_seconds=None)
        with pytest.raises(httpx2.ConnectError, match=text) as told:
            await pool.take()
        assert "10.1.2.3" not in str(told.value)

    asyncio.run(main())


def test_a_connection_whose_caller_has_gone_is_the_next_ones() -> None:
    """A race for it that is cancelled loses the socket that has won it."""

    async def main() -> None:
        server = Server(OK)
        async with connections(server) as pool:
            loop = asyncio.get_running_loop()
            connect, may = loop.create_connection, asyncio.Event()

            async def slowly(*given: Any, **options: Any) -> Any:
                made = await connect(*given, **options)
                try:
                    await may.wait()
                except asyncio.CancelledError:
                    made[0].abort()
                    raise
                return made

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loop, "create_connection", slowly)
                under_way = asyncio.create_task(asked(pool))
                await until(lambda: server.connections == 1)
                under_way.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await under_way
                may.set()
            await until(lambda: not pool._opening)
            assert await asked(pool) == b"{}"
        assert server.connections == 1
        assert pool._open == set()

    asyncio.run(main())
