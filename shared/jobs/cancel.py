"""Cancels a job: a pending one ends at once, a running one is asked to stop."""

from __future__ import annotations

from typing import Final

from shared.errors import JobEndedError, JobError, JobNotFoundError, LostLeaseError
from shared.jobs import model, repair
from shared.jobs.model import Job, utc_now
from shared.jobs.store import JobStore

#: A running job's row changes with every report; so often a request tries to get its word in.
TRIES: Final = 20


def cancel(job_id: str, owner: str, store: JobStore) -> Job:
    """The job as it is then: failed with `cancelled`, or in progress and asked to stop. Blocks.

    Raises `JobNotFoundError` also for another owner's job, and `JobEndedError` when there is nothing to cancel.
    """
    for _ in range(TRIES):
        job = store.get(job_id)
        if job is None or job.owner != owner:
            raise JobNotFoundError
        job = repair.repaired(job, store)
        if job.status.terminal:
            raise JobEndedError(job.status)
        if job.cancel_requested:
            return job
        try:
            return repair.end(job, model.request_cancel(job, utc_now()), store)
        except LostLeaseError:
            continue
    raise JobError("The job changes too quickly to be cancelled; try again.")
