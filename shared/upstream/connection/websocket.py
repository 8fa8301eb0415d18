"""WebSocket: one text frame for one message, subprotocol `mcp`. On `websockets`: the SDK has this transport no
more."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from mcp_types import JSONRPCRequest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import Close, CloseCode
from websockets.typing import Subprotocol

from shared.upstream.connection.faults import (
    Failure,
    FailureKind,
    NotSentError,
    OpeningError,
    one_line,
    status_failure,
)
from shared.upstream.connection.inbox import Outbox, RoomyInbox, messages, written
from shared.upstream.connection.limits import ERROR_BODY, MESSAGE_BYTES, MIB
from shared.upstream.connection.transport import Streams

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.tail import Tail


class _Connect(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        """No redirect is followed: the configured headers are for the configured server only."""
        return exc


class WebSocketTransport:
    def __init__(self, config: ServerConfig, tail: Tail) -> None:
        self._config = config
        self._tail = tail
        self._inbox = RoomyInbox()
        self._ending = ""

    @asynccontextmanager
    async def open(self, connect_timeout: float, close_timeout: float) -> AsyncIterator[Streams]:
        """`OpeningError` when the server refuses, or does not speak WebSocket."""
        self._socket = socket = await self._connect(connect_timeout, close_timeout)
        reader = asyncio.create_task(self._read())
        try:
            yield Streams(
                self._inbox, Outbox(self._send), ending=lambda: self._ending, kill=socket.transport.abort
            )
        finally:
            try:
                await socket.close()
            finally:
                reader.cancel()
                await asyncio.wait({reader})

    async def _connect(self, connect_timeout: float, close_timeout: float) -> ClientConnection:
        config = self._config
        assert config.url is not None
        secure = config.url.lower().startswith("wss:")
        try:
            return await _Connect(
                config.url,
                subprotocols=[Subprotocol("mcp")],
                additional_headers=config.headers,
                max_size=MESSAGE_BYTES,
                open_timeout=config.timeout or connect_timeout,
                close_timeout=close_timeout,
                ssl=_certificates(config) if secure else None,
            )
        except InvalidStatus as error:
            response = error.response
            body = (response.body or b"")[:ERROR_BODY].decode("utf-8", "replace")
            content_type = response.headers.get("content-type", "")
            raise OpeningError(status_failure(response.status_code, body, content_type)) from None
        except InvalidHandshake as error:
            raise OpeningError(Failure(FailureKind.CONTENT, one_line(str(error), 200), sent=False)) from None
        except OSError as error:
            text = one_line(error.strerror or str(error) or type(error).__name__, 200)
            raise OpeningError(Failure(FailureKind.NETWORK, text, sent=False)) from None

    async def _read(self) -> None:
        close: Close | None = None
        try:
            while True:
                self._take(await self._socket.recv())
                await self._inbox.room()
        except ConnectionClosed as error:
            # What we have said first is the reason; else what the server has said.
            close = error.rcvd if error.rcvd_then_sent else error.sent or error.rcvd
        finally:
            self._ending = _ending(close)
            self._inbox.close()

    def _take(self, frame: str | bytes) -> None:
        try:
            for message in messages(frame):
                self._inbox.put(message, len(frame))
        except ValueError:
            start = frame[:800]
            text = start if isinstance(start, str) else start.decode("utf-8", "replace")
            self._tail.add(f"[frames] skipped a frame that is no message: {one_line(text, 200)}")

    async def _send(self, item: SessionMessage) -> None:
        try:
            await self._socket.send(written(item))
        except ConnectionClosed:
            if isinstance(item.message, JSONRPCRequest):
                raise NotSentError("the WebSocket is closed") from None
            raise anyio.BrokenResourceError from None


def _certificates(config: ServerConfig) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _ending(close: Close | None) -> str:
    if close is None:
        return "the WebSocket broke off"
    if close.code == CloseCode.MESSAGE_TOO_BIG:
        return f"its answer is larger than the {MESSAGE_BYTES // MIB} MiB that are taken"
    reason = f" ({one_line(close.reason, 100)})" if close.reason else ""
    return f"the WebSocket was closed with code {int(close.code)}{reason}"
