"""What the hooks put out, without OpenTelemetry: parents, links, attributes, counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from shared import telemetry
from shared.errors import DataverseError
from shared.jobs import model
from shared.jobs.model import Job, utc_now
from shared.telemetry import names, spans
from shared.telemetry.names import Attribute
from shared.telemetry.sampling import Sampler
from shared.telemetry.setup import pseudonym
from shared.telemetry.spans import Ended, Measured
from shared.telemetry.trace import current, parsed
from shared.tool.spec import ExecutionMode, Mode

HOST = f"00-{'a1' * 16}-{'b2' * 8}-01"
UNDECIDED = HOST[:-2] + "00"
CALLER = f"00-{'c3' * 16}-{'d4' * 8}-01"


class Out:
    """Keeps what is put."""

    def __init__(self, sampler: Sampler | None = None, *, propagates: bool = True) -> None:
        self.sampler = sampler or Sampler()
        self.propagates = propagates
        self.items: list[Ended | Measured] = []

    def put(self, item: Ended | Measured) -> None:
        self.items.append(item)

    def pseudonym(self, owner: str) -> str:
        return pseudonym(b"key", owner)

    @property
    def spans(self) -> list[Ended]:
        return [item for item in self.items if isinstance(item, Ended)]

    def measured(self, metric: names.Metric) -> list[Measured]:
        return [item for item in self.items if isinstance(item, Measured) and item.metric is metric]


@pytest.fixture
def out(monkeypatch: pytest.MonkeyPatch) -> Iterator[Out]:
    made = Out()
    monkeypatch.setattr(spans.switch, "out", made)
    yield made
    assert current.get() is None, "a span was not left"


def invocation(traceparent: str) -> Any:
    return SimpleNamespace(trace_context=SimpleNamespace(trace_parent=traceparent))


def end(span: telemetry.Span, **more: Any) -> None:
    told: dict[str, Any] = {
        "tool": "t",
        "outcome": "completed",
        "error": "",
        "failed": False,
        "mode": "two-way",
    }
    told |= {"execution_mode": "inline", "owner": "ana", "job_id": "", "correlation_id": "mcp-1", **more}
    telemetry.end_call(span, **told)


def a_job(**more: Any) -> Job:
    made = Job(
        job_id="01a2", owner="ana", tool_id="t", tool_name="t", mode=Mode.ONE_WAY,
        execution_mode=ExecutionMode.HEADLESS, correlation_id="mcp-1", timeout_ms=1000, max_attempts=2,
        created_at=utc_now(),
    )  # fmt: skip
    return replace(made, **more)


def test_while_it_is_off_nothing_is_told_and_nothing_carried() -> None:
    assert spans.switch.out is None
    with telemetry.call("t", invocation(HOST)) as span:
        telemetry.adopt(span, {"_meta": {"traceparent": CALLER}}, {})
        assert span is telemetry.NO_SPAN
        assert telemetry.headers() == {}
        params: dict[str, Any] = {}
        options: dict[str, Any] = {}
        telemetry.into_message(params, options)
        assert (params, options) == ({}, {})
        end(span)
    assert telemetry.submission("t", queued=True).traceparent == ""
    assert telemetry.attempt(a_job()) is telemetry.NO_SPAN


def test_a_call_is_under_the_hosts_span(out: Out) -> None:
    with telemetry.call("t", invocation(HOST)) as span:
        telemetry.adopt(span, {"_meta": {"traceparent": CALLER}}, {})
        end(span, failed=True, error="timeout", outcome="failed")
    (found,) = out.spans
    assert (found.name, found.kind, found.parent) == ("mcp.call t", "INTERNAL", parsed(HOST))
    assert found.links == (parsed(CALLER),)
    assert found.attributes[Attribute.ERROR] == "timeout"
    assert "ana" not in found.attributes.values()
    assert found.attributes[Attribute.OWNER] == pseudonym(b"key", "ana")
    assert out.measured(names.CALLS)[0].attributes[Attribute.OUTCOME] == "failed"
    assert Attribute.OWNER not in out.measured(names.CALLS)[0].attributes


@pytest.mark.parametrize(
    ("request_", "headers"),
    [({"_meta": {"traceparent": CALLER}}, {"traceparent": HOST}), ({}, {"TraceParent": CALLER})],
)
def test_without_a_host_it_is_under_the_callers(out: Out, request_: Any, headers: Any) -> None:
    with telemetry.call("t", invocation("")) as span:
        telemetry.adopt(span, request_, headers)
        with telemetry.request("dataverse.request", "GET", "https://o/api/data/v9.2/accounts?$filter=x"):
            assert telemetry.headers()["traceparent"].startswith(f"00-{'c3' * 16}-")
    inner, outer = out.spans
    assert (outer.kind, outer.parent) == ("SERVER", parsed(CALLER))
    assert inner.parent == outer.place


def test_two_headers_or_rubbish_begin_a_trace_of_their_own(out: Out) -> None:
    for headers in ({"traceparent": CALLER, "Traceparent": HOST}, {"traceparent": "rubbish"}):
        with telemetry.call("t", None) as span:
            telemetry.adopt(span, {"_meta": "none"}, headers)
    assert [span.parent for span in out.spans] == [None, None]
    assert out.spans[0].place.trace_id != out.spans[1].place.trace_id


def test_a_host_that_sets_no_flag_does_not_silence_the_app(out: Out) -> None:
    """Some hosts send 00 whatever they keep: the sampler decides as for a trace that begins here."""
    with telemetry.call("t", invocation(UNDECIDED)) as span:
        assert span.traceparent.endswith("-01")
    out.sampler = Sampler(0.0)
    with telemetry.call("t", invocation(UNDECIDED)) as span:
        assert span.traceparent.endswith("-00")
        assert telemetry.submission("t", queued=True).traceparent.endswith("-00")
        end(span)
    assert len(out.spans) == 1
    assert len(out.measured(names.CALLS)) == 1, "what is not sampled is counted all the same"


def test_without_propagation_nothing_is_taken_over_or_handed_on(out: Out) -> None:
    out.propagates = False
    with telemetry.call("t", invocation(HOST)) as span:
        telemetry.adopt(span, {"_meta": {"traceparent": CALLER}}, {})
        assert telemetry.headers() == {}
    assert out.spans[0].parent is None
    assert out.spans[0].links == ()


def test_an_exception_that_leaves_a_span_is_told_by_its_word_only(out: Out) -> None:
    with pytest.raises(asyncio.CancelledError), telemetry.call("t", None):
        raise asyncio.CancelledError("secret")
    assert out.spans[0].attributes[Attribute.ERROR] == "CancelledError"
    assert "secret" not in repr(out.spans[0])


def test_an_attempt_is_under_the_submission_and_linked_to_the_one_before(out: Out) -> None:
    with telemetry.submission("t", queued=True) as submit:
        job = a_job(traceparent=submit.traceparent)
        telemetry.submitted(submit, job)
    now = job.created_at + timedelta(seconds=3)
    lost = model.claim(job, now, 1000)
    telemetry.worker_lost(lost)
    again = model.claim(model.expire(lost, now + timedelta(seconds=5)), now + timedelta(seconds=9), 1000)
    with telemetry.attempt(again, invocation(HOST)) as span:
        telemetry.end_attempt(span, model.fail(again, now, model.ErrorCode.TIMEOUT, "secret"))
    submitted, first, second = out.spans
    assert Attribute.REUSED not in submitted.attributes
    assert first.parent == second.parent == submitted.place
    assert first.end - first.start == 1_000_000_000
    assert second.links == (first.place, parsed(HOST))
    assert (second.attributes[Attribute.ATTEMPT], second.attributes[Attribute.ERROR]) == (2, "timeout")
    assert [one.value for one in out.measured(names.QUEUE_TIME)] == [4.0]
    assert [one.attributes[Attribute.ERROR] for one in out.measured(names.ATTEMPTS)] == [
        "worker_lost",
        "timeout",
    ]
    assert len(out.measured(names.WORKERS_LOST)) == 1


def test_a_job_without_a_trace_has_one_for_all_its_attempts(out: Out) -> None:
    first = model.claim(a_job(), utc_now(), 1000)
    telemetry.worker_lost(first)
    with telemetry.attempt(replace(first, attempt=2)):
        pass
    assert out.spans[0].place.trace_id == out.spans[1].place.trace_id
    assert out.spans[1].links == (out.spans[0].place,)


def test_a_repeated_submission_points_to_the_job_that_stands(out: Out) -> None:
    with telemetry.submission("t", queued=True) as span:
        telemetry.submitted(span, a_job(traceparent=CALLER))
    assert out.spans[0].attributes[Attribute.REUSED] is True
    assert out.spans[0].links == (parsed(CALLER),)


def test_the_end_of_a_job_and_lost_lines_are_counted(out: Out) -> None:
    job = a_job()
    telemetry.job_ended(model.fail(job, utc_now(), model.ErrorCode.POISONED, "secret"), 7)
    telemetry.records_dropped(3)
    telemetry.queue_looked_at(utc_now() - timedelta(seconds=60), utc_now())
    telemetry.queue_looked_at(None, utc_now())
    assert out.measured(names.JOBS)[0].attributes[Attribute.ERROR] == "poisoned"
    dropped = {one.attributes[Attribute.RECORD]: one.value for one in out.measured(names.DROPPED)}
    assert dropped == {"job": 7, "invocation": 3}
    ages = [one.value for one in out.measured(names.QUEUE_AGE)]
    assert ages[0] == pytest.approx(60, abs=1)
    assert ages[1] == 0


def test_a_request_tells_its_route_and_its_repeats(out: Out) -> None:
    url = "https://Org.crm.dynamics.com/api/data/v9.2/accounts(1)?$filter=name eq 'secret'"
    with telemetry.request("dataverse.request", "TRACE", url) as span:
        telemetry.answered(span, 503, 3, DataverseError("secret"))
    with telemetry.request("powerplatform.request", "GET", "https://api/x/y/z") as span:
        telemetry.answered(span, None, 1, DataverseError("secret"))
    first, second = out.spans
    assert first.name == "dataverse.request _OTHER"
    assert first.attributes == {
        Attribute.SERVICE: "dataverse",
        Attribute.HTTP_METHOD: "_OTHER",
        Attribute.HOST: "org.crm.dynamics.com",
        Attribute.ROUTE: "accounts({key})",
        Attribute.HTTP_STATUS: 503,
        Attribute.HTTP_RESENDS: 2,
        Attribute.ERROR: "503",
    }
    assert second.attributes[Attribute.ERROR] == DataverseError.code
    assert Attribute.ROUTE not in out.measured(names.REQUEST_DURATION)[0].attributes
    assert "secret" not in repr(out.items)


def test_an_upstream_call_carries_its_trace_in_the_message_and_the_headers(out: Out) -> None:
    given = {"name": "echo", "_meta": {"progressToken": 1}}
    options: dict[str, Any] = {}
    with telemetry.upstream("docs", "read", "http") as span:
        telemetry.into_message(params := dict(given), options)
        telemetry.upstream_answered(span, None, success=False)
    wanted = out.spans[0].place.traceparent
    assert params["_meta"] == {"progressToken": 1, "traceparent": wanted}
    assert given["_meta"] == {"progressToken": 1}, "what was given stays as it was"
    assert options["headers"] == {"traceparent": wanted}
    assert out.spans[0].attributes[Attribute.ERROR] == "tool_error"
    assert out.measured(names.UPSTREAM_DURATION)[0].attributes[Attribute.SERVER] == "docs"


def test_an_owners_pseudonym_needs_a_key() -> None:
    assert pseudonym(b"", "ana") == ""
    assert pseudonym(b"a", "ana") != pseudonym(b"b", "ana")
