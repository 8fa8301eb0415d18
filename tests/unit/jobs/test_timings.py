"""What a job tells of its attempts: which moves begin and end them, and how much is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.jobs import model, rows, timings, window_moves
from shared.jobs.inline_artifacts import inline_record
from shared.jobs.keys import new_job_id
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.timings import Ending, Timing
from shared.jobs.window_moves import NewWindow
from shared.tool.spec import Mode, ToolSpec
from tests.unit.jobs.test_keys_and_rows import a_job

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
LATER = NOW + timedelta(seconds=7)
#: When the lease that is taken at `NOW` has run out, and when somebody notices.
RAN_OUT = NOW + timedelta(seconds=60)
NOTICED = NOW + timedelta(minutes=4)
BODY = StoredBody(2, inline=b"{}")


def running(**values: object) -> Job:
    return model.claim(a_job(**values), NOW, 60_000)


def failed(code: ErrorCode) -> Callable[[Job], Job]:
    return lambda job: model.fail(job, LATER, code, "it failed")


def test_a_claim_begins_an_attempt_and_an_end_closes_it() -> None:
    job = running()
    assert job.attempts == (Timing(1, NOW),)
    assert model.renew(job, LATER, 60_000).attempts == job.attempts
    assert model.request_cancel(job, LATER).attempts == job.attempts
    assert model.complete(job, LATER, BODY).attempts == (Timing(1, NOW, LATER, Ending.COMPLETED),)


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (ErrorCode.TOOL_ERROR, Ending.FAILED),
        (ErrorCode.INVALID_RESULT, Ending.FAILED),
        (ErrorCode.TIMEOUT, Ending.TIMEOUT),
        (ErrorCode.CANCELLED, Ending.CANCELLED),
        (ErrorCode.WORKER_LOST, Ending.LOST),
        (ErrorCode.POISONED, Ending.LOST),
    ],
)
def test_a_failure_says_how_its_attempt_ended(code: ErrorCode, ending: Ending) -> None:
    assert failed(code)(running()).attempts == (Timing(1, NOW, LATER, ending),)


def test_a_lost_attempt_ended_when_its_lease_ran_out_however_late_that_is_noticed() -> None:
    lost = model.expire(running(), NOTICED)
    assert (lost.status, lost.attempts) == (Status.PENDING, (Timing(1, NOW, RAN_OUT, Ending.LOST),))
    again = model.claim(lost, NOTICED, 60_000)
    assert again.attempts == (*lost.attempts, Timing(2, NOTICED))
    last = model.expire(running(max_attempts=1), NOTICED)
    assert (last.error_code, last.completed_at) == (ErrorCode.WORKER_LOST, NOTICED)
    assert last.attempts == (Timing(1, NOW, RAN_OUT, Ending.LOST),)


def test_an_attempt_that_was_lost_stays_lost_whatever_becomes_of_its_job() -> None:
    """Its job was cancelled while the worker was away, or before another one took it."""
    asked = model.expire(model.request_cancel(running(), LATER), NOTICED)
    assert (asked.error_code, asked.attempts) == (
        ErrorCode.CANCELLED,
        (Timing(1, NOW, RAN_OUT, Ending.LOST),),
    )
    waiting = model.request_cancel(model.expire(running(), NOTICED), NOTICED)
    assert (waiting.error_code, waiting.attempts) == (ErrorCode.CANCELLED, asked.attempts)


def test_a_job_that_no_worker_had_tells_of_no_attempt() -> None:
    for move in (failed(ErrorCode.POISONED), lambda job: model.request_cancel(job, LATER)):
        assert move(a_job()).attempts == ()
    window = NewWindow("t" * 43).of(a_job(created_at=NOW), timeout_asked=False)
    opened = window_moves.opened(window, "s", LATER, by_ticket=True)
    assert window_moves.given(opened, LATER, BODY).attempts == ()
    spec = ToolSpec("t", "t", "T", "", {"type": "object"}, None)
    assert inline_record(spec, new_job_id(), "default", mode=Mode.TWO_WAY, timeout_ms=1).attempts == ()


def test_the_newest_ten_are_kept_in_little_room() -> None:
    job = a_job(max_attempts=99)
    for _ in range(timings.MOST + 4):
        job = model.expire(model.claim(job, NOW, 60_000), NOTICED)
    assert [one.attempt for one in job.attempts] == list(range(5, 15))
    text = timings.to_text(job.attempts)
    assert len(text) < 1_000
    assert timings.of_text(text) == job.attempts


def test_an_attempt_that_began_under_an_older_release_is_told_of_from_its_end_on() -> None:
    old = replace(running(), attempt=2, attempts=())
    assert model.complete(old, LATER, BODY).attempts == (Timing(2, NOW, LATER, Ending.COMPLETED),)
    assert model.expire(old, NOTICED).attempts == (Timing(2, NOW, RAN_OUT, Ending.LOST),)
    unknown = replace(old, started_at=None)
    assert model.complete(unknown, LATER, BODY).attempts == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "[[]]", '[[1, "now"]]', '[[1, "2026-01-02T03:04:05Z", "x", "y"]]']
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        timings.of_text(text)


@pytest.mark.parametrize("text", ["{", "[7]", '[[1,"2026-01-02T03:04:05Z","2026-01-02T03:04:06Z","put off"]]'])
def test_what_another_release_tells_of_attempts_hides_no_job(text: str) -> None:
    """One row that cannot be read would stop every list that meets it."""
    job = running()
    entity = rows.job_entity(job) | {"attempts": text}
    read = rows.job_of(entity, "")
    assert replace(read, attempts=job.attempts) == job
    assert model.complete(read, LATER, BODY).attempts == (Timing(1, NOW, LATER, Ending.COMPLETED),)
