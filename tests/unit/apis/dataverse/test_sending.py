"""How requests are sent: repeats, tokens, deadlines, errors, headers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from shared.apis import retry
from shared.apis.dataverse import DataverseApi
from shared.errors import DataverseError, ToolError
from tests.support.dataverse import ID, FakeEnvironment, Wire, answer, refused

OK: dict[str, list[int]] = {"value": []}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, none of which takes place."""
    seen: list[float] = []

    class Asyncio:
        """asyncio for the module under test alone: what others in this process wait for is not counted."""

        def __getattr__(self, name: str) -> Any:
            return getattr(asyncio, name)

        async def sleep(self, seconds: float, result: Any = None) -> None:
            seen.append(seconds)

    for module in ("shared.apis.retry", "shared.apis.http"):
        monkeypatch.setattr(f"{module}.asyncio", Asyncio())
    monkeypatch.setattr("shared.apis.http.Host.pause", lambda self, connection, seconds: None)
    return seen


@pytest.mark.parametrize("status", [429, 503])
def test_busy_is_repeated_after_what_it_asks_for(status: int, waits: list[float]) -> None:
    wire = Wire(refused(status, "0x80072322", "busy", retry_after="7"), answer({"accountid": ID}, 201))
    assert wire.api.create("account", {"name": "A"}).id == ID
    assert waits == [7.0]
    assert [request.content for request in wire.requests] == [b'{"name":"A"}'] * 2


def test_a_retry_after_of_nothing_is_no_storm(waits: list[float]) -> None:
    past = "Thu, 01 Jan 1970 00:00:00 GMT"
    wire = Wire(*[refused(503, "1", "busy", retry_after=when) for when in ("0", past) * 3], answer(OK))
    wire.api.queryData("accounts")
    assert len(waits) == 6
    assert 0 < waits[0] <= 1.0 < waits[3] < waits[5]


def test_without_retry_after_the_waits_grow(waits: list[float]) -> None:
    wire = Wire(*[httpx.Response(503)] * 7, answer(OK))
    wire.api.queryData("accounts")
    assert len(waits) == 7
    assert waits[0] <= 1.0 < waits[3] < waits[6] <= 30.5


def test_it_gives_up_with_the_last_refusal(waits: list[float]) -> None:
    wire = Wire(*[refused(429, "0x80072322", "busy", retry_after="1", x_ms_service_request_id="r-1")] * 20)
    with pytest.raises(DataverseError) as caught:
        wire.api.queryData("accounts")
    assert len(wire.requests) == retry.ATTEMPTS
    error = caught.value
    assert (error.service_code, error.status, error.request_id, error.retry_after) == (
        "0x80072322",
        429,
        "r-1",
        1.0,
    )
    assert error.message == "0x80072322: busy (HTTP 429, request id r-1)"


def test_nothing_waits_beyond_the_deadline() -> None:
    wire = Wire(
        refused(429, "1", "busy", retry_after="60"), environment=FakeEnvironment(ends=time.monotonic() + 5)
    )
    began = time.monotonic()
    with pytest.raises(DataverseError, match="busy"):
        wire.api.queryData("accounts")
    assert time.monotonic() - began < 2


def test_a_slow_answer_ends_with_the_invocation() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(30)
        raise AssertionError

    wire = Wire(environment=FakeEnvironment(ends=time.monotonic() + 0.5))
    wire.hosts._transport = httpx.MockTransport(slow)
    with pytest.raises(DataverseError, match="before the invocation's time was up"):
        wire.api.queryData("accounts")


def test_a_429_holds_the_other_calls_of_that_connection() -> None:
    times: list[float] = []

    def note(request: httpx.Request) -> httpx.Response:
        times.append(time.monotonic())
        return answer(OK)

    async def main() -> None:
        first = wire.api.queryData("accounts")
        while not wire.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await asyncio.gather(first, wire.api.queryData("contacts"))

    wire = Wire(refused(429, "1", "busy", retry_after="0.4"), note, note)
    began = time.monotonic()
    asyncio.run(main())
    assert all(at - began >= 0.35 for at in times)


