"""HTTP with SSE, the transport of 2024-11-05: one event stream for all answers, one POST for each message.

The SDK's own client of it takes no event above 1 MiB, hides a refused POST until the call's time is over, and
sends one message after the other; this one does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp.shared._httpx_utils import sse_within_origin, stream_within_origin
from mcp_types import JSONRPCRequest

from shared.upstream.connection.faults import (
    Failure,
    FailureKind,
    OpeningError,
    network_failure,
    one_line,
    status_failure,
    wrong_content,
)
from shared.upstream.connection.http import client_options, first_of
from shared.upstream.connection.inbox import Outbox, RoomyInbox, messages
from shared.upstream.connection.limits import ERROR_BODY, MESSAGE_BYTES
from shared.upstream.connection.transport import Streams

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.tail import Tail


class SseTransport:
    def __init__(self, config: ServerConfig, tail: Tail) -> None:
        assert config.url is not None
        self._config = config
        self._url = config.url
        self._tail = tail
        self._inbox = RoomyInbox()
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._ending = ""

    @asynccontextmanager
    async def open(self, connect_timeout: float) -> AsyncIterator[Streams]:
        """`OpeningError` for an answer that is no event stream, or one that names no endpoint of this
        server."""
        async with httpx2.AsyncClient(**client_options(self._config, connect_timeout)) as client:
            self._client = client
            reader = asyncio.create_task(self._read())
            try:
                first: set[asyncio.Future[Any]] = {reader, self._endpoint}
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
                if not self._endpoint.done():
                    reader.result()
                    raise OpeningError(Failure(FailureKind.CONTENT, "the event stream ended before it began"))
                self._endpoint.result()
                yield Streams(
                    self._inbox, Outbox(self._send), ending=lambda: self._ending, session=self._session
                )
            finally:
                reader.cancel()
                await asyncio.wait({reader})
                if not reader.cancelled():
                    # Read, so that nobody is told of it twice.
                    reader.exception()

    async def _read(self) -> None:
        try:
            async with sse_within_origin(self._client, self._url, max_event_size=MESSAGE_BYTES) as source:
                await self._check(source.response)
                async for event in source:
                    if event.event == "endpoint":
                        self._take_endpoint(event.data)
                    elif event.event == "message" and event.data:
                        self._take(event.data)
                        await self._inbox.room()
            self._ending = "it closed the event stream"
        except httpx2.SSEError as error:
            self._ending = one_line(str(error), 200)
        except httpx2.TransportError as error:
            failure = network_failure(error)
            self._ending = failure.text
            if not self._endpoint.done():
                raise OpeningError(failure) from None
        finally:
            self._inbox.close()

    async def _check(self, response: httpx2.Response) -> None:
        content_type = response.headers.get("content-type", "")
        if response.status_code != 200:
            body = (await first_of(response, ERROR_BODY))[:ERROR_BODY].decode("utf-8", "replace")
            raise OpeningError(status_failure(response.status_code, body, content_type))
        if not content_type.lower().startswith("text/event-stream"):
            raise OpeningError(wrong_content(content_type))

    def _take_endpoint(self, data: str) -> None:
        if self._endpoint.done():
            return
        endpoint = urljoin(self._url, data.strip())
        ours, theirs = urlsplit(self._url), urlsplit(endpoint)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            # The configured headers are for the configured server only.
            text = f"the server names an endpoint of another origin ({one_line(theirs.hostname or '?', 100)})"
            raise OpeningError(Failure(FailureKind.CONTENT, text))
        self._endpoint.set_result(endpoint)

    def _take(self, data: str) -> None:
        try:
            for message in messages(data):
                self._inbox.put(message, len(data))
        except ValueError:
            self._tail.add(f"[events] skipped an event that is no message: {one_line(data[:800], 200)}")

    def _session(self) -> str | None:
        query = parse_qs(urlsplit(self._endpoint.result()).query) if self._endpoint.done() else {}
        return next((query[key][0] for key in ("sessionId", "session_id") if key in query), None)

    async def _send(self, item: SessionMessage) -> None:
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        failure: Failure | None = None
        try:
            async with stream_within_origin(
                self._client, "POST", self._endpoint.result(), json=body
            ) as response:
                # The answer is not here but among the events: what is said here matters for an error only, and
                # is read at all so that the connection can be used again.
                said = await first_of(response, ERROR_BODY)
            if response.status_code >= 300:
                content_type = response.headers.get("content-type", "")
                text = said[:ERROR_BODY].decode("utf-8", "replace")
                failure = status_failure(response.status_code, text, content_type, session=True)
        except httpx2.TransportError as error:
            failure = network_failure(error)
        if failure is not None:
            if isinstance(item.message, JSONRPCRequest):
                self._inbox.fail(item.message.id, failure)
            else:
                self._tail.add(f"[post] a notification was not taken: {failure.text}")
