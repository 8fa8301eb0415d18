"""Calls over streamable HTTP, past the HTTP client: how their answers are read.

What an answer means is what the SDK's transport says it means; this says the same of the two that are the rule,
a JSON document and an event stream, and hands it every other one.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import httpx2
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from shared.upstream.connection.events import Event, EventReader, EventTooLargeError
from shared.upstream.connection.faults import (
    network_failure,
    no_answer,
    status_failure,
    too_large,
    unwritable,
)
from shared.upstream.connection.inbox import written
from shared.upstream.connection.limits import MESSAGE_BYTES
from shared.upstream.connection.posting import HttpPosts

if TYPE_CHECKING:
    from mcp.client.streamable_http import RequestContext
    from mcp_types import JSONRPCRequest

    from shared.upstream.connection.direct import DirectAnswer, DirectPosts
    from shared.upstream.connection.http import GuardedClient

LOG = logging.getLogger("toolbox.upstream")
#: Redirects that keep the method: the request was not carried out where it was sent.
_ELSEWHERE: Final = frozenset({307, 308})


class CallPosts(HttpPosts):
    """`direct`: what takes calls past the client; None: nothing does."""

    def __init__(self, url: httpx2.URL, client: GuardedClient, direct: DirectPosts | None) -> None:
        super().__init__(url, client)
        self._direct = direct
        self._opened = direct

    async def close(self, *, terminate: bool) -> None:
        try:
            await super().close(terminate=terminate)
        finally:
            if self._opened is not None:
                await self._opened.close()

    def _is_of_its_sender(self, request: JSONRPCRequest) -> bool:
        return self._direct is not None and request.method == "tools/call"

    async def _carry_out(self, request: JSONRPCRequest, context: RequestContext) -> None:
        if self._direct is None or request.method != "tools/call":
            await super()._carry_out(request, context)
        else:
            await self._call(request.id, context, self._direct)

    async def _call(self, request_id: int | str, context: RequestContext, direct: DirectPosts) -> None:
        headers = self._prepare_headers()
        if context.metadata is not None and context.metadata.headers:
            headers.update(context.metadata.headers)
        try:
            body = written(context.session_message).encode()
        except ValueError:
            # Half of a pair of surrogates, or too many levels: a client can send them, and no server got them.
            self.arrivals.fail(request_id, unwritable())
            return
        try:
            answer = await direct.post(body, headers)
        except httpx2.TransportError as error:
            self.arrivals.fail(request_id, network_failure(error))
            return
        near = False
        try:
            kind = answer.content_type if answer.status == 200 else ""
            if kind == "text/event-stream":
                near = await self._read_events(request_id, answer, context)
            elif kind == "application/json":
                await self._read_json(request_id, answer)
            elif answer.status in _ELSEWHERE:
                # It was not carried out here. The client knows how to follow, and follows from now on.
                self._direct = None
                await self._handle_post_request(context)
            elif 300 <= answer.status < 400:
                self.arrivals.fail(request_id, status_failure(answer.status))
            else:
                client = await direct.unusual(answer, headers, body)
                await self._handle_post_request(replace(context, client=client.as_client))
        finally:
            # The call does not wait for what comes after its answer.
            self._start(answer.end(near=near))

    async def _read_json(self, request_id: int | str, answer: DirectAnswer) -> None:
        declared = answer.declared
        if declared is not None and declared > MESSAGE_BYTES:
            self.arrivals.fail(request_id, too_large(MESSAGE_BYTES, declared))
            return
        try:
            body = await answer.whole()
        except httpx2.TransportError as error:
            self.arrivals.fail(request_id, network_failure(error))
            return
        if body is None:
            self.arrivals.fail(request_id, too_large(MESSAGE_BYTES))
            return
        try:
            message = jsonrpc_message_adapter.validate_json(body, by_name=False)
        except ValueError as error:
            self._unreadable(request_id, "JSON response", error)
            return
        if isinstance(message, JSONRPCError) and message.id is None:
            message.id = request_id  # a server that could not read the request knows of no id
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id != request_id:
            # Nothing else comes: a call that goes on waiting waits in vain.
            self.arrivals.fail(request_id, no_answer())
            return
        await self.arrivals.arrive(message, len(body))

    async def _read_events(self, request_id: int | str, answer: DirectAnswer, context: RequestContext) -> bool:
        """Whether the answer has come. A stream that ends before it is resumed, where the server lets it be."""
        reader = EventReader(MESSAGE_BYTES)
        last: Event | None = None
        wait: int | None = None
        try:
            part: bytes | None = b""
            while part is not None:
                part = await answer.part()
                for event in reader.end() if part is None else reader.feed(part):
                    last = event
                    wait = event.retry if event.retry is not None else wait
                    if await self._took(request_id, event):
                        return True
        except EventTooLargeError as error:
            await self._resolve_abandoned_request(
                context.read_stream_writer, request_id, f"SSE stream failed: {error}"
            )
            return False
        except httpx2.TransportError as error:
            LOG.debug("An event stream broke off: %s", type(error).__name__)
        if last is not None and last.id:
            await answer.end()
            await self._handle_reconnection(context, last.id, wait)
        else:
            await self._resolve_abandoned_request(
                context.read_stream_writer, request_id, "SSE stream ended without a response"
            )
        return False

    async def _took(self, request_id: int | str, event: Event) -> bool:
        """Whether the event was the answer; one without data only says where to resume."""
        if event.kind != "message" or not event.data:
            return False
        try:
            message = _message(event.data)
        except ValueError as error:
            self._unreadable(request_id, "SSE message", error)
            return True
        is_answer = isinstance(message, JSONRPCResponse | JSONRPCError)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            message.id = request_id
        await self.arrivals.arrive(message, len(event.data))
        return is_answer

    def _unreadable(self, request_id: int | str, what: str, error: ValueError) -> None:
        """What the SDK says of an answer that is no message."""
        told = ErrorData(code=PARSE_ERROR, message=f"Failed to parse {what}: {error}")
        self.arrivals.put(JSONRPCError(jsonrpc="2.0", id=request_id, error=told))


def _message(data: bytes) -> JSONRPCMessage:
    """`ValueError` for what is none. What is no UTF-8 is replaced, as the SDK's reader of texts does."""
    try:
        return jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        text = data.decode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
