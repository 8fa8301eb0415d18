"""Requests that leave in one piece: the head of a POST waits for its body.

The HTTP library writes the head and the body of a request one after the other. Then a server is woken by a
request that it cannot read yet, and again by the rest, which costs a short call a tenth of its time and more on
a busy machine; over TLS it is a second record.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2


def send_whole_requests(client: httpx2.AsyncClient) -> None:
    """Has a new client do so, also through a proxy.

    Where the library keeps its connections is not public: where that is not found, requests go as they did.
    """
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if isinstance(pool, httpcore2.AsyncConnectionPool):
            pool._network_backend = _Backend(pool._network_backend)


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, inner: httpcore2.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature, here and below
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    """Holds the head of a POST until the next write, which always comes: the body, or nothing at its end."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream) -> None:
        self._inner = inner
        self._head = b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if not self._head and buffer.startswith(b"POST ") and buffer.endswith(b"\r\n\r\n"):
            self._head = buffer
            return
        whole, self._head = self._head + buffer, b""
        await self._inner.write(whole, timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._inner.read(max_bytes, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
