"""The socket and the HTTP server (uvicorn, with uvloop and httptools where they are installed)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from infra.local.host.errors import HostError, PortInUseError

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
_KEEP_ALIVE = 120  # seconds; clients of a tool server pause between calls
_BACKLOG = 512


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback interface; port 0 picks a free one. Raises PortInUseError.

    It listens before the app is loaded: a taken port shows at once, and early clients wait instead of failing.
    """
    # With the protocol named, asyncio sends small answers at once.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # elsewhere it would let two hosts share the port
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(f"Port {port} is in use. Choose another with --port.") from None
        raise HostError(f"Cannot listen on port {port}: {error.strerror}.") from None
    sock.setblocking(False)
    return sock


class WholeAnswers:
    """A connection's transport on which the head of an answer leaves with its body.

    uvicorn writes one after the other. A client is woken by a head that it can do nothing with, and again by
    the rest.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """A head waits for the next write, which is its body, or for the loop's next round."""
        if not self._head and data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n"):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        whole, self._head = self._head + data, b""
        self._transport.write(whole)

    def close(self) -> None:
        """Write what waits, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            if not self._transport.is_closing():  # the client may have gone meanwhile; uvloop minds
                self._transport.write(head)


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # which one it is depends on what is installed
    """uvicorn's own, writing through ``WholeAnswers``."""

    def connection_made(self, transport: Any) -> None:
        """A client has come."""
        super().connection_made(WholeAnswers(transport))


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the host and says when it is ready."""

    def __init__(self, app: Any, shutdown_seconds: float) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=Protocol,
                interface="asgi3",
                lifespan="off",
                ws="none",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=int(shutdown_seconds),
            )
        )
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave SIGTERM and SIGINT alone."""
        yield
