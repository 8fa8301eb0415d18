"""Calls over streamable HTTP go past the HTTP client. What it does for requests holds for them all the same."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from shared.errors import MCPConnectionError, MCPError, MCPProtocolError
from shared.upstream.connection import direct
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import (
    Answer,
    HttpServer,
    Seen,
    http_server,
    result_of,
    self_signed,
)

from .web import at, plain, said

SETTINGS = UpstreamSettings()
EVENTS = {"content-type": "text/event-stream"}


def is_call(seen: Seen) -> bool:
    return seen.method == "POST" and seen.message["method"] == "tools/call"


def calls_of(server: HttpServer) -> list[Seen]:
    return [seen for seen in server.seen if seen.method == "POST" and seen.body and is_call(seen)]


def done(seen: Seen, text: str = "done") -> bytes:
    return json.dumps(result_of(seen.message, {"content": [{"type": "text", "text": text}]})).encode()


async def parts_of(*parts: bytes) -> AsyncGenerator[bytes]:
    for part in parts:
        yield part
        await asyncio.sleep(0.01)


def answering(*answers: Any) -> Any:
    """A server that answers the calls so, one after the other (the last one for ever): `Seen` -> `Answer`."""
    left = [*answers]

    async def handler(seen: Seen) -> Answer | None:
        if not is_call(seen):
            return await plain(seen)
        answer: Answer = (left.pop(0) if len(left) > 1 else left[0])(seen)
        return answer

    return handler


async def outcome(handler: Any, **fields: Any) -> str:
    """What one call of such a server gives."""
    async with http_server(handler) as web, ServerConnection(at(web.url, **fields), SETTINGS) as one:
        return said(await one.call_tool("work", {"text": "ü"}, timeout=10))


def one_call(handler: Any, **fields: Any) -> str:
    return asyncio.run(outcome(handler, **fields))


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/json"},
        {"content-type": "Application/JSON; charset=UTF-8"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "text/event-stream;charset=utf-8"},
        {"content-type": "text/event-stream", "content-encoding": "gzip"},
        {"content-type": "text/event-stream; charset=latin-1"},
    ],
)
@pytest.mark.parametrize("cut", [3, 100_000])
def test_an_answer_in_every_form(headers: Mapping[str, str], cut: int) -> None:
    def answer(seen: Seen) -> Answer:
        body = done(seen, "answered")
        if "event-stream" in headers["content-type"]:
            body = b": hello\r\nevent: message\r\ndata: " + body + b"\r\n\r\n"
        if "content-encoding" in headers:
            body = gzip.compress(body)
        return 200, headers, parts_of(*(body[at : at + cut] for at in range(0, len(body), cut)))

    assert one_call(answering(answer)) == "answered"


def test_what_a_server_says_before_its_answer_is_heard_in_order() -> None:
    """Progress and log lines on the call's own stream, all in one piece with the answer."""

    def answer(seen: Seen) -> Answer:
        token = seen.message["params"]["_meta"]["progressToken"]
        notes: list[dict[str, Any]] = [
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": step, "total": 4},
            }
            for step in (1, 2, 3)
        ]
        notes.insert(1, {"method": "notifications/message", "params": {"level": "warning", "data": "careful"}})
        lines = [json.dumps({"jsonrpc": "2.0", **note}).encode() for note in notes]
        body = b"".join(b"data: " + line + b"\n\n" for line in (*lines, done(seen)))
        return 200, EVENTS, body

    async def main() -> None:
        heard: list[Any] = []
        async with http_server(answering(answer)) as web, ServerConnection(at(web.url), SETTINGS) as one:
            await one.call_tool(
                "work",
                on_progress=lambda progress, total, message: heard.append(progress),
                on_log=lambda level, text: heard.append((level, text)),
            )
        assert heard == [1, ("warn", "careful"), 2, 3]

    asyncio.run(main())


def test_a_stream_that_ends_early_is_resumed_where_it_was() -> None:
    async def main() -> None:
        resumed: list[str] = []
        call: list[Seen] = []

        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "GET" and "last-event-id" in seen.headers:
                resumed.append(seen.headers["last-event-id"])
                return 200, EVENTS, b"data: " + done(call[0], "in the end") + b"\n\n"
            if is_call(seen):
                call.append(seen)
                return 200, EVENTS, b"id: e-7\nretry: 10\ndata:\n\n"
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            assert said(await one.call_tool("work", timeout=10)) == "in the end"
            assert len(calls_of(web)) == 1
        assert resumed == ["e-7"]

    asyncio.run(main())


