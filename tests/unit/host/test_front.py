"""Checks of the HTTP front and of the MCP endpoint that need no server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from infra.local.host.asgi import (
    BodyTooLargeError,
    Endpoint,
    collect_headers,
    given_key,
    query_fields,
    read_body,
)
from infra.local.host.catalogue import Trigger, build
from infra.local.host.front import Front, is_local_host, is_local_origin
from infra.local.host.http import build_routes, cookie_text
from infra.local.host.keys import Keys
from infra.local.host.mcp_messages import (
    BadMessageError,
    accepts_both,
    parse_message,
    title_case,
    valid_session,
)
from infra.local.host.values import Binding, Cookie, Direction, Function
from tests.unit.host.helpers import trigger


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:7071", True),
        ("LOCALHOST", True),
        ("[::1]:80", True),
        ("", False),
        (None, False),
        ("localhost.", False),
        ("127.0.0.2", False),
        ("evil.example:7071", False),
        ("127.0.0.1:7071@evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("127.0.0.1:x", False),
    ],
)
def test_hosts(host: str | None, local: bool) -> None:
    assert is_local_host(host) is local


@pytest.mark.parametrize(
    ("origin", "local"),
    [
        ("http://127.0.0.1:7071", True),
        ("https://localhost", True),
        ("http://[::1]:3000", True),
        ("null", False),
        ("", False),
        ("http://localhost/path", False),
        ("http://localhost.evil.example", False),
        ("http://user@localhost", False),
        ("ftp://localhost", False),
        ("http://[", False),
    ],
)
def test_origins(origin: str, local: bool) -> None:
    assert is_local_origin(origin) is local


@pytest.mark.parametrize(
    ("method", "path", "origin", "status"),
    [
        ("GET", "/mcp/windows/1/page/2/app.js", "null", 200),
        ("HEAD", "/mcp/windows/1/page/2/app.js", "null", 200),
        ("POST", "/mcp/windows/1/session", "null", 403),
        ("GET", "/mcp/jobs", "https://evil.example", 403),
        ("GET", "/runtime/webhooks/mcp", "null", 403),
        ("GET", "/ADMIN/functions", "null", 403),
        ("POST", "/mcp/jobs/1/cancel", "http://localhost:7071", 200),
    ],
)
def test_a_sandboxed_frame_may_read_what_a_function_serves(
    method: str, path: str, origin: str, status: int
) -> None:
    """Its origin is `null`, as is that of many a hostile page: so it may do nothing else."""
    front = Front(Response(), {"mcp": Response()}, Keys(), list, lambda name: False)
    raw = [(b"host", b"127.0.0.1:7071"), (b"origin", origin.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(front(scope, receive, send))
    assert sent[0]["status"] == status


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    is_local_origin(text)
    is_local_host(text)


def test_query_fields_merge_names_in_any_case() -> None:
    assert query_fields(QueryParams(b"a=1&B=&A=2&c=%C3%BC+x")) == {"a": "1,2", "B": "", "c": "ü x"}


@pytest.mark.parametrize(
    ("headers", "query", "key"),
    [
        ({}, b"", None),
        ({"x-functions-key": "h"}, b"code=q", "h"),
        ({"x-functions-key": ""}, b"code=q", "q"),
        ({}, b"a=1&CODE=q%3D", "q="),
        ({}, b"barcode=1", None),
    ],
)
def test_given_key(headers: dict[str, str], query: bytes, key: str | None) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert given_key(Request({"type": "http", "headers": raw, "query_string": query})) == key


def test_repeated_headers_are_joined() -> None:
    raw = [(b"a", b" 1 "), (b"b", b""), (b"a", b"\xfc")]
    assert collect_headers(Request({"type": "http", "headers": raw})) == {"a": "1,ü", "b": ""}


@pytest.mark.parametrize(
    ("declared", "parts", "outcome"),
    [
        (None, [b"abc"], b"abc"),
        (None, [b"ab", b"c"], b"abc"),
        (None, [], b""),
        (b"3", [b"abc"], b"abc"),
        (b"4", [b"abc"], BodyTooLargeError),
        (None, [b"abcd"], BodyTooLargeError),
        (None, [b"ab", b"cd", b"never read"], BodyTooLargeError),
        (None, [b"ab", None], ClientDisconnect),
    ],
)
def test_read_body(declared: bytes | None, parts: list[bytes | None], outcome: Any) -> None:
    messages: list[Any] = [
        {"type": "http.disconnect"}
        if part is None
        else {"type": "http.request", "body": part, "more_body": index < len(parts) - 1}
        for index, part in enumerate(parts)
    ] or [{"type": "http.request"}]
    headers = [] if declared is None else [(b"content-length", declared)]

    async def receive() -> Any:
        return messages.pop(0)

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def respond(request: Request) -> Response:
        return Response(await read_body(request, 3))

    asyncio.run(Endpoint(respond)({"type": "http", "headers": headers}, receive, send))
    if outcome is ClientDisconnect:
        assert sent == []  # nobody is there to be answered
    elif outcome is BodyTooLargeError:
        assert sent[0]["status"] == 413
        assert (b"connection", b"close") in sent[0]["headers"]
    else:
        assert (sent[0]["status"], sent[1]["body"]) == (200, outcome)


# MCP messages


@pytest.mark.parametrize(
    ("accept", "both"),
    [
        ("application/json, text/event-stream", True),
        ("text/event-stream;q=0.1,application/json;charset=utf-8", True),
        ("*/*", True),
        ("application/*, text/*", True),
        ("application/json", False),
        ("text/*", False),
        ("", False),
        ("application/jsonx, text/event-stream", False),
    ],
)
def test_accept(accept: str, both: bool) -> None:
    assert accepts_both(accept) is both


@pytest.mark.parametrize(
    ("session", "valid"),
    [(None, True), ("", True), ("a|b", True), ("a", False), ("|", False), ("a|", False), ("a|b|c", False)],
)
def test_session(session: str | None, valid: bool) -> None:
    assert valid_session(session) is valid


@given(st.binary(max_size=60), st.sampled_from(["application/json", "application/json; charset=utf-16", ""]))
def test_any_body_is_a_message_or_a_bad_one(body: bytes, content_type: str) -> None:
    try:
        message = parse_message(body, content_type)
    except BadMessageError:
        return
    assert message is None or message["jsonrpc"] == "2.0"


def test_message_in_another_charset() -> None:
    body = '{"jsonrpc":"2.0","id":"ü","method":"m"}'.encode("utf-16")
    message = parse_message(body, 'Application/vnd.x+JSON; charset="utf-16"')
    assert message is not None
    assert message["id"] == "ü"
    with pytest.raises(BadMessageError):
        parse_message(body, "application/json; charset=nonsense")


def test_title_case() -> None:
    assert title_case("x-mcp-auth-token") == "X-Mcp-Auth-Token"


# functions


def test_cookie_text() -> None:
    assert cookie_text(Cookie("a", "b c;")) == "a=b%20c%3B; path=/"
    full = Cookie("a", "b", "d.example", "/p", 0, 5.0, True, True, "strict")
    assert cookie_text(full) == (
        "a=b; expires=Thu, 01 Jan 1970 00:00:00 GMT; max-age=5; domain=d.example; path=/p; secure; "
        "samesite=strict; httponly"
    )


def test_routes_are_resolved_and_reserved_ones_left_out(caplog: pytest.LogCaptureFixture) -> None:
    triggers = [
        trigger("httpTrigger", function="b", route="%PLACE%/{id}", authLevel="ANONYMOUS", methods=["get"]),
        trigger("httpTrigger", function="a", route=""),
        trigger("httpTrigger", function="c", route="{x}{y}"),
        trigger("httpTrigger", function="d", route="d", authLevel="nobody"),
    ]
    routes = build_routes(triggers, "", {"PLACE": "here"})
    assert [(route.template.text, set(route.methods)) for route in routes] == [
        ("a", set()),
        ("here/{id}", {"GET"}),
    ]
    assert caplog.text.count("is in error") == 2
    assert build_routes([trigger("httpTrigger", route="x")], "Runtime", {}) == []


def test_catalogue_keeps_what_is_wanted_and_can_be_run(caplog: pytest.LogCaptureFixture) -> None:
    def extra(kind: str, direction: Direction) -> Function:
        _, binding = trigger("httpTrigger")
        return Function("id", kind, (binding, Binding("x", kind, direction, {})))

    functions = [
        trigger("httpTrigger", function="h")[0],
        trigger("QueueTrigger", function="q")[0],
        trigger("mcpToolTrigger", function="m")[0],
        trigger("timerTrigger", function="off")[0],
        trigger("blobTrigger", function="blob")[0],
        Function("id", "bare", ()),
        extra("table", Direction.IN),
        extra("sendGrid", Direction.OUT),
    ]
    environment = {"AzureWebJobs.off.Disabled": "true"}
    made = build(functions, {Trigger.HTTP, Trigger.QUEUE, Trigger.TIMER}, environment)
    assert [function.name for function, _ in made.active()] == ["h", "q"]
    assert made.has(Trigger.QUEUE)
    assert not made.has(Trigger.MCP)
    assert made.disabled == {"off"}
    assert caplog.text.count("is in error") == 4
