"""A stored job and its legal moves. Pure: no clock, no storage.

    pending ──claim──▶ in_progress ──complete──▶ completed
       │  ▲                │  │
       │  └────requeue─────┘  └──fail──▶ failed
       └──fail / complete (a window, a cancelled or poisoned job)

A running job is asked to stop, and stays in progress until its worker has heard of it (`request_cancel`).
Terminal states are final. The table row is the truth; a queue message is a hint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from shared.errors import LostLeaseError
from shared.jobs import timings
from shared.jobs.timings import Ending, Timings
from shared.jobs.window import Window
from shared.tool.spec import ExecutionMode, Mode

#: Where the sealed input is kept.
INPUT_IN_ROW: Final = "row"
INPUT_IN_BLOB: Final = "blob"
INPUT_ERASED: Final = ""
#: Bounds the wait between two messages of a job that nobody takes.
MOST_DOUBLINGS: Final = 7


#: What is told of a job that was cancelled.
CANCELLED: Final = "The job was cancelled."


class Status(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def terminal(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED)


class ErrorCode(StrEnum):
    TOOL_ERROR = "tool_error"
    INVALID_RESULT = "invalid_result"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    WORKER_LOST = "worker_lost"
    POISONED = "poisoned"


#: How the attempt of a job that fails has ended; any other code: it failed itself.
_ENDINGS: Final = {
    ErrorCode.TIMEOUT: Ending.TIMEOUT,
    ErrorCode.CANCELLED: Ending.CANCELLED,
    ErrorCode.WORKER_LOST: Ending.LOST,
    # A message is given up only while its job waits, or after the lease of a lost worker has run out.
    ErrorCode.POISONED: Ending.LOST,
}


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A result body: in the row, or in a blob whose size and digest the row knows."""

    size: int
    sha256: str = ""
    #: The attempt that stored the blob.
    attempt: int = 0
    inline: bytes | None = field(default=None, repr=False)

    @property
    def in_blob(self) -> bool:
        return self.inline is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One stored invocation, as its row holds it."""

    job_id: str
    owner: str
    tool_id: str
    tool_name: str
    mode: Mode
    execution_mode: ExecutionMode
    correlation_id: str
    timeout_ms: int
    max_attempts: int
    created_at: datetime
    status: Status = Status.PENDING
    attempt: int = 0
    started_at: datetime | None = None
    completed_at: datetime | None = None
    #: Of the newest attempts, oldest first; a window has none.
    attempts: Timings = ()
    #: Until when the current attempt is believed to be alive.
    lease_until: datetime | None = None
    progress_percent: int = 0
    progress_message: str = "queued"
    result: StoredBody | None = None
    error: str = ""
    error_code: ErrorCode | None = None
    #: Lines logged so far, and the chunk that the next line goes to at the earliest.
    log_lines: int = 0
    log_chunk: int = 0
    input_at: str = INPUT_IN_ROW
    has_auth_token: bool = False
    #: Whether the caller has named `timeout_ms`.
    timeout_asked: bool = False
    #: The first saved connection that the call named, in its stored spelling.
    connection_name: str = ""
    #: What the invocation log shows of the arguments: redacted and short.
    prefill_summary: str = ""
    #: Messages sent so far, and when the last one was; a lost message is sent again.
    sends: int = 1
    sent_at: datetime | None = None
    #: Somebody wants the running attempt to stop.
    cancel_requested: bool = False
    #: Key of the row that ties an idempotency key to this job; "" without one.
    idempotency: str = ""
    #: An attempt has kept something for the next one, in a row of its own.
    kept: bool = False
    #: Why the last delivery of the job's message failed, for who gives the message up.
    delivery_error: str = ""
    #: Of a windowed job, which waits for a person: it is never queued. Its moves: `shared.jobs.window_moves`.
    window: Window | None = None
    #: Where the job stands in the trace of its call (W3C Trace Context), for its attempts; "" when not traced.
    traceparent: str = ""
    #: Changes with every write, so that a writer whose answer was lost can tell that it went through.
    nonce: str = ""
    #: The row's version as storage gave it; "" before the first write.
    etag: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        moments = (self.created_at, self.started_at, self.completed_at, self.lease_until, self.sent_at)
        for moment in moments:
            if moment is not None and moment.tzinfo is None:
                raise ValueError("a job's times must be aware")

    def lease_expired(self, now: datetime) -> bool:
        return self.status is Status.IN_PROGRESS and self.lease_until is not None and now >= self.lease_until

    @property
    def window_until(self) -> datetime:
        """The deadline of a windowed job: it counts from the job's creation."""
        return self.created_at + timedelta(milliseconds=self.timeout_ms)

    def window_over(self, now: datetime) -> bool:
        """Whether a window's time is up and nobody has said so yet."""
        return self.window is not None and self.status is Status.PENDING and now >= self.window_until

    def resend_due(self, now: datetime, after: timedelta) -> bool:
        """Whether a pending job's message must be taken for lost. The wait doubles with every message."""
        if self.status is not Status.PENDING or self.window is not None:
            return False
        doublings = min(max(self.sends - 1, 0), MOST_DOUBLINGS)
        return now - (self.sent_at or self.created_at) >= after * (1 << doublings)


