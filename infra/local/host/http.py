"""HTTP triggers: routing, keys, the request as the worker gets it, and the answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from infra.local.host.asgi import collect_headers, given_key, query_fields, read_body
from infra.local.host.keys import AuthLevel, Verdict
from infra.local.host.routes import Template, TemplateError, parse_template, split_path
from infra.local.host.settings import resolve
from infra.local.host.values import HttpCall, HttpReply, Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from infra.local.host.invoker import Invoker
    from infra.local.host.keys import Keys
    from infra.local.host.values import Binding, Cookie, Function

logger = logging.getLogger("host.http")

RESERVED: Final = ("admin", "runtime")
_STATUSES: Final = range(200, 600)
_NO_BODY: Final = frozenset({204, 304})  # whatever a function says
_HOMEPAGE: Final = "<!doctype html><title>Functions host</title><p>The function app is up and running.</p>"
# The server frames the body itself.
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "connection"})


@dataclass(frozen=True, slots=True)
class Route:
    """One HTTP trigger. ``methods`` empty means every method."""

    function: Function
    template: Template
    methods: frozenset[str]
    auth_level: AuthLevel


def build_routes(
    triggers: list[tuple[Function, Binding]], prefix: str, environment: Mapping[str, str]
) -> list[Route]:
    """Routes in the order in which they are tried.

    A template that cannot be used is logged and its function left out, as in the real host. Raises
    HostError for a ``%SETTING%`` that does not resolve.
    """
    routes = []
    for function, binding in triggers:
        text = resolve(binding.text("route"), environment, f"route of function '{function.name}'").strip("/")
        full = "/".join(part for part in (prefix, text or function.name) if part)
        if full.lower().split("/")[0] in RESERVED:
            problem = "The specified route conflicts with one or more built in routes."
            logger.error("The '%s' function is in error: %s", function.name, problem)
            continue
        try:
            template = parse_template(full)
            level = AuthLevel(binding.text("authLevel", AuthLevel.FUNCTION).lower())
        except (TemplateError, ValueError) as error:
            logger.error("The '%s' function is in error: %s", function.name, error)
            continue
        methods = frozenset(str(method).upper() for method in binding.fields.get("methods") or ())
        routes.append(Route(function, template, methods, level))
    return sorted(routes, key=lambda route: route.template.precedence)


class HttpFront:
    """The endpoint of every path that is not the host's own."""

    def __init__(
        self, routes: list[Route], invoker: Invoker, keys: Keys, body_limit: int, *, homepage: bool
    ) -> None:
        self._routes = routes
        self._invoker = invoker
        self._keys = keys
        self._body_limit = body_limit
        self._homepage = homepage

    async def respond(self, request: Request) -> Response:
        """Answer one request."""
        scope = request.scope
        raw_path = scope["raw_path"].decode("latin-1")
        found = self._find(split_path(raw_path), request.method)
        if found is None:
            return self._unrouted(raw_path, request.method)
        route, values = found
        key = given_key(request)
        if self._keys.for_function(route.function.name, route.auth_level, key) is not Verdict.ALLOWED:
            return Response(status_code=401)
        headers = collect_headers(request)
        query = scope["query_string"].decode("latin-1")
        call = HttpCall(
            method=request.method,
            # Not request.url, which shows the path decoded.
            url=f"http://{headers.get('host', '')}{raw_path}{'?' + query if query else ''}",
            headers=_not_empty(headers),
            query=_not_empty(query_fields(request.query_params)),
            route=values,
            body=await read_body(request, self._body_limit),
        )
        data = {**_not_empty(call.query), **values} if route.function.outputs else None
        outcome = await self._invoker.run(route.function, call, data=data)
        if not outcome.ok:
            return Response(status_code=500)
        output = next((binding.name for binding in route.function.outputs if binding.type == "http"), "$return")
        return _reply(outcome.returned if output == "$return" else dict(outcome.outputs).get(output))

    def _find(self, parts: list[str], method: str) -> tuple[Route, dict[str, str]] | None:
        for route in self._routes:
            if not route.methods or method in route.methods:
                values = route.template.match(parts)
                if values is not None:
                    return route, values
        return None

    def _unrouted(self, path: str, method: str) -> Response:
        if path != "/" or method not in {"GET", "HEAD"}:
            return Response(status_code=404)
        return HTMLResponse(_HOMEPAGE) if self._homepage else Response(status_code=204)


def _not_empty(fields: Mapping[str, str]) -> dict[str, str]:
    """The Python worker gets no header and no query field without a value."""
    return {name: value for name, value in fields.items() if value}


def _reply(value: Value | None) -> Response:
    if value is None:
        return Response(status_code=204)
    if not isinstance(value.data, HttpReply):
        if value.kind is Kind.BYTES:
            return Response(value.data, media_type="application/octet-stream")
        return PlainTextResponse(str(value.data))
    reply = value.data
    status = reply.status if reply.status in _STATUSES else 500
    response = Response(b"" if status in _NO_BODY else reply.body, status)
    # Not through Starlette's mapping and cookies: names repeat, values may lie outside latin-1, and the host
    # writes cookies in a form of its own.
    headers = [(name.lower(), item) for name, item in reply.headers if name.lower() not in _FRAMING]
    headers += [("set-cookie", cookie_text(cookie)) for cookie in reply.cookies]
    response.raw_headers += [(_latin(name), _latin(item)) for name, item in headers]
    return response


def cookie_text(cookie: Cookie) -> str:
    """A Set-Cookie header's value."""
    parts = [f"{quote(cookie.name)}={quote(cookie.value, safe='')}"]
    if cookie.expires is not None:
        parts.append(f"expires={formatdate(cookie.expires, usegmt=True)}")
    if cookie.max_age is not None:
        parts.append(f"max-age={int(cookie.max_age)}")
    if cookie.domain is not None:
        parts.append(f"domain={cookie.domain}")
    parts.append(f"path={cookie.path or '/'}")
    if cookie.secure:
        parts.append("secure")
    if cookie.same_site is not None:
        parts.append(f"samesite={cookie.same_site}")
    if cookie.http_only:
        parts.append("httponly")
    return "; ".join(parts)


def _latin(text: str) -> bytes:
    """Header bytes; line breaks cannot pass and what latin-1 lacks goes out as UTF-8."""
    clean = text.replace("\r", "").replace("\n", "")
    try:
        return clean.encode("latin-1")
    except UnicodeEncodeError:
        return clean.encode()
