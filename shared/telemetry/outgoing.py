"""The spans of what a tool asks of others, and the trace that goes along with it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from shared.telemetry import names
from shared.telemetry.names import Attribute, SpanName
from shared.telemetry.routes import dataverse_route, power_platform_route
from shared.telemetry.spans import NO_SPAN, Kind, Recorded, Span, count, error_type, switch
from shared.telemetry.trace import HEADER, current

_ROUTES: Final = {SpanName.DATAVERSE: dataverse_route, SpanName.POWER_PLATFORM: power_platform_route}
#: Words of the specification; any other method would be an attribute that callers make up.
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
OTHER_METHOD: Final = "_OTHER"


def headers() -> dict[str, str]:
    """What an HTTP request carries of the trace that it is in."""
    found = _traceparent()
    return {HEADER: found} if found else {}


def into_message(params: dict[str, Any], options: dict[str, Any]) -> None:
    """The same for a request to an MCP server: in its `_meta`, and in the headers where it goes over HTTP."""
    if found := _traceparent():
        params["_meta"] = {**(params.get("_meta") or {}), HEADER: found}
        options["headers"] = {**(options.get("headers") or {}), HEADER: found}


def request(service: str, method: str, url: str) -> Span:
    """`dataverse.request METHOD` or `powerplatform.request METHOD`; `service`: one of these two names."""
    if (out := switch.out) is None:
        return NO_SPAN
    name = SpanName(service)
    method = method if method in METHODS else OTHER_METHOD
    span = Recorded(out, f"{name} {method}", Kind.CLIENT, parent=current.get())
    parts = urlsplit(url)
    span.set(Attribute.SERVICE, service.removesuffix(".request"))
    span.set(Attribute.HTTP_METHOD, method)
    span.set(Attribute.HOST, parts.hostname or "")
    span.set(Attribute.ROUTE, _ROUTES[name](parts.path))
    return span


def answered(span: Span, status: int | None, sent: int, error: BaseException | None) -> None:
    """`status`: of the last answer, if there was one; `sent`: how often the request went out."""
    if not isinstance(span, Recorded):
        return
    span.set(Attribute.HTTP_STATUS, status)
    if sent > 1:
        span.set(Attribute.HTTP_RESENDS, sent - 1)
    if error is not None:
        span.set(Attribute.ERROR, str(status) if status is not None and status >= 300 else error_type(error))
    told = span.attributes
    count(
        span.out,
        names.REQUEST_DURATION,
        span.seconds,
        HTTP_METHOD=told.get(Attribute.HTTP_METHOD),
        HOST=told.get(Attribute.HOST),
        SERVICE=told.get(Attribute.SERVICE),
        HTTP_STATUS=status,
        ERROR=told.get(Attribute.ERROR),
    )


def upstream(server: str, tool: str, transport: str) -> Span:
    """`upstream.call SERVER/TOOL`. The names are the configuration's and the lock file's."""
    if (out := switch.out) is None:
        return NO_SPAN
    span = Recorded(out, f"{SpanName.UPSTREAM} {server}/{tool}", Kind.CLIENT, parent=current.get())
    span.set(Attribute.METHOD_NAME, "tools/call")
    span.set(Attribute.TOOL, tool)
    span.set(Attribute.SERVER, server)
    span.set(Attribute.TRANSPORT, transport)
    return span


def upstream_answered(span: Span, error: BaseException | None, *, success: bool) -> None:
    """`success`: whether the tool's answer is a result; `error`: what was raised in the place of an answer."""
    if not isinstance(span, Recorded):
        return
    if error is not None:
        span.set(Attribute.ERROR, error_type(error))
    elif not success:
        span.set(Attribute.ERROR, "tool_error")
    told = span.attributes
    count(
        span.out,
        names.UPSTREAM_DURATION,
        span.seconds,
        METHOD_NAME="tools/call",
        TOOL=told.get(Attribute.TOOL),
        SERVER=told.get(Attribute.SERVER),
        TRANSPORT=told.get(Attribute.TRANSPORT),
        ERROR=told.get(Attribute.ERROR),
    )


def _traceparent() -> str:
    if (out := switch.out) is None or not out.propagates:
        return ""
    place = current.get()
    return "" if place is None else place.traceparent
