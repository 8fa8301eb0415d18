"""The state machine: which moves there are, and that an end is an end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

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
}
LEGAL = {
    (Status.PENDING, "claim"): Status.IN_PROGRESS,
    (Status.PENDING, "complete"): Status.COMPLETED,
    (Status.PENDING, "fail"): Status.FAILED,
    (Status.IN_PROGRESS, "renew"): Status.IN_PROGRESS,
    (Status.IN_PROGRESS, "requeue"): Status.PENDING,
    (Status.IN_PROGRESS, "complete"): Status.COMPLETED,
    (Status.IN_PROGRESS, "fail"): Status.FAILED,
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
