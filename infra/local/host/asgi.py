"""What every HTTP route shares: types of the ASGI messages, reading a body within the limit, short answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence

type Scope = MutableMapping[str, Any]
type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Header = tuple[bytes, bytes]

JSON_TYPE: Header = (b"content-type", b"application/json")
TEXT_TYPE: Header = (b"content-type", b"text/plain; charset=utf-8")


class BodyTooLargeError(Exception):
    """The request body is over the limit: answer 413."""


class ClientGoneError(Exception):
    """The client closed the connection before its body was complete."""


def collect_headers(scope: Scope) -> dict[str, str]:
    """Request headers by lower-case name; a repeated one is joined with a comma."""
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name, text = key.decode("latin-1"), value.decode("latin-1").strip()
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    return headers


def query_fields(query: bytes) -> dict[str, str]:
    """The query string; a repeated name, in whatever case, keeps its first spelling and joins with a comma."""
    fields: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        name = spelling.setdefault(name.lower(), name)
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def given_key(headers: Mapping[str, str], query: bytes) -> str | None:
    """The key of a request: the x-functions-key header, or else the ``code`` of the query."""
    if key := headers.get("x-functions-key"):
        return key
    if b"code" not in query.lower():
        return None
    return {name.lower(): value for name, value in query_fields(query).items()}.get("code")


def header(scope: Scope, name: bytes) -> str | None:
    """A request header by its lower-case name, several joined with a comma; None when absent."""
    values = [value for key, value in scope["headers"] if key == name]
    return b",".join(values).decode("latin-1") if values else None


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, never holding more than ``limit`` bytes. Raises BodyTooLargeError or ClientGoneError."""
    declared = header(scope, b"content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise BodyTooLargeError
    message = await receive()
    body: bytes = message.get("body", b"")
    if len(body) > limit:
        raise BodyTooLargeError
    if message["type"] == "http.request" and not message.get("more_body", False):
        return body
    parts, size = [body], len(body)
    while message["type"] == "http.request" and message.get("more_body", False):
        message = await receive()
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        parts.append(part)
    if message["type"] != "http.request":
        raise ClientGoneError
    return b"".join(parts)


async def answer(send: Send, status: int, body: bytes = b"", headers: Sequence[Header] = ()) -> None:
    """Send a whole response. An empty body gets no Content-Type."""
    if status in {204, 304}:  # these have no body, whatever a function says
        body, length = b"", []
    else:
        length = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": body})


async def refuse_body(send: Send) -> None:
    """413; the connection is closed because the rest of the body is not read."""
    await answer(send, 413, headers=[(b"connection", b"close")])
