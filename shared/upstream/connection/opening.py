"""The transport of a configuration, opened and negotiated."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED

from shared.upstream.connection.faults import Failure, FailureKind, OpeningError, leaf
from shared.upstream.connection.session import SdkLink
from shared.upstream.connection.transport import ended

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.link import Events
    from shared.upstream.connection.tail import Tail
    from shared.upstream.connection.transport import Streams
    from shared.upstream.settings import UpstreamSettings


#: They log URLs, session ids and pieces of answers. All that they warn of comes here as an error anyway.
_TALKATIVE: Final = {
    "httpx2": logging.WARNING,
    "httpcore2": logging.WARNING,
    "websockets.client": logging.WARNING,
    "mcp.client.streamable_http": logging.CRITICAL,
    "client": logging.CRITICAL,
}
for _name, _level in _TALKATIVE.items():
    if logging.getLogger(_name).level == logging.NOTSET:
        logging.getLogger(_name).setLevel(_level)


@asynccontextmanager
async def open_link(
    config: ServerConfig, settings: UpstreamSettings, tail: Tail, events: Events
) -> AsyncIterator[SdkLink]:
    """A negotiated session. Raises the SDK's errors, `OpeningError` and `MCPConnectionError`; time is the
    caller's."""
    if config.transport == "http":
        link_of = _http_or_sse(config, settings, tail, events)
    else:
        link_of = _over(_streams(config, settings, tail), events, config.connect_timeout(settings))
    async with link_of as link:
        yield link


def _streams(
    config: ServerConfig, settings: UpstreamSettings, tail: Tail
) -> AbstractAsyncContextManager[Streams]:
    seconds = config.connect_timeout(settings)
    # A stdio server is asked twice to leave, and then it must; all of it within the time to clean up.
    patience = settings.cleanup_timeout / 4
    if config.transport == "stdio":
        from shared.upstream.connection.stdio import StdioTransport

        return StdioTransport(config, tail).open(settings.root, patience)
    if config.transport == "sse":
        from shared.upstream.connection.sse import SseTransport

        return SseTransport(config, tail).open(seconds)
    from shared.upstream.connection.websocket import WebSocketTransport

    return WebSocketTransport(config, tail).open(seconds, patience)


@asynccontextmanager
async def _over(
    streams: AbstractAsyncContextManager[Streams], events: Events, seconds: float
) -> AsyncIterator[SdkLink]:
    async with streams as opened, SdkLink(opened, events) as link:
        try:
            await link.negotiate(seconds)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and (how := await ended(opened.ending)):
                raise OpeningError(Failure(FailureKind.NETWORK, how)) from None
            raise
        yield link


@asynccontextmanager
async def _http_or_sse(
    config: ServerConfig, settings: UpstreamSettings, tail: Tail, events: Events
) -> AsyncIterator[SdkLink]:
    """Streamable HTTP; when the endpoint takes no POST (404, 405), the older HTTP with SSE, on a new client.

    What the first said is kept: when both fail, it is likely the one that tells (specification, backwards
    compatibility).
    """
    from shared.upstream.connection.http import open_http
    from shared.upstream.connection.sse import SseTransport

    seconds = config.connect_timeout(settings)
    opened = False
    try:
        async with _over(open_http(config, seconds), events, seconds) as link:
            opened = True
            yield link
            return
    except Exception as error:
        first = failure_of(error)
        if opened or first is None or not first.may_be_sse:
            raise
    tail.add(f"[connect] POST was answered with {first.text}; trying HTTP with SSE")
    try:
        async with _over(SseTransport(config, tail).open(seconds), events, seconds) as link:
            opened = True
            yield link
    except Exception as error:
        second = failure_of(error)
        if opened or second is None:
            raise
        text = f"{first.text}; tried as HTTP with SSE as well: {second.text}"
        raise OpeningError(Failure(FailureKind.STATUS, text, first.status)) from None


def failure_of(error: BaseException) -> Failure | None:
    """What a transport of ours met, if the error is of that."""
    error = leaf(error)
    if isinstance(error, OpeningError):
        return error.failure
    return Failure.of(error.error.data) if isinstance(error, MCPError) else None
