"""What a tool's own process tells of its requests, and what its worker makes of it."""

from __future__ import annotations

import contextvars
import json
import time
from typing import Any

import pytest

from shared import telemetry
from shared.jobs.isolation import frames, grammar
from shared.telemetry import apart, names, spans
from shared.telemetry.names import Attribute
from shared.telemetry.sampling import Sampler
from shared.telemetry.spans import Ended, Measured
from shared.telemetry.trace import Place, current

ORG = "https://org.crm.dynamics.com"
PLACE = Place(0xAB, 0xCD)


class Out:
    """Keeps what is put."""

    def __init__(self) -> None:
        self.sampler = Sampler()
        self.propagates = True
        self.items: list[Ended | Measured] = []

    def put(self, item: Ended | Measured) -> None:
        self.items.append(item)

    def pseudonym(self, owner: str) -> str:
        return ""


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> Out:
    """The worker's."""
    made = Out()
    monkeypatch.setattr(spans.switch, "out", made)
    return made


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process sets for itself is taken back."""
    monkeypatch.setattr(spans.switch, "out", None)


def taker(place: Place | None = PLACE) -> telemetry.Taker:
    """As under an attempt's span."""
    token = current.set(place)
    try:
        return telemetry.Taker([ORG, "https://api.powerplatform.com"])
    finally:
        current.reset(token)


def asked(path: str = "/api/data/v9.2/accounts(7)?$select=name", failed: BaseException | None = None) -> str:
    """A request of the tool's; the header that it carries."""
    with telemetry.request("dataverse.request", "GET", ORG + path) as span:
        header = telemetry.headers()["traceparent"]
        telemetry.answered(span, 404 if failed else 200, 2, failed)
    return header


def told_of(handed_over: Any, ask: Any) -> list[dict[str, Any]]:
    """What a process sends, as it arrives: each message is one that the worker takes."""
    sent: list[dict[str, Any]] = []

    def work() -> None:
        apart.begin(handed_over, sent.append)
        ask()

    contextvars.copy_context().run(work)
    return [grammar.checked(json.loads(frames.packed(message)[4:])) for message in sent]


def span(**changed: Any) -> dict[str, Any]:
    now = time.time_ns()
    told = {
        "service": "dataverse", "method": "GET", "host": "org.crm.dynamics.com", "status": 200, "error": "",
        "id": "00000000000000ef", "route": "accounts", "resends": 0, "start": now, "end": now,
    }  # fmt: skip
    return {**told, **changed}


@pytest.mark.usefixtures("process")
def test_a_request_becomes_a_span_under_the_attempt_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Out()
    with monkeypatch.context() as patch:
        patch.setattr(spans.switch, "out", worker)
        taking = taker()
        handed_over = taking.handed_over
    headers: list[str] = []
    counted, told = told_of(handed_over, lambda: headers.append(asked(failed=ValueError("sentinel"))))
    assert (counted["type"], told["type"]) == ("request", "span")
    taking.request(counted)
    taking.span(told)
    measured, ended = worker.items
    assert isinstance(ended, Ended)
    assert (ended.name, ended.parent) == ("dataverse.request GET", PLACE)
    assert ended.place.traceparent == headers[0], "what Dataverse was told is what is exported"
    assert ended.attributes == {
        Attribute.SERVICE: "dataverse",
        Attribute.HTTP_METHOD: "GET",
        Attribute.HOST: "org.crm.dynamics.com",
        Attribute.ROUTE: "accounts({key})",
        Attribute.HTTP_STATUS: 404,
        Attribute.HTTP_RESENDS: 1,
        Attribute.ERROR: "404",
    }
    assert isinstance(measured, Measured)
    assert measured.metric is names.REQUEST_DURATION
    assert measured.attributes[Attribute.ERROR] == "404"
    assert "sentinel" not in str(worker.items)


