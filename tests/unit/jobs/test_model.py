"""The state machine: which moves there are, and that an end is an end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import LostLeaseError
from shared.jobs import model
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from tests.unit.jobs.test_keys_and_rows import a_job

NOW = datetime(2026, 1, 2, tzinfo=UTC)
BODY = StoredBody(2, inline=b"{}")

MOVES: dict[str, Callable[[Job], Job]] = {
    "claim": lambda job: model.claim(job, NOW, 60_000),
    "renew": lambda job: model.renew(job, NOW, 60_000),
    "requeue": lambda job: model.requeue(job, NOW),
    "complete": lambda job: model.complete(job, NOW, BODY),
    "fail": lambda job: model.fail(job, NOW, ErrorCode.TIMEOUT, "late"),
    "resend": lambda job: model.resend(job, NOW),
    "request_cancel": lambda job: model.request_cancel(job, NOW),
    "expire": lambda job: model.expire(job, NOW),
}
LEGAL = {
    (Status.PENDING, "claim"): Status.IN_PROGRESS,
    (Status.PENDING, "complete"): Status.COMPLETED,
    (Status.PENDING, "fail"): Status.FAILED,
    (Status.IN_PROGRESS, "renew"): Status.IN_PROGRESS,
    (Status.IN_PROGRESS, "requeue"): Status.PENDING,
    (Status.IN_PROGRESS, "complete"): Status.COMPLETED,
    (Status.IN_PROGRESS, "fail"): Status.FAILED,
    (Status.PENDING, "resend"): Status.PENDING,
    (Status.PENDING, "request_cancel"): Status.FAILED,
    (Status.IN_PROGRESS, "request_cancel"): Status.IN_PROGRESS,
    (Status.IN_PROGRESS, "expire"): Status.PENDING,
}


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("move", MOVES)
def test_moves(status: Status, move: str) -> None:
    job = a_job(status=status)
    expected = LEGAL.get((status, move))
    if expected is None:
        with pytest.raises(LostLeaseError):
            MOVES[move](job)
    else:
        assert MOVES[move](job).status is expected


def test_a_claim_begins_an_attempt_anew() -> None:
    job = model.claim(a_job(progress_percent=70, progress_message="x"), NOW, 60_000)
    assert (job.attempt, job.started_at, job.progress_percent) == (1, NOW, 0)
    assert job.lease_until == NOW + timedelta(seconds=60)
    assert not job.lease_expired(NOW + timedelta(seconds=59))
    assert job.lease_expired(NOW + timedelta(seconds=60))
    assert model.claim(model.requeue(job, NOW), NOW, 60_000).attempt == 2


def test_an_end_erases_the_input_and_the_lease() -> None:
    running = model.claim(a_job(), NOW, 60_000)
    for ended in (MOVES["complete"](running), MOVES["fail"](running)):
        assert ended.input_at == model.INPUT_ERASED
        assert ended.lease_until is None
        assert ended.completed_at == NOW
    assert MOVES["complete"](running).progress_percent == 100
    failed = MOVES["fail"](running)
    assert (failed.error, failed.error_code, failed.progress_percent) == ("late", ErrorCode.TIMEOUT, 0)


@given(st.lists(st.sampled_from(sorted(MOVES))), st.integers(1, 3))
def test_no_sequence_of_moves_leaves_an_end_or_runs_too_often(names: list[str], max_attempts: int) -> None:
    job = a_job(max_attempts=max_attempts)
    for name in names:
        before = job
        try:
            job = MOVES[name](job)
        except LostLeaseError:
            continue
        assert not before.status.terminal
        assert job.status is not Status.IN_PROGRESS or job.lease_until is not None
        assert name != "expire" or before.status is Status.IN_PROGRESS
        assert job.attempt in (before.attempt, before.attempt + 1)
        assert (job.attempt > before.attempt) == (name == "claim")
        if job.status.terminal:
            assert job.completed_at == NOW
            assert (job.result is None) == (job.status is Status.FAILED)
            assert (job.error_code is None) == (not job.error) == (job.status is Status.COMPLETED)


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.FAILED])
def test_an_end_is_final(status: Status) -> None:
    job = a_job(status=status, attempt=3, cancel_requested=True)
    for move in MOVES.values():
        with pytest.raises(LostLeaseError):
            move(job)


def test_a_lost_attempt_is_given_back_as_long_as_there_are_attempts() -> None:
    job = a_job(max_attempts=2, sends=4)
    first = model.claim(job, NOW, 60_000)
    later = NOW + timedelta(minutes=2)
    again = model.expire(first, later)
    assert (again.status, again.attempt, again.lease_until) == (Status.PENDING, 1, None)
    # Its message counts as lost from now on, not from the first one.
    assert (again.sends, again.sent_at) == (1, later)
    second = model.claim(again, later, 60_000)
    lost = model.expire(second, later)
    assert (lost.status, lost.error_code) == (Status.FAILED, ErrorCode.WORKER_LOST)
    assert lost.error == "The worker was lost during attempt 2 of 2."


def test_a_job_that_was_asked_to_stop_does_not_begin_again_when_its_worker_is_lost() -> None:
    asked = model.request_cancel(model.claim(a_job(max_attempts=3), NOW, 60_000), NOW)
    assert asked.cancel_requested
    ended = model.expire(asked, NOW)
    assert (ended.status, ended.error_code, ended.error) == (
        Status.FAILED,
        ErrorCode.CANCELLED,
        model.CANCELLED,
    )


def test_a_message_counts_as_lost_after_a_wait_that_doubles() -> None:
    after = timedelta(minutes=15)
    job = a_job(created_at=NOW)
    assert not job.resend_due(NOW + after - timedelta(seconds=1), after)
    now = NOW
    for doublings in (0, 1, 2, 3, 4, 5, 6, 7, 7, 7):
        due = now + after * 2**doublings
        assert not job.resend_due(due - timedelta(seconds=1), after)
        assert job.resend_due(due, after)
        job, now = model.resend(job, due), due
    assert not model.claim(job, now, 60_000).resend_due(now + timedelta(days=9), after)


def test_a_failure_always_says_something() -> None:
    assert "nothing was said" in model.fail(a_job(), NOW, ErrorCode.TOOL_ERROR, "").error
