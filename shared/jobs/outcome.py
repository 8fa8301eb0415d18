"""A job as the invocation log sees it: its row is the record of its call, and changes as the job does."""

from __future__ import annotations

from collections.abc import Iterable

from shared import telemetry
from shared.invocations.log import LINES
from shared.invocations.record import Outcome, Record
from shared.jobs.logs import LINES as LINES_KEPT
from shared.jobs.model import Job, Status, utc_now
from shared.redaction import without_names


def job_outcome(job: Job) -> Outcome:
    if job.status is Status.COMPLETED:
        return Outcome.NO_RESULT if job.window is not None and job.window.closed else Outcome.COMPLETED
    return Outcome.FAILED if job.status is Status.FAILED else Outcome.ACCEPTED


def log_end(job: Job) -> None:
    """One line of JSON in the app's log for a job that has ended without a worker to say so."""
    count_end(job)
    LINES.info("%s", job_record(job, (job.connection_name,)).line())


def count_end(job: Job) -> None:
    """Tells telemetry that a job has ended: once, by who has written its end."""
    telemetry.job_ended(job, max(job.log_lines - LINES_KEPT, 0))


def job_record(job: Job, hidden: Iterable[str] = ()) -> Record:
    """The record; its duration runs from the call to the job's end, or until now.

    `hidden`: words that its error is told without, such as those of the call's connections.
    """
    took = (job.completed_at or utc_now()) - job.created_at
    return Record(
        id=job.job_id,
        tool_id=job.tool_id,
        tool_name=job.tool_name,
        outcome=job_outcome(job),
        duration_ms=round(took.total_seconds() * 1000),
        owner=job.owner,
        mode=str(job.mode),
        execution_mode=str(job.execution_mode),
        job_id=job.job_id,
        prefill_summary=job.prefill_summary,
        error=without_names(job.error, hidden),
        error_code="" if job.error_code is None else str(job.error_code),
    )
