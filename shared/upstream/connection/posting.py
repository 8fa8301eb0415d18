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

    from shared.upstream.connection.http import GuardedClient

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
        if not isinstance(item, Exception):  # what is no message at all is nobody's answer
            await self.arrive(item.message)

    async def arrive(self, message: JSONRPCMessage, size: int = 0) -> None:
        """The same, of a message of so many bytes."""
        await self.room()
        if self._closed:
            raise anyio.ClosedResourceError
        self.put(message, size)

    def _keep(self, message: JSONRPCMessage, size: int) -> None:
        self._contexts.append(copy_context())
        super()._keep(message, size)

    async def receive(self) -> SessionMessage | Exception:
        item = await super().receive()
        self.last_context = self._contexts.popleft()
        return item


@dataclass(slots=True, eq=False)
class _Post:
    """A request under way. `modern`: it was sent as one of 2026-07-28."""

    modern: bool
    task: asyncio.Task[None] | None = None


class HttpPosts(StreamableHTTPTransport):
    """The streams of one endpoint: `arrivals` and `outbox`. `close` it by the task that made it."""

    def __init__(self, url: httpx2.URL, client: GuardedClient) -> None:
        # Parsed once: the client takes text or this, and the SDK only hands it on.
        super().__init__(cast("str", url), max_sse_event_size=MESSAGE_BYTES)
        self._client = client
        self._posts: dict[int | str, _Post] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.arrivals = Arrivals()
        self.outbox = Outbox(self._send)

    async def _send(self, item: SessionMessage) -> None:
        """A request is on its way when this returns, or answered; anything else has been taken by the server,
        or lost."""
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
            if self._is_of_its_sender(message):
                await self._request(message, context)
                return
            post = self._posts[message.id] = _Post(self._is_modern)
            post.task = self._start(self._request(message, context))
            return
        if self._is_initialized_notification(message):
            self._start(self.handle_get_stream(self._client, context.read_stream_writer))
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
        if post.modern and post.task is not None:
            post.task.cancel()
        return post.modern

    async def _request(self, request: JSONRPCRequest, context: RequestContext) -> None:
        request_id = request.id
        try:
            await self._carry_out(request, context)
        except anyio.ClosedResourceError:
            pass  # the connection has ended, and with it all that waited
        except Exception as error:
            # The client answers for every failure of the network: this is a fault, of one request only.
            LOG.exception("A request to an upstream server could not be carried out.")
            failure = Failure(FailureKind.NETWORK, type(error).__name__, sent=True)
            self.arrivals.fail(request_id, failure)
        finally:
            self._posts.pop(request_id, None)

    def _is_of_its_sender(self, request: JSONRPCRequest) -> bool:
        """Whether the task that sends the request posts it, too, and not one of its own: it ends with that one
        then."""
        return False

    async def _carry_out(self, request: JSONRPCRequest, context: RequestContext) -> None:
        """Posts a request and has its answer arrive."""
        await self._handle_post_request(context)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Begins at once, not in its turn: the request is on its way a moment earlier.
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
        if not task.done():
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return task

    async def close(self, *, terminate: bool) -> None:
        """`terminate`: the session is ended at the server first (DELETE), if it has one."""
        try:
            if terminate and self.session_id:
                await self.terminate_session(self._client)
        finally:
            running = [*self._running]
            for task in running:
                task.cancel()
            self.arrivals.close()
            if running:
                await asyncio.wait(running)