@pytest.mark.parametrize("status", [307, 308])
def test_a_call_that_is_sent_elsewhere_is_followed_there(status: int) -> None:
    """Within the server's own origin; from then on the client follows by itself."""

    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            if is_call(seen) and not seen.path.endswith("/"):
                return status, {"location": f"{seen.path}/"}, b""
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            assert said(await one.call_tool("work")) == "done"
            assert said(await one.call_tool("work")) == "done"
            assert [seen.path for seen in calls_of(web)].count("/mcp/") == 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_call_that_may_have_been_carried_out_is_not_sent_again(status: int) -> None:
    async def main() -> None:
        handler = answering(lambda seen: (status, {"location": "/done"}, b""))
        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            with pytest.raises(MCPError, match=f"HTTP {status}"):
                await one.call_tool("work")
            assert len(calls_of(web)) == 1
            assert one.state is ServerState.CONNECTED

    asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        ((500, {"content-type": "text/plain"}, b"it broke"), MCPConnectionError, "HTTP 500.*it broke"),
        ((401, {}, b""), MCPConnectionError, "HTTP 401.*credentials"),
        ((404, {}, b""), MCPConnectionError, "HTTP 404"),
        ((202, {}, b""), MCPProtocolError, "202 Accepted"),
        ((200, {"content-type": "text/html"}, b"<p>"), MCPProtocolError, "text/html, not JSON"),
        ((200, {}, b"{}"), MCPProtocolError, "no content type"),
        ((200, {"content-type": "application/json"}, b"\xff"), MCPProtocolError, "Failed to parse JSON"),
        ((200, EVENTS, b"data: {oops\n\n"), MCPProtocolError, "Failed to parse SSE"),
        ((200, EVENTS, b": nothing\n\n"), MCPConnectionError, "broke off"),
    ],
)
@pytest.mark.parametrize("past_the_client", [True, False])
def test_what_is_no_answer_is_told_the_same_both_ways(
    answer: Answer, error: type[Exception], text: str, past_the_client: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not past_the_client:
        monkeypatch.setattr(direct.DirectPosts, "to", lambda *_: None)

    async def main() -> None:
        handler = answering(lambda seen: answer)
        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            with pytest.raises(error, match=text):
                await one.call_tool("work", timeout=10)
            assert one.state is ServerState.CONNECTED
            assert [tool.name for tool in await one.list_tools()] == ["work"]

    asyncio.run(main())


@pytest.mark.parametrize("handshake", [True, False])
def test_cookies_of_a_server_are_kept_and_sent(handshake: bool) -> None:
    """What a load balancer tells its instances apart by; set by the handshake or by a call, and set anew."""

    async def main() -> None:
        names = iter("bcd")

        async def handler(seen: Seen) -> Answer | None:
            answer = await plain(seen)
            if answer is None or seen.method != "POST":
                return answer
            status, headers, body = answer
            if handshake and seen.message["method"] == "initialize":
                return status, {**headers, "set-cookie": "instance=a; path=/"}, body
            if is_call(seen):
                return status, {**headers, "set-cookie": f"instance={next(names)}; path=/"}, body
            return answer

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            for _ in range(3):
                await one.call_tool("work")
            first = "instance=a" if handshake else None
            assert [seen.headers.get("cookie") for seen in calls_of(web)] == [first, "instance=b", "instance=c"]

    asyncio.run(main())


def test_calls_have_the_headers_of_the_configuration_and_of_the_session() -> None:
    async def main() -> None:
        async def handler(seen: Seen) -> Answer | None:
            answer = await plain(seen)
            if answer is not None and seen.method == "POST" and seen.message["method"] == "initialize":
                return answer[0], {**answer[1], "mcp-session-id": "s-1"}, answer[2]
            return answer

        config = {"headers": {"X-Key": "k-1"}}
        async with http_server(handler) as web, ServerConnection(at(web.url, **config), SETTINGS) as one:
            await one.call_tool("work", {"text": "ü"})
            (call,) = calls_of(web)
            (other,) = [seen for seen in web.seen if seen.body and seen.message["method"] == "tools/list"]
        differ = {"content-length"}
        assert {key: call.headers[key] for key in call.headers if key not in differ} == {
            key: other.headers[key] for key in other.headers if key not in differ
        }
        assert call.headers["x-key"] == "k-1"
        assert call.headers["mcp-session-id"] == "s-1"
        assert call.message["params"]["arguments"] == {"text": "ü"}

    asyncio.run(main())


def test_a_proxy_is_the_clients_business(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with http_server(plain) as proxy, http_server(plain) as web:
            for name in ("HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(name, proxy.url.removesuffix("/mcp"))
            for name in ("NO_PROXY", "no_proxy"):
                monkeypatch.delenv(name, raising=False)
            async with ServerConnection(at(web.url), SETTINGS) as one:
                assert said(await one.call_tool("work")) == "done"
            assert [call.path for call in calls_of(proxy)] == [web.url]
            assert web.seen == []

    asyncio.run(main())


def test_a_server_that_is_gone_was_not_sent_the_call() -> None:
    """Nothing listens any more: the pool opens another connection, and tells that there is none."""

    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        async with http_server(plain) as web:
            await pool.call(at(web.url), "work")
        with pytest.raises(MCPConnectionError, match="cannot be reached: ConnectError"):
            await pool.call(at(web.url), "work")
        await pool.close()

    asyncio.run(main())


def test_calls_over_tls_are_checked_like_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the one context that the client has."""
    contexts: list[Any] = []
    to = direct.DirectPosts.to

    def noted(url: Any, client: Any, context: Any) -> Any:
        contexts.append((context, client._transport._pool._ssl_context))
        return to(url, client, context)

    monkeypatch.setattr(direct.DirectPosts, "to", noted)

    async def main() -> None:
        async with (
            http_server(plain, self_signed()) as web,
            ServerConnection(at(web.url, verify=False), SETTINGS) as one,
        ):
            assert said(await one.call_tool("work")) == "done"
            assert said(await one.call_tool("work")) == "done"

    asyncio.run(main())
    ((ours, theirs),) = contexts
    assert ours is not None
    assert ours is theirs


def test_an_error_without_an_id_is_the_calls() -> None:
    """A server that could not read the request does not know its id."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "I cannot read this"}}
    handler = answering(lambda seen: (200, {"content-type": "application/json"}, json.dumps(error).encode()))
    with pytest.raises(MCPProtocolError, match="I cannot read this"):
        one_call(handler)


@pytest.mark.parametrize(
    "message",
    [
        {"method": "notifications/tools/list_changed"},
        {"method": "ping", "id": 1},
        {"id": "call-77", "result": {"content": []}},
        {"id": 7, "error": {"code": 1, "message": "of another"}},
    ],
)
def test_what_comes_in_the_place_of_an_answer_is_not_waited_on(message: Mapping[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    handler = answering(lambda seen: (200, {"content-type": "application/json"}, body))
    with pytest.raises(MCPProtocolError, match="answers another request, or none"):
        one_call(handler)


def test_a_compressed_stream_that_ends_early_is_resumed_too() -> None:
    async def main() -> None:
        call: list[Seen] = []

        async def handler(seen: Seen) -> Answer | None:
            if seen.method == "GET" and "last-event-id" in seen.headers:
                return 200, EVENTS, b"data: " + done(call[0], seen.headers["last-event-id"]) + b"\n\n"
            if is_call(seen):
                call.append(seen)
                body = gzip.compress(b"id: e-7\nretry: 10\ndata:\n\n")
                return 200, {**EVENTS, "content-encoding": "gzip"}, body
            return await plain(seen)

        async with http_server(handler) as web, ServerConnection(at(web.url), SETTINGS) as one:
            assert said(await one.call_tool("work", timeout=10)) == "e-7"
            assert len(calls_of(web)) == 1

    asyncio.run(main())


def test_arguments_that_are_no_utf_8_are_no_fault_of_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with http_server(plain) as web, ServerConnection(at(web.url), SETTINGS) as one:
            with pytest.raises(MCPProtocolError, match="cannot be written as JSON"):
                await one.call_tool("work", {"text": "\ud800"})
            assert calls_of(web) == []
            assert said(await one.call_tool("work")) == "done"

    asyncio.run(main())
    assert not caplog.records
