"""The moves of a windowed job. Pure: no clock, no storage.

    pending (waiting) ──open──▶ pending (open) ──give──▶ completed (done)
          │                          └──close──▶ completed (closed, result `no_result`)
          └──deadline, counted from the job's creation──▶ failed (closed, `timeout`)

A windowed job stays pending until it ends: no worker has it, so it has no lease, and it is never sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from shared.errors import LostLeaseError
from shared.jobs import model
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.window import TICKET_LIFE, Window, WindowState, link
from shared.tool.spec import JsonObject

WAITING: Final = "waiting for a person"
OPENED: Final = "opened by a person"
NO_RESULT: Final = "no_result"
#: The original's text.
CLOSED_MESSAGE: Final = "User did not complete the action — the tool window was closed without returning data."


@dataclass(frozen=True, slots=True)
class NewWindow:
    """What a call puts into its job for the window."""

    ticket: str = field(repr=False)
    #: See `Window.base`.
    base: str = ""

    def of(self, job: Job, *, timeout_asked: bool) -> Job:
        """The job as it waits for a person."""
        fresh = Window(base=self.base, timeout_asked=timeout_asked)
        waiting = replace(job, window=fresh, progress_message=WAITING)
        return with_ticket(waiting, self.ticket, job.created_at)


def window_of(job: Job) -> Window:
    """Raises `LostLeaseError` for a job that has no window."""
    if job.window is None:
        raise LostLeaseError("a job without a window cannot make this move")
    return job.window


def with_ticket(job: Job, ticket: str, now: datetime) -> Job:
    """A ticket takes the place of the one before. It ends with the job, or earlier."""
    _must_wait(job)
    until = min(job.window_until, now + TICKET_LIFE)
    return replace(job, window=window_of(job).with_ticket(ticket, until))


def opened(job: Job, session: str, now: datetime, *, by_ticket: bool) -> Job:
    _must_wait(job)
    return replace(
        job,
        window=window_of(job).with_session(session, drop_ticket=by_ticket),
        started_at=job.started_at or now,
        progress_message=OPENED,
    )


def given(job: Job, now: datetime, result: StoredBody) -> Job:
    """A person has given the result."""
    _must_wait(job)
    return replace(model.complete(job, now, result), window=replace(window_of(job), ticket=""))


def closed(job: Job, now: datetime, result: StoredBody) -> Job:
    """A person has closed the window: no error, but no data. `result`: `no_result` as stored."""
    _must_wait(job)
    moved = model.complete(job, now, result)
    return replace(moved, progress_message="closed", window=replace(window_of(job), ticket="", closed=True))


def expired(job: Job, now: datetime) -> Job:
    """The deadline has passed. The original's text."""
    _must_wait(job)
    error = (
        f"Failed to launch tool: Timed out waiting for '{job.tool_name}' to return data after "
        f"{job.timeout_ms} ms"
    )
    return model.fail(job, now, ErrorCode.TIMEOUT, error)


def no_result(job: Job) -> JsonObject:
    return {
        "status": NO_RESULT,
        "executionMode": str(job.execution_mode),
        "correlationId": job.correlation_id,
        "message": CLOSED_MESSAGE,
    }


def state_of(job: Job) -> WindowState:
    window = window_of(job)
    if not job.status.terminal:
        return WindowState.OPEN if window.sessions else WindowState.WAITING
    is_done = job.status is Status.COMPLETED and not window.closed
    return WindowState.DONE if is_done else WindowState.CLOSED


def told(job: Job, ticket: str = "") -> JsonObject:
    """`{"state", "url"?}`: the link is left out once there is nothing to open."""
    body: JsonObject = {"state": str(state_of(job))}
    if not job.status.terminal:
        body["url"] = link(window_of(job).base, job.job_id, ticket)
    return body


def _must_wait(job: Job) -> None:
    if job.status is not Status.PENDING:
        raise LostLeaseError(f"a window of a job that is {job.status} cannot make this move")
