"""Messages on their way from a transport to the SDK's dispatcher, and what bytes must be to become one."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

from shared.upstream.connection.faults import Failure, too_large
from shared.upstream.connection.limits import (
    WAITING_AGAIN,
    WAITING_BYTES,
    WAITING_BYTES_AGAIN,
    WAITING_MOST,
)
from shared.upstream.connection.lines import OverlongLine

if TYPE_CHECKING:
    from mcp_types import ErrorData

#: Takes an answer: the request's id, and its result or error.
type Resolve = Callable[[int | str | None, dict[str, Any] | ErrorData], object]
#: The code of an error that a transport puts in the place of an answer ("internal error").
_INTERNAL: Final = -32603


class Inbox:
    """The read stream of a session (the SDK's `ReadStream`), filled without waiting.

    `resolve`: what an answer is given to at once where nothing waits before it, which spares it the way through
    the queue and the task that reads it.
    """

    resolve: Resolve | None = None

    def __init__(
        self, pause: Callable[[], None] | None = None, resume: Callable[[], None] | None = None
    ) -> None:
        self._messages: deque[tuple[SessionMessage, int]] = deque()
        self._bytes = 0
        self._pause = pause
        self._resume = resume
        self._paused = False
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: JSONRPCMessage, size: int = 0) -> None:
        """`size`: bytes that the message had, of which only so many wait here."""
        if self.resolve is not None and not self._messages and not self._closed:
            if isinstance(message, JSONRPCResponse):
                self.resolve(message.id, message.result)
                return
            if isinstance(message, JSONRPCError):
                self.resolve(message.id, message.error)
                return
        self._keep(message, size)

    def _keep(self, message: JSONRPCMessage, size: int) -> None:
        self._messages.append((SessionMessage(message), size))
        self._bytes += size
        full = len(self._messages) >= WAITING_MOST or self._bytes >= WAITING_BYTES
        if full and not self._paused and self._pause is not None:
            self._paused = True
            self._pause()
        self._wake()

    def fail(self, request: int | str, failure: Failure) -> None:
        """Answer one request with a failure of the transport."""
        self.put(failed(request, failure))

    def close(self) -> None:
        """Nothing more will come; what is here is still read."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> SessionMessage | Exception:
        while not self._messages:
            if self._closed:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message, size = self._messages.popleft()
        self._bytes -= size
        roomy = len(self._messages) <= WAITING_AGAIN and self._bytes <= WAITING_BYTES_AGAIN
        if self._paused and roomy and self._resume is not None:
            self._paused = False
            self._resume()
        return message

    async def aclose(self) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RoomyInbox(Inbox):
    """An inbox whose filler waits for `room` itself: for transports that read in a loop of their own."""

    def __init__(self) -> None:
        self._room = asyncio.Event()
        self._room.set()
        super().__init__(self._room.clear, self._room.set)

    async def room(self) -> None:
        """Until there is room for another message, or nobody reads any more."""
        while not (self._room.is_set() or self._closed):
            await self._room.wait()

    def close(self) -> None:
        super().close()
        self._room.set()


class Outbox:
    """The write stream of a session (the SDK's `WriteStream`) over one coroutine that sends a message."""

    def __init__(self, send: Callable[[SessionMessage], Any]) -> None:
        self._send = send
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """`NotSentError` for a request that cannot be sent; anything else is dropped, as the SDK expects."""
        if self._closed:
            raise anyio.ClosedResourceError
        await self._send(item)

    async def aclose(self) -> None:
        self._closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True


def failed(request: int | str | None, failure: Failure) -> JSONRPCError:
    error: ErrorData | dict[str, Any] = {"code": _INTERNAL, "message": failure.text, "data": failure.data()}
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": request, "error": error})


def messages(text: str | bytes) -> list[JSONRPCMessage]:
    """The message in a text, or all of a batch (2025-03-26). `ValueError` when it is none."""
    start = text[:1]
    if start in ("[", b"["):
        return [jsonrpc_message_adapter.validate_python(item, by_name=False) for item in json.loads(text)]
    return [jsonrpc_message_adapter.validate_json(text, by_name=False)]


def written(item: SessionMessage) -> str:
    return item.message.model_dump_json(by_alias=True, exclude_unset=True)


def skipped(line: OverlongLine, limit: int) -> tuple[int | str | None, Failure]:
    """The request that an overlong message answers, if that can be told, and what to answer in its place."""
    return line.message_id, too_large(limit, line.size)