def test_a_429_holds_no_call_of_another_connection() -> None:
    wire = Wire(refused(429, "1", "busy", retry_after="50"), answer(OK))
    with pytest.raises(DataverseError):
        _with(wire, ends=time.monotonic() + 5).queryData("accounts")
    wire.environment = FakeEnvironment(id="connection-2", ends=time.monotonic() + 5)
    assert wire.api.queryData("accounts") == OK


def test_an_odd_retry_after_holds_nobody_for_longer_than_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(refused(429, "1", "busy", retry_after="86400"), answer(OK))
    with pytest.raises(DataverseError, match="it asks to wait for 86400 s, and this call has 5 s left"):
        _with(wire, ends=time.monotonic() + 5.5).queryData("accounts")
    # One that cannot wait is told so at once, and nothing is sent.
    with pytest.raises(
        DataverseError, match=r"asks this connection to wait for (59|60) s more, and this call has \d s left"
    ) as caught:
        _with(wire, ends=time.monotonic() + 5).queryData("contacts")
    assert caught.value.retry_after == pytest.approx(retry.LONGEST_PAUSE, abs=2)
    assert len(wire.requests) == 1
    later = time.monotonic() + retry.LONGEST_PAUSE
    monkeypatch.setattr("shared.apis.http.time.monotonic", lambda: later)
    assert _with(wire, ends=None).queryData("contacts") == OK


def _with(wire: Wire, *, ends: float | None) -> DataverseApi:
    """Its API, in an invocation that ends then."""
    wire.environment = FakeEnvironment(ends=ends)
    return wire.api


@pytest.mark.parametrize(
    ("name", "arguments", "repeated"),
    [
        ("retrieve", ("account", ID), True),
        ("delete", ("account", ID), True),
        ("updateEntityDefinition", ("account", {"a": 1}), True),
        ("create", ("account", {"a": 1}), False),
        ("update", ("account", ID, {"a": 1}), False),
    ],
)
@pytest.mark.parametrize("fault", [httpx.ReadError("reset"), httpx.Response(504)], ids=["lost", "504"])
def test_what_may_have_been_done_is_repeated_only_if_harmless(
    name: str, arguments: Any, repeated: bool, fault: Any, waits: list[float]
) -> None:
    wire = Wire(fault, answer({}))
    if repeated:
        getattr(wire.api, name)(*arguments)
    else:
        with pytest.raises(DataverseError):
            getattr(wire.api, name)(*arguments)
    assert len(wire.requests) == 1 + repeated


def test_what_was_never_sent_is_repeated(waits: list[float]) -> None:
    wire = Wire(httpx.ConnectError("refused"), answer({"accountid": ID}, 201))
    assert wire.api.create("account", {"a": 1}).id == ID


