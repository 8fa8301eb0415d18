"""What every HTTP endpoint shares, on Starlette's requests and responses.

An endpoint is a function from a request to a response; ``Endpoint`` makes an ASGI app of it. No Starlette
middleware or exception handler stands in between: what a fault is answered with is the real host's affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.datastructures import QueryParams
    from starlette.types import Receive, Scope, Send


class BodyTooLargeError(Exception):
    """The request body is over the limit: answer 413."""


class Endpoint:
    """An ASGI app that answers with what ``respond`` returns."""

    def __init__(self, respond: Callable[[Request], Awaitable[Response]]) -> None:
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._respond(Request(scope, receive))
        except ClientDisconnect:
            # Before the body was complete: nobody is there to be answered.
            return
        except BodyTooLargeError:
            # The rest of the body is not read, so the connection cannot be used again.
            response = Response(status_code=413, headers={"connection": "close"})
        await response(scope, receive, send)


def collect_headers(request: Request) -> dict[str, str]:
    """Request headers by lower-case name; a repeated one is joined with a comma."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():  # a repeated name comes repeatedly
        text = value.strip()
        headers[name] = f"{headers[name]},{text}" if name in headers else text
    return headers


def query_fields(query: QueryParams) -> dict[str, str]:
    """The query string; a repeated name, in whatever case, keeps its first spelling and joins with a comma."""
    fields: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for name, value in query.multi_items():
        name = spelling.setdefault(name.lower(), name)
        fields[name] = f"{fields[name]},{value}" if name in fields else value
    return fields


def given_key(request: Request) -> str | None:
    """The key of a request: the x-functions-key header, or else the ``code`` of the query."""
    if key := header(request, "x-functions-key"):
        return key
    if b"code" not in request.scope["query_string"].lower():
        return None
    return {name.lower(): value for name, value in query_fields(request.query_params).items()}.get("code")


def header(request: Request, name: str) -> str | None:
    """A request header, several joined with a comma; None when absent."""
    values = request.headers.getlist(name)
    return ",".join(value.strip() for value in values) if values else None


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, never holding more than ``limit`` bytes and one piece.

    Raises BodyTooLargeError, and Starlette's ClientDisconnect when the client has gone.
    """
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise BodyTooLargeError
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise BodyTooLargeError
        parts.append(part)
    return b"".join(parts)
