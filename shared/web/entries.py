"""One entry of the list of invocations: a job, a call that was no job, or a call that left files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from shared import ids
from shared.invocations.record import ERROR_LIMIT, Outcome, Record
from shared.jobs import window_moves
from shared.jobs.answers import status_url
from shared.jobs.model import Job
from shared.jobs.outcome import job_record
from shared.jobs.rows import stamp
from shared.settings import DEFAULT_OWNER
from shared.tool.spec import JsonObject

REJECTED: Final = "rejected"
#: How a call that is no job stands, by its outcome.
_STATUS_OF: Final = {
    Outcome.COMPLETED: "completed",
    Outcome.FAILED: "failed",
    Outcome.ACCEPTED: "pending",
    Outcome.REJECTED: REJECTED,
    Outcome.NO_RESULT: "completed",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are wanted; None: any."""

    tool: str | None = None
    status: str | None = None
    mode: str | None = None
    execution_mode: str | None = None

    def takes(self, entry: JsonObject) -> bool:
        return (
            self.tool in (None, entry["toolName"])
            and self.status in (None, entry["status"])
            and self.mode in (None, entry.get("mode"))
            and self.execution_mode in (None, entry.get("executionMode"))
        )

    def key(self) -> list[str | None]:
        """As a cursor keeps it."""
        return [self.tool, self.status, self.mode, self.execution_mode]


def shown_to(record: Record, owner: str) -> Record | None:
    """The record as an owner may see it; None: not at all.

    Of a call that was refused before its owner was known, only `default` hears, who runs the app. What it was
    about may be another owner's business.
    """
    if record.owner == owner:
        return record
    if not record.owner and owner == DEFAULT_OWNER:
        return replace(record, prefill_summary="")
    return None


def entry(record: Record | None, job: Job | None) -> JsonObject:
    """One call, from its record, its job's row, or both: an inline call that left files has both.

    Absent values are left out. `createdAt` is when the call came, which its id tells; `durationMs` runs from
    then to the end, and is absent while a job goes on.
    """
    told = record or job_record(_present(job))
    body: JsonObject = {
        "id": told.id,
        "correlationId": ids.correlation_id(told.id),
        "toolId": told.tool_id,
        "toolName": told.tool_name,
        "status": str(job.status) if record is None and job is not None else _STATUS_OF[told.outcome],
        "outcome": str(told.outcome),
        "mode": told.mode,
        "executionMode": told.execution_mode,
        "owner": told.owner,
        "createdAt": stamp(told.time),
        "durationMs": told.duration_ms,
        "inputSummary": told.prefill_summary,
        "error": told.error[:ERROR_LIMIT],
        "errorCode": told.error_code,
    }
    if job is not None:
        body |= {"jobId": job.job_id, "statusUrl": status_url(job.job_id)}
    if record is None and job is not None:
        body |= _of_job(job)
    return {name: value for name, value in body.items() if value not in (None, "")}


def _of_job(job: Job) -> JsonObject:
    came = datetime.fromtimestamp(ids.milliseconds_of(job.job_id) / 1000, UTC)
    took = None if job.completed_at is None else round((job.completed_at - came).total_seconds() * 1000)
    asked = job.cancel_requested and not job.status.terminal
    return {
        "durationMs": None if took is None else max(took, 0),
        "startedAt": stamp(job.started_at),
        "completedAt": stamp(job.completed_at),
        "timeoutMs": job.timeout_ms,
        "attempt": job.attempt,
        "progress": {"percent": job.progress_percent, "message": job.progress_message},
        "cancelRequested": True if asked else None,
        "window": None if job.window is None else window_moves.told(job),
    }


def _present(job: Job | None) -> Job:
    if job is None:
        raise ValueError("an entry is of a record, of a job, or of both")
    return job