def test_a_wrong_certificate_is_not_tried_again(waits: list[float]) -> None:
    wire = Wire(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"))
    with pytest.raises(DataverseError, match="cannot be reached"):
        wire.api.queryData("accounts")
    assert waits == []


def test_a_delete_whose_answer_was_lost_may_have_been_done(waits: list[float]) -> None:
    wire = Wire(httpx.ReadError("reset"), refused(404, "0x80040217", "Does Not Exist"))
    assert wire.api.delete("account", ID) is None
    with pytest.raises(DataverseError, match="Does Not Exist"):
        Wire(refused(404, "0x80040217", "Does Not Exist")).api.delete("account", ID)


def test_an_expired_token_is_renewed_once() -> None:
    wire = Wire(httpx.Response(401), answer(OK))
    wire.api.queryData("accounts")
    assert [request.headers["authorization"] for request in wire.requests] == [
        "Bearer token-0",
        "Bearer token-1",
    ]
    assert [renew for _, renew in wire.environment.asked] == [False, True]
    wire = Wire(httpx.Response(401), httpx.Response(401))
    with pytest.raises(DataverseError, match="HTTP 401"):
        wire.api.queryData("accounts")


@pytest.mark.parametrize(
    ("response", "text", "code"),
    [
        (
            refused(404, "0x80040217", "account With Id = x Does Not Exist"),
            "0x80040217: account With Id = x",
            "0x80040217",
        ),
        (answer({"code": "1", "message": "flat"}, 400), "1: flat (HTTP 400)", "1"),
        (
            httpx.Response(500, text="<html>Bearer token-0</html>"),
            "HTTP 500: <html>Bearer [redacted]</html>",
            None,
        ),
        (httpx.Response(502), "HTTP 502: no text", None),
        (httpx.Response(302, headers={"location": "https://evil.example"}), "redirects are not followed", None),
        (refused(400, "1", "the token-0 is odd"), "the [redacted] is odd", "1"),
    ],
)
def test_refusals(response: httpx.Response, text: str, code: str | None) -> None:
    wire = Wire(response)
    with pytest.raises(DataverseError) as caught:
        wire.api.queryData("accounts")
    assert text in caught.value.message
    assert "token-0" not in caught.value.message
    assert (caught.value.service_code, caught.value.status) == (code, response.status_code)
    assert caught.value.code == "tool_error"
    assert len(wire.requests) == 1


def test_an_answer_that_is_no_json() -> None:
    with pytest.raises(DataverseError, match="not JSON"):
        Wire(httpx.Response(200, text="<html>")).api.queryData("accounts")


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(DataverseError, match="no table with the logical name 'accounts'"):
        Wire().api.retrieve("accounts", ID)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer x"},
        {"HOST": "x"},
        {"Proxy-Authorization": "x"},
        {"Cookie": "a"},
        {"Content-Length": "1"},
        {"Transfer-Encoding": "chunked"},
        {"X-A": "a\r\nHost: b"},
        {"X A": "b"},
        {"X-A": "ä"},
        {"X-A": 5},
        {"X-A": "x" * 5000},
        {f"X-{n}": "" for n in range(40)},
        ["X-A"],
        {"X-A": "1", "x-a": "2"},
    ],
    ids=str,
)
def test_headers_that_no_tool_sets(headers: Any) -> None:
    wire = Wire()
    with pytest.raises(ToolError) as caught:
        wire.api.queryData("accounts", None, headers)
    assert "Bearer x" not in caught.value.message
    assert wire.requests == []
    assert wire.environment.asked == []


def test_prefer_is_joined_and_defaults_can_be_taken_away() -> None:
    wire = Wire(answer(OK), httpx.Response(204))
    wire.api.queryData("accounts", None, {"Prefer": 'odata.include-annotations="a,b",odata.maxpagesize=2'})
    wire.api.update("account", ID, {"a": 1}, None, {"If-Match": None, "Prefer": "return=minimal"})
    first, second = wire.requests
    assert first.headers["prefer"] == (
        'return=representation,odata.include-annotations="a,b",odata.maxpagesize=2'
    )
    assert "if-match" not in second.headers
    assert second.headers["prefer"] == "return=minimal"


@pytest.mark.parametrize(
    "url", ["http://contoso.crm.dynamics.com", "ftp://x", "https://", "https://u:p@h", "x"]
)
def test_only_https(url: str) -> None:
    wire = Wire(environment=FakeEnvironment(url=url))
    with pytest.raises(ToolError, match="https"):
        wire.api.queryData("accounts")
    assert wire.environment.asked == []


def test_at_most_so_many_requests_at_once() -> None:
    running = peak = 0

    async def slowly(request: httpx.Request) -> httpx.Response:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.01)
        running -= 1
        return answer(OK)

    async def main() -> None:
        await asyncio.gather(*(wire.api.queryData("accounts") for _ in range(60)))

    wire = Wire()
    wire.hosts._transport = httpx.MockTransport(slowly)
    asyncio.run(main())
    assert peak == 16


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5), ("0.5", 0.5), ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("soon", None), ("-1", None), ("", None)],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry.retry_after(value) == seconds


def test_cookies_of_one_invocation_are_not_sent_by_another() -> None:
    wire = Wire(answer(OK, set_cookie="ARRAffinity=1; Path=/; Secure"), answer(OK))
    wire.api.queryData("accounts")
    wire.environment = FakeEnvironment(id="connection-2")
    wire.api.queryData("accounts")
    assert "cookie" not in wire.requests[1].headers