def utc_now() -> datetime:
    """The time, to the millisecond: what a row and the wire carry."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def claim(job: Job, now: datetime, lease_ms: int) -> Job:
    """A worker takes a pending job: the next attempt begins. Progress restarts with it."""
    _must_be(job, Status.PENDING)
    if job.window is not None:
        raise LostLeaseError("a job that waits for a person cannot make this move")
    return replace(
        job,
        status=Status.IN_PROGRESS,
        attempt=job.attempt + 1,
        started_at=now,
        attempts=timings.begun(job.attempts, job.attempt + 1, now),
        lease_until=now + timedelta(milliseconds=lease_ms),
        progress_percent=0,
        progress_message="running",
    )


def renew(job: Job, now: datetime, lease_ms: int) -> Job:
    _must_be(job, Status.IN_PROGRESS)
    return replace(job, lease_until=now + timedelta(milliseconds=lease_ms))


def requeue(job: Job, now: datetime) -> Job:
    """A lost attempt is given back; the next claim counts as a new one. Its message is yet to be sent."""
    _must_be(job, Status.IN_PROGRESS)
    return replace(
        job,
        status=Status.PENDING,
        lease_until=None,
        attempts=_attempts(job, now, Ending.LOST),
        progress_message="queued again",
        sends=1,
        sent_at=now,
    )


def resend(job: Job, now: datetime) -> Job:
    """Another message is sent for a job whose last one seems lost."""
    _must_be(job, Status.PENDING)
    return replace(job, sends=job.sends + 1, sent_at=now)


def request_cancel(job: Job, now: datetime) -> Job:
    """A pending job ends at once; a running one is asked to stop."""
    if job.status is Status.PENDING:
        return fail(job, now, ErrorCode.CANCELLED, CANCELLED)
    _must_be(job, Status.IN_PROGRESS)
    return replace(job, cancel_requested=True)


def expire(job: Job, now: datetime) -> Job:
    """What becomes of a job whose worker was lost: another attempt if it has one, else the end."""
    _must_be(job, Status.IN_PROGRESS)
    job = replace(job, attempts=_attempts(job, now, Ending.LOST))
    if job.cancel_requested:
        return fail(job, now, ErrorCode.CANCELLED, CANCELLED)
    if job.attempt < job.max_attempts:
        return requeue(job, now)
    error = f"The worker was lost during attempt {job.attempt} of {job.max_attempts}."
    return fail(job, now, ErrorCode.WORKER_LOST, error)


def complete(job: Job, now: datetime, result: StoredBody) -> Job:
    _must_be(job, Status.IN_PROGRESS, Status.PENDING)
    return replace(
        job,
        status=Status.COMPLETED,
        completed_at=now,
        lease_until=None,
        attempts=_attempts(job, now, Ending.COMPLETED),
        progress_percent=100,
        progress_message="completed",
        result=result,
        input_at=INPUT_ERASED,
        kept=False,
    )


def fail(job: Job, now: datetime, code: ErrorCode, error: str, result: StoredBody | None = None) -> Job:
    """`result`: what the tool answered with its error, if anything."""
    _must_be(job, Status.IN_PROGRESS, Status.PENDING)
    return replace(
        job,
        status=Status.FAILED,
        completed_at=now,
        lease_until=None,
        attempts=_attempts(job, now, _ENDINGS.get(code, Ending.FAILED)),
        progress_message="failed",
        error=error or "The job failed; nothing was said about it.",
        error_code=code,
        result=result,
        input_at=INPUT_ERASED,
        kept=False,
    )


def _attempts(job: Job, now: datetime, outcome: Ending) -> Timings:
    """With the end of the attempt that runs, if one does. A lost one ended with its lease at the latest."""
    if job.status is not Status.IN_PROGRESS:
        return job.attempts
    if outcome is Ending.LOST and job.lease_until is not None:
        now = min(now, job.lease_until)
    return timings.ended(job.attempts, job.attempt, job.started_at, now, outcome)


def _must_be(job: Job, *legal: Status) -> None:
    if job.status not in legal:
        raise LostLeaseError(f"a job that is {job.status} cannot make this move")
