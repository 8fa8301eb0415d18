"""The SDK's streamable HTTP transport without its queues: whoever sends a message has it posted.

The SDK hands each message through two queues and three tasks on its way out, which costs a call a tenth of its
time, and holds all messages up while a notification is being posted. What is posted how, and what an answer
means, stays the SDK's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import RequestContext, StreamableHTTPTransport
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from shared.upstream.connection.faults import Failure, FailureKind
from shared.upstream.connection.inbox import Outbox, RoomyInbox
from shared.upstream.connection.limits import MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.client.streamable_http import StreamWriter
    from mcp_types import JSONRPCMessage

LOG = logging.getLogger("toolbox.upstream")


class Arrivals(RoomyInbox):
    """An inbox that several posts fill; a flood of messages is held up until they are read.

    `last_context`: in which context the last message came. The dispatcher handles a notification there, which
    is how a log notification on a request's own stream finds its call.
    """

    def __init__(self) -> None:
        super().__init__()
        self._contexts: deque[Context] = deque()
        self.last_context: Context | None = None

    async def send(self, item: SessionMessage | Exception) -> None:
        """`anyio.ClosedResourceError` when nobody reads any more, as the SDK's transport expects."""
        await self.room()
        if self._closed:
            raise anyio.ClosedResourceError
        if not isinstance(item, Exception):  # what is no message at all is nobody's answer
            self.put(item.message)

    def put(self, message: JSONRPCMessage) -> None:
        self._contexts.append(copy_context())
        super().put(message)

    async def receive(self) -> SessionMessage | Exception:
        item = await super().receive()
        self.last_context = self._contexts.popleft()
        return item


@dataclass(frozen=True, slots=True, eq=False)
class _Post:
    """A request under way. `modern`: it was sent as one of 2026-07-28."""

    scope: anyio.CancelScope
    modern: bool


class HttpPosts(StreamableHTTPTransport):
    """The streams of one endpoint: `arrivals` and `outbox`. `close` it by the task that made it."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        # Parsed once: the client takes text or this, and the SDK only hands it on.
        super().__init__(cast("str", httpx2.URL(url)), max_sse_event_size=MESSAGE_BYTES)
        self._client = client
        self._posts: dict[int | str, _Post] = {}
        self._running: dict[asyncio.Task[None], anyio.CancelScope] = {}
        self.arrivals = Arrivals()
        self.outbox = Outbox(self._send)

    async def _send(self, item: SessionMessage) -> None:
        """A request is on its way when this returns; anything else has been taken by the server, or lost."""
        message = item.message
        if self._is_cancelled(message):
            return
        metadata = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
        self._note_version(message, metadata)
        context = RequestContext(
            client=self._client,
            session_id=self.session_id,
            session_message=item,
            metadata=metadata,
            read_stream_writer=cast("StreamWriter", self.arrivals),
        )
        if isinstance(message, JSONRPCRequest):
            post = _Post(anyio.CancelScope(), self._is_modern)
            self._posts[message.id] = post
            self._start(post.scope, self._request(message.id, context))
            return
        if self._is_initialized_notification(message):
            self._start(anyio.CancelScope(), self.handle_get_stream(self._client, context.read_stream_writer))
        await self._handle_post_request(context)

    @property
    def _is_modern(self) -> bool:
        return self._protocol_version_header in MODERN_PROTOCOL_VERSIONS

    def _note_version(self, message: JSONRPCMessage, metadata: ClientMessageMetadata | None) -> None:
        """The version in the header of what follows: that of the last message which states one.

        A handshake negotiates anew: what a probe before it has stated does not count any more.
        """
        if self._is_initialization_request(message):
            self._protocol_version_header = None
        elif metadata is not None and metadata.headers is not None:
            stated = metadata.headers.get(MCP_PROTOCOL_VERSION_HEADER)
            self._protocol_version_header = stated or self._protocol_version_header

    def _is_cancelled(self, message: JSONRPCMessage) -> bool:
        """Whether the message cancels a request of 2026-07-28, where that is done by closing its stream."""
        if not isinstance(message, JSONRPCNotification) or message.method != "notifications/cancelled":
            return False
        post = self._posts.get((message.params or {}).get("requestId", ""))
        if post is None:
            return self._is_modern
        if post.modern:
            post.scope.cancel()
        return post.modern

    async def _request(self, request_id: int | str, context: RequestContext) -> None:
        try:
            await self._handle_post_request(context)
        except anyio.ClosedResourceError:
            pass  # the connection has ended, and with it all that waited
        except Exception as error:
            # The client answers for every failure of the network: this is a fault, of one request only.
            LOG.exception("A request to an upstream server could not be carried out.")
            failure = Failure(FailureKind.NETWORK, type(error).__name__, sent=True)
            self.arrivals.fail(request_id, failure)
        finally:
            self._posts.pop(request_id, None)

    def _start(self, scope: anyio.CancelScope, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_within(scope, work))
        self._running[task] = scope
        task.add_done_callback(self._running.pop)

    async def close(self, *, terminate: bool) -> None:
        """`terminate`: the session is ended at the server first (DELETE), if it has one."""
        try:
            if terminate and self.session_id:
                await self.terminate_session(self._client)
        finally:
            running = dict(self._running)
            for scope in running.values():
                scope.cancel()
            self.arrivals.close()
            if running:
                await asyncio.wait(running)


async def _within(scope: anyio.CancelScope, work: Coroutine[Any, Any, None]) -> None:
    with scope:
        await work
