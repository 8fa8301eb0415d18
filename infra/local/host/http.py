"""HTTP triggers: routing, keys, the request as the worker gets it, and the answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from infra.local.host.asgi import (
    TEXT_TYPE,
    BodyTooLargeError,
    ClientGoneError,
    answer,
    collect_headers,
    given_key,
    query_fields,
    read_body,
    refuse_body,
)
from infra.local.host.keys import AuthLevel, Verdict
from infra.local.host.routes import Template, TemplateError, parse_template, split_path
from infra.local.host.settings import resolve
from infra.local.host.values import HttpCall, HttpReply, Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.host.asgi import Header, Receive, Scope, Send
    from infra.local.host.invoker import Invoker
    from infra.local.host.keys import Keys
    from infra.local.host.values import Binding, Cookie, Function

logger = logging.getLogger("host.http")

RESERVED: Final = ("admin", "runtime")
_STATUSES: Final = range(200, 600)
_HOMEPAGE: Final = b"<!doctype html><title>Functions host</title><p>The function app is up and running.</p>"
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
    """ASGI app for every path that is not the host's own."""

    def __init__(
        self, routes: list[Route], invoker: Invoker, keys: Keys, body_limit: int, *, homepage: bool
    ) -> None:
        self._routes = routes
        self._invoker = invoker
        self._keys = keys
        self._body_limit = body_limit
        self._homepage = homepage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        raw_path = scope["raw_path"].decode("latin-1")
        found = self._find(split_path(raw_path), scope["method"])
        if found is None:
            await self._unrouted(raw_path, scope["method"], send)
            return
        route, values = found
        headers = collect_headers(scope)
        key = given_key(headers, scope["query_string"])
        if self._keys.for_function(route.function.name, route.auth_level, key) is not Verdict.ALLOWED:
            await answer(send, 401)
            return
        try:
            body = await read_body(scope, receive, self._body_limit)
        except BodyTooLargeError:
            await refuse_body(send)
            return
        except ClientGoneError:
            return
        query = scope["query_string"].decode("latin-1")
        url = f"http://{headers.get('host', '')}{raw_path}{'?' + query if query else ''}"
        call = HttpCall(
            method=scope["method"],
            url=url,
            headers=_not_empty(headers),
            query=_not_empty(query_fields(scope["query_string"])),
            route=values,
            body=body,
        )
        data = {**_not_empty(call.query), **values} if route.function.outputs else None
        outcome = await self._invoker.run(route.function, call, data=data)
        if not outcome.ok:
            await answer(send, 500)
            return
        output = next((binding.name for binding in route.function.outputs if binding.type == "http"), "$return")
        value = outcome.returned if output == "$return" else dict(outcome.outputs).get(output)
        await _reply(send, value)

    def _find(self, parts: list[str], method: str) -> tuple[Route, dict[str, str]] | None:
        for route in self._routes:
            if not route.methods or method in route.methods:
                values = route.template.match(parts)
                if values is not None:
                    return route, values
        return None

    async def _unrouted(self, path: str, method: str, send: Send) -> None:
        if path != "/" or method not in {"GET", "HEAD"}:
            await answer(send, 404)
        elif self._homepage:
            await answer(send, 200, _HOMEPAGE, [(b"content-type", b"text/html; charset=utf-8")])
        else:
            await answer(send, 204)


def _not_empty(fields: Mapping[str, str]) -> dict[str, str]:
    """The Python worker gets no header and no query field without a value."""
    return {name: value for name, value in fields.items() if value}


async def _reply(send: Send, value: Value | None) -> None:
    if value is None:
        await answer(send, 204)
    elif isinstance(value.data, HttpReply):
        reply = value.data
        headers = [(_latin(name.lower()), _latin(item)) for name, item in reply.headers]
        headers = [item for item in headers if item[0].decode("latin-1") not in _FRAMING]
        headers += [(b"set-cookie", _latin(cookie_text(cookie))) for cookie in reply.cookies]
        status = reply.status if reply.status in _STATUSES else 500
        await answer(send, status, reply.body, headers)
    else:
        body = value.data if isinstance(value.data, bytes) else str(value.data).encode()
        kind: Header = (
            TEXT_TYPE if value.kind is not Kind.BYTES else (b"content-type", b"application/octet-stream")
        )
        await answer(send, 200, body, [kind])


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
