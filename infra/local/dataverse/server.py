"""Sockets, certificate and HTTP server (uvicorn in a thread of its own)."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import trustme
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from infra.local.dataverse.app import TRANSPORT

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

HOST = "127.0.0.1"
_READY_SECONDS = 20.0


def listen(port: int) -> socket.socket:
    """A listening socket on the loopback interface; port 0 picks a free one. Raises OSError."""
    # With its protocol named, or asyncio would not switch Nagle's delay off: 40 ms a request.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((HOST, port))
        sock.listen(256)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def make_certificate(ca_file: Path) -> ssl.SSLContext:
    """A fresh authority, written to `ca_file`, and a context with a certificate of it for this machine."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST, "localhost").configure_cert(context)
    return context


class _Protocol(HttpToolsProtocol):
    """Hands the transport to the app, which may have to end a connection."""

    # asyncio types it wider and never calls it so.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = self.app

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope.setdefault("extensions", {})[TRANSPORT] = transport
            await app(scope, receive, send)

        self.app = with_transport


class ServerThread:
    """A server that runs until `stop`."""

    def __init__(self, app: ASGIApp, sockets: list[socket.socket], context: ssl.SSLContext) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            loop="asyncio",
            interface="asgi3",
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_keep_alive=60,
            timeout_graceful_shutdown=1,
            ssl_context_factory=lambda _config, _default: context,
        )
        self._server = uvicorn.Server(config)
        self._sockets = sockets
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="dataverse-stand-in", daemon=True)

    def start(self) -> None:
        """Start, and come back when requests are answered. Raises RuntimeError."""
        self._thread.start()
        waiter = threading.Event()
        for _ in range(int(_READY_SECONDS / 0.01)):
            if self._server.started:
                return
            if not self._thread.is_alive():
                break
            waiter.wait(0.01)
        raise RuntimeError("The Dataverse stand-in did not start.")

    def stop(self) -> None:
        """Stop, and come back when the sockets are closed."""
        self._server.should_exit = True
        if self._loop is not None and self._thread.is_alive():
            # An idle TLS connection would wait for its client to say goodbye.
            self._loop.call_soon_threadsafe(self._abort_connections)
        self._thread.join(10)
        for sock in self._sockets:
            sock.close()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            runner.run(self._server.serve(sockets=self._sockets))

    def _abort_connections(self) -> None:
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
