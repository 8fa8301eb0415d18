"""What `dev.py jobs` does to a job store. Each move is the one that the app itself would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from infra.local.dev.console import DevError
from shared.errors import JobEndedError, JobNotFoundError, LostLeaseError
from shared.jobs import cancel as cancelling
from shared.jobs import keys, model, repair
from shared.jobs.idempotency import is_tied
from shared.jobs.model import Job, Status
from shared.jobs.store import JobStore, Query

#: Requests that a scan of this command may make, and jobs of one page.
SCANS: Final = 100
PAGE: Final = 1_000
#: A job that moves all the time is given up after so many tries.
TRIES: Final = 10
_ENDED: Final = (Status.COMPLETED, Status.FAILED)


class NotDoneError(DevError):
    """A job is not in a state in which it could be done."""


@dataclass(frozen=True)
class Found:
    """`complete`: whether all jobs were looked at, or `limit` of them were found."""

    jobs: tuple[Job, ...]
    complete: bool = True


def find(store: JobStore, query: Query, limit: int, fits: Callable[[Job], bool] = lambda job: True) -> Found:
    """At most `limit` jobs, newest first. Changes nothing: a lost worker stays to be found by the app."""
    found: list[Job] = []
    token: str | None = None
    for _ in range(SCANS):
        page = store.scan(query, min(PAGE, limit), token)
        found += [job for job in page.jobs if fits(job)]
        token = page.token
        if token is None or len(found) >= limit:
            return Found(tuple(found[:limit]), complete=True)
    return Found(tuple(found), complete=False)


def get(store: JobStore, job_id: str) -> Job:
    job = store.get(check_id(job_id))
    if job is None:
        raise _unknown(job_id)
    return job


def check_id(job_id: str) -> str:
    if not keys.is_job_id(job_id):
        raise DevError("A job's id is a lower-case UUID, as `python3 dev.py jobs list` shows it.", exit_code=2)
    return job_id


def cancel(store: JobStore, job_id: str) -> Job:
    """The job as it is then: failed with `cancelled`, or in progress and asked to stop."""
    owner = get(store, job_id).owner
    try:
        return cancelling.cancel(job_id, owner, store)
    except JobEndedError as error:
        raise NotDoneError(f"Job {job_id} has ended already: it is {error.status}.") from None
    except JobNotFoundError:
        raise _unknown(job_id) from None


def resend(store: JobStore, job_id: str, now: datetime) -> Job:
    """The pending job whose message was sent. One too many changes nothing: the row is the truth.

    A job whose worker was lost is given back first, if it may run again.
    """
    for _ in range(TRIES):
        job = get(store, job_id)
        _must_wait(job, now)
        try:
            if job.status is Status.IN_PROGRESS:
                stored = repair.end(job, model.expire(job, now), store)
                if stored.status.terminal:
                    raise NotDoneError(f"Job {job_id} has ended now: {stored.error}", _AGAIN)
            elif not is_tied(job, store):
                raise NotDoneError(
                    f"Job {job_id} is left of a call that was cut off before its idempotency key was its own: "
                    "nobody was told of it, and it must not run.",
                    "The app removes it by itself.",
                )
            else:
                stored = store.write(model.resend(job, now))
        except LostLeaseError:
            continue  # it has moved on meanwhile
        store.send(job_id)
        return stored
    raise NotDoneError(f"Job {job_id} changes all the time; try again.")


def pending(store: JobStore) -> Found:
    """All that wait for a worker, oldest first: who has waited longest is sent first."""
    query = Query(statuses=(Status.PENDING,))
    found = find(store, query, SCANS * PAGE, lambda job: job.window is None)
    return Found(found.jobs[::-1], found.complete)


def purgeable(store: JobStore, job_id: str) -> Job:
    job = get(store, job_id)
    if not job.status.terminal:
        raise NotDoneError(
            f"Job {job_id} is {job.status}: only ended jobs can be removed.",
            f"End it first: python3 dev.py jobs cancel {job_id}",
        )
    return job


def ended_before(store: JobStore, cutoff: datetime) -> Found:
    """Jobs that ended before; those made before come from one range of keys."""
    start = keys.first_partition(max(int(cutoff.timestamp() * 1000), 0))
    query = Query(start=start, statuses=_ENDED)
    return find(
        store, query, SCANS * PAGE, lambda job: job.completed_at is not None and job.completed_at < cutoff
    )


def purge(store: JobStore, jobs: tuple[Job, ...]) -> Iterator[Job]:
    """Removes them one by one; each is given once it is gone. An ended job stays ended: none is run by then."""
    for job in jobs:
        store.purge(job)
        yield job


def note(job: Job, now: datetime) -> str:
    """What a state alone does not say; "" when nothing."""
    if job.lease_expired(now):
        return "worker lost"
    if job.window is not None and not job.status.terminal:
        return "window over" if job.window_over(now) else "waits for a person"
    if job.resend_due(now, repair.RESEND_AFTER):
        return "message overdue"
    if job.cancel_requested and not job.status.terminal:
        return "asked to stop"
    return str(job.error_code or "")


def ago(seconds: int, now: datetime) -> datetime:
    return now - timedelta(seconds=seconds)


_AGAIN: Final = "Call the tool again: a job's input is erased when it ends."


def _must_wait(job: Job, now: datetime) -> None:
    """Raises `NotDoneError` for a job whose message would be of no use."""
    if job.status.terminal:
        raise NotDoneError(f"Job {job.job_id} has ended ({job.status}), so it cannot run again.", _AGAIN)
    if job.window is not None:
        raise NotDoneError(f"Job {job.job_id} waits for a person in its window, and has no message.")
    if job.status is Status.IN_PROGRESS and not job.lease_expired(now):
        raise NotDoneError(
            f"Job {job.job_id} is being run (attempt {job.attempt} of {job.max_attempts}).",
            "If its worker is lost, that shows when its lease has run out, within a minute.",
        )


def _unknown(job_id: str) -> NotDoneError:
    return NotDoneError(
        f"There is no job {job_id} in this storage account.", "It may have been removed, or be in another one."
    )
