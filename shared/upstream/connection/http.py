"""Streamable HTTP: the SDK's transport, over a client that keeps one request's failure to that request.

Left alone, the SDK's transport hides the status of an error answer, takes a body of any size into memory, and
is torn down whole, with every call in flight, by one refused connection. `GuardedClient` answers in the place
of such a response with a JSON-RPC error that tells what happened; the transport hands it to the one request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, JSONRPCError, jsonrpc_message_adapter

from shared.upstream.connection.calling import CallPosts
from shared.upstream.connection.direct import NEAR, DirectPosts
from shared.upstream.connection.faults import (
    Failure,
    network_failure,
    status_failure,
    too_large,
    wrong_content,
)
from shared.upstream.connection.inbox import failed
from shared.upstream.connection.limits import ERROR_BODY, MESSAGE_BYTES
from shared.upstream.connection.transport import Streams
from shared.upstream.connection.whole import send_whole_requests

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig

#: A status of no meaning on the wire: it makes the SDK read the JSON-RPC error in the body.
_FAILED: Final = 599


def client_options(config: ServerConfig, connect_timeout: float) -> dict[str, Any]:
    """Headers, timeouts and the check of certificates, as configured.

    Without `sse_read_timeout` a silent answer is waited for as long as its call may take: each has a deadline
    of its own, and a server that works for ten minutes is not dead.
    """
    seconds = config.timeout or connect_timeout
    return {
        "headers": config.headers,
        "timeout": httpx2.Timeout(seconds, read=config.sse_read_timeout, pool=None),
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        "verify": config.verify,
        "follow_redirects": False,
    }


class GuardedClient(httpx2.AsyncClient):
    """`session_id`: the one that the server gave at the handshake; None for a server without sessions."""

    session_id: str | None = None

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            return _answer(request, network_failure(error))
        return await self.judged(request, response)

    async def judged(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """The answer to a POST, or what is wrong with it as one that the SDK hands to the request."""
        self.session_id = response.headers.get(MCP_SESSION_ID, self.session_id)
        if response.status_code == 202 or response.has_redirect_location:
            return response
        try:
            if response.status_code >= 400:
                return await _error_answer(request, response)
            return await _checked(request, response)
        except httpx2.TransportError as error:
            await response.aclose()
            return _answer(request, network_failure(error))


def _answer(request: httpx2.Request, failure: Failure) -> httpx2.Response:
    body = failed(None, failure).model_dump_json(by_alias=True)
    return httpx2.Response(
        _FAILED, headers={"content-type": "application/json"}, content=body.encode(), request=request
    )


async def _checked(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """The answer with its whole JSON body, an event stream as it is, or what is wrong with it."""
    content_type = response.headers.get("content-type", "").lower()
    if content_type.startswith("text/event-stream"):
        response.stream = _ReadToEnd(cast("httpx2.AsyncByteStream", response.stream))
        return response
    if not content_type.startswith("application/json"):
        await response.aclose()
        # A notification may be answered with anything.
        return _answer(request, wrong_content(content_type))
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and "content-encoding" not in response.headers:
        if int(declared) > MESSAGE_BYTES:
            await response.aclose()
            return _answer(request, too_large(MESSAGE_BYTES, int(declared)))
        # Read here, where a connection that breaks off hits one request only; the SDK finds it read.
        await response.aread()
        return response
    body = await first_of(response, MESSAGE_BYTES + 1)
    if len(body) > MESSAGE_BYTES:
        return _answer(request, too_large(MESSAGE_BYTES))
    headers = {"content-type": "application/json"}
    if session := response.headers.get(MCP_SESSION_ID):
        headers[MCP_SESSION_ID] = session
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


async def _error_answer(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """A JSON-RPC error stays what it is where the status is one that the protocol gives to it; the rest becomes
    a failure.

    With 404, 2026-07-28 says that a method (or what it names) is unknown. Any other error there tells of the
    endpoint or of its session; one with 405, that it takes no POST: an older server may live there.
    """
    body = await first_of(response, ERROR_BODY * 4)
    content_type = response.headers.get("content-type", "")
    status = response.status_code
    session = MCP_SESSION_ID in request.headers
    said = _json_rpc_error(body) if "json" in content_type.lower() else None
    about_endpoint = status in (401, 403, 404, 405)
    if said is not None and status == 404 and said.error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
        about_endpoint = False
    if said is not None and not about_endpoint:
        return httpx2.Response(
            status, headers={"content-type": "application/json"}, content=body, request=request
        )
    text = said.error.message if said is not None else body[:ERROR_BODY].decode("utf-8", "replace")
    return _answer(request, status_failure(status, text, content_type, session=session))


def _json_rpc_error(body: bytes) -> JSONRPCError | None:
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None
    return message if isinstance(message, JSONRPCError) else None


async def first_of(response: httpx2.Response, most: int) -> bytes:
    """The body, or somewhat more than `most` bytes of it; the response is closed."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size >= most:
                break
    finally:
        await response.aclose()
    return b"".join(parts)


class _ReadToEnd(httpx2.AsyncByteStream):
    """An event stream that is read to its end when it is closed, if that is near.

    The SDK closes a stream at the message it waits for, a moment before its end: that costs a new TCP
    connection (and TLS session) for each call. The call itself does not wait for this.
    """

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner
        self._parts = inner.__aiter__()
        self._ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part
        self._ended = True

    async def aclose(self) -> None:
        try:
            if not self._ended:
                with contextlib.suppress(TimeoutError, httpx2.TransportError):
                    async with asyncio.timeout(NEAR):
                        async for _ in self._parts:
                            pass
        finally:
            await self._inner.aclose()


@asynccontextmanager
async def open_http(config: ServerConfig, connect_timeout: float) -> AsyncIterator[Streams]:
    """The streams of one streamable HTTP endpoint. Nothing is sent yet."""
    assert config.url is not None
    url = httpx2.URL(config.url)
    options = client_options(config, connect_timeout)
    # One for both ways: it takes its time to make.
    context = httpx2.create_ssl_context(verify=config.verify) if url.scheme == "https" else None
    if context is not None:
        options["verify"] = context
    async with GuardedClient(**options) as client:
        send_whole_requests(client)
        direct = DirectPosts.to(url, client, context)
        posts = CallPosts(url, client, direct)
        try:
            yield Streams(posts.arrivals, posts.outbox, session=lambda: client.session_id)
        finally:
            await posts.close(terminate=config.terminate_on_close is not False)