@pytest.mark.usefixtures("process")
def test_a_trace_that_is_not_exported_is_counted_only() -> None:
    unwanted = Place(PLACE.trace_id, PLACE.span_id, sampled=False)
    headers: list[str] = []
    handed_over = {"traceparent": unwanted.traceparent, "propagates": True}
    told = told_of(handed_over, lambda: headers.append(asked()))
    assert [message["type"] for message in told] == ["request"]
    assert headers[0].endswith("-00")


@pytest.mark.usefixtures("process")
def test_a_process_tells_a_bounded_number() -> None:
    def ask() -> None:
        for _ in range(apart.MOST):
            asked()

    assert len(told_of({"traceparent": PLACE.traceparent, "propagates": True}, ask)) == apart.MOST


def test_nothing_is_handed_over_or_taken_while_telemetry_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans.switch, "out", None)
    taking = taker()
    assert taking.handed_over is None
    taking.span(span())
    taking.request({**span(), "seconds": 0.0})


@pytest.mark.parametrize(
    "changed",
    [
        {"start": 0},
        {"end": 1 << 62},
        {"start": time.time_ns() + 3_600 * 10**9, "end": time.time_ns() + 3_600 * 10**9},
        {"id": "0" * 16},
        {"id": f"{PLACE.span_id:016x}"},
    ],
)
def test_what_cannot_be_true_of_the_attempt_is_left_out(out: Out, changed: dict[str, Any]) -> None:
    taking = taker()
    taking.span(span(**changed))
    assert out.items == []
    taking.span(span())
    assert len(out.items) == 1


def test_a_request_that_took_longer_than_its_attempt_is_not_counted(out: Out) -> None:
    taking = taker()
    taking.request({**span(), "seconds": 3_600.0})
    assert out.items == []
    taking.request({**span(), "seconds": 0.25})
    (measured,) = out.items
    assert isinstance(measured, Measured)
    assert measured.value == 0.25


def test_words_of_the_tools_own_reach_no_metric_and_no_span(out: Out) -> None:
    taking = taker()
    taking.request({**span(host="evil.example", error="sentinel_word"), "seconds": 0.0})
    taking.span(span(host="evil.example", route="accounts?name=sentinel one", error="sentinel: a text"))
    measured, ended = out.items
    assert measured.attributes[Attribute.ERROR] == "_OTHER"
    assert ended.attributes[Attribute.ERROR] == "_OTHER"
    assert "sentinel" not in str(out.items)
    assert "evil" not in str(out.items)


def test_a_process_cannot_flood_the_trace(out: Out) -> None:
    taking = taker()
    for _ in range(apart.MOST + 50):
        taking.span(span())
    assert len(out.items) == apart.MOST


def test_an_attempt_that_is_not_exported_has_no_spans(out: Out) -> None:
    taking = taker(Place(PLACE.trace_id, PLACE.span_id, sampled=False))
    taking.span(span())
    assert out.items == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"service": "mine"}, "'service' is the text 'mine', not one of dataverse, powerplatform"),
        ({"service": []}, "'service' is a list"),
        ({"method": "get"}, "'method' is the text 'get'"),
        ({"host": "x" * 201}, "a text of at most 200 characters"),
        ({"status": 99}, "'status' is a number, not a status of HTTP or null"),
        ({"id": "abc"}, "16 hex digits"),
        ({"id": "0" * 15 + "\n"}, "16 hex digits"),
        ({"resends": -1}, "a whole number from 0 to 1000"),
        ({"start": 1.5}, "nanoseconds since 1970"),
        ({"end": 1 << 63}, "nanoseconds since 1970"),
    ],
)
def test_a_message_of_another_form_is_no_message(changed: dict[str, Any], said: str) -> None:
    assert grammar.checked({"type": "span", **span()})
    with pytest.raises(frames.FrameError) as caught:
        grammar.checked({"type": "span", **span(**changed)})
    assert said in str(caught.value)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "1", True])
def test_a_duration_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(frames.FrameError, match="seconds of at most a day"):
        grammar.checked({"type": "request", **span(), "seconds": seconds})
