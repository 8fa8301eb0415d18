"""The spans of a job, and what is counted of it.

A job's row carries the `traceparent` of its submission, so that each attempt, on whatever worker and however
much later, is in the trace of the call. The id of an attempt's span follows from the job and the attempt's
number: a worker that is killed never exports it, and whoever finds that out does so in its place, so that what
ran within the lost attempt is not left without a parent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Protocol

from shared.telemetry import names
from shared.telemetry.names import Attribute, SpanName
from shared.telemetry.spans import NO_SPAN, Ended, Kind, Output, Recorded, Span, count, switch
from shared.telemetry.trace import Place, attempt_span_id, current, job_trace_id, parsed

_MESSAGING: Final = "azure_queue_storage"
_COMPLETED: Final = "completed"
_LOST: Final = "worker_lost"


class JobRow(Protocol):
    """What is asked of a `shared.jobs.model.Job`."""

    @property
    def job_id(self) -> str: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def traceparent(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def error_code(self) -> str | None: ...
    @property
    def execution_mode(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def sent_at(self) -> datetime | None: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def completed_at(self) -> datetime | None: ...
    @property
    def lease_until(self) -> datetime | None: ...


def submission(tool: str, *, queued: bool) -> Span:
    """`job.submit TOOL`: its `traceparent` goes into the job's row. `queued`: a message is sent as well."""
    if (out := switch.out) is None:
        return NO_SPAN
    kind = Kind.PRODUCER if queued else Kind.INTERNAL
    span = Recorded(out, f"{SpanName.SUBMIT} {tool}", kind, parent=current.get())
    span.set(Attribute.TOOL, tool)
    if queued:
        span.set(Attribute.MESSAGING_SYSTEM, _MESSAGING)
        span.set(Attribute.MESSAGING_OPERATION, "send")
    return span


def submitted(span: Span, job: JobRow) -> None:
    """Which job the submission has led to: its own, or the one that its idempotency key stood for already."""
    if not isinstance(span, Recorded):
        return
    span.set(Attribute.JOB_ID, job.job_id)
    if job.traceparent != span.traceparent:
        span.set(Attribute.REUSED, True)
        if (place := parsed(job.traceparent)) is not None:
            span.link(place)


def attempt(job: JobRow, invocation: object = None) -> Span:
    """`job.attempt TOOL`, of a job as claimed. `invocation`: the host's context of the message's delivery."""
    if (out := switch.out) is None:
        return NO_SPAN
    _count_wait(out, job)
    links = [] if job.attempt <= 1 else [_place_of(job, job.attempt - 1, out)]
    trace = getattr(invocation, "trace_context", None)
    host = parsed(getattr(trace, "trace_parent", None)) if out.propagates else None
    if host is not None:
        links.append(host)
    own = _place_of(job, job.attempt, out)
    span = Recorded(
        out,
        f"{SpanName.ATTEMPT} {job.tool_name}",
        Kind.CONSUMER,
        parent=parsed(job.traceparent),
        trace_id=own.trace_id,
        span_id=own.span_id,
        sampled=own.sampled,
        links=links,
    )
    span.attributes |= _of_attempt(job)
    return span


def end_attempt(span: Span, job: JobRow) -> None:
    """How the attempt ended: `job` as its last write left it."""
    if not isinstance(span, Recorded):
        return
    error = "" if job.status == _COMPLETED else str(job.error_code or job.status)
    span.set(Attribute.OUTCOME, str(job.status))
    span.set(Attribute.ERROR, error)
    _count_attempt(span.out, job, error, span.seconds)


def worker_lost(job: JobRow) -> None:
    """The attempt of `job` has ended with its worker. Told once, by who moves the job on; `job`: as before."""
    if (out := switch.out) is None:
        return
    count(out, names.WORKERS_LOST, 1, TOOL=job.tool_name)
    began, until = job.started_at or job.created_at, job.lease_until or job.created_at
    _count_attempt(out, job, _LOST, max((until - began).total_seconds(), 0.0))
    place = _place_of(job, job.attempt, out)
    if not place.sampled:
        return
    told = _of_attempt(job) | {Attribute.OUTCOME: "failed", Attribute.ERROR: _LOST, Attribute.LOST: True}
    start = _nanoseconds(began)
    name = f"{SpanName.ATTEMPT} {job.tool_name}"
    end = max(_nanoseconds(until), start)
    out.put(Ended(name, Kind.CONSUMER, place, parsed(job.traceparent), (), start, end, told))


def job_ended(job: JobRow, lines_dropped: int) -> None:
    """A job has reached its end, whoever wrote it. `lines_dropped`: log lines that were not kept."""
    if (out := switch.out) is None:
        return
    error = "" if job.status == _COMPLETED else str(job.error_code or job.status)
    took = ((job.completed_at or job.created_at) - job.created_at).total_seconds()
    told = {"TOOL": job.tool_name, "EXECUTION_MODE": str(job.execution_mode), "ERROR": error}
    count(out, names.JOBS, 1, OUTCOME=str(job.status), **told)
    count(out, names.JOB_DURATION, max(took, 0.0), **told)
    if lines_dropped:
        count(out, names.DROPPED, lines_dropped, TOOL=job.tool_name, RECORD="job")


def queue_looked_at(oldest: datetime | None, now: datetime) -> None:
    """`oldest`: since when the job waits that waits longest, as the timer has found; None: none waits."""
    if (out := switch.out) is not None:
        count(out, names.QUEUE_AGE, 0.0 if oldest is None else max((now - oldest).total_seconds(), 0.0))


def _count_wait(out: Output, job: JobRow) -> None:
    # As claimed: the attempt is counted already, and what was sent was sent for it.
    since = job.created_at if job.attempt <= 1 else job.sent_at or job.created_at
    waited = ((job.started_at or since) - since).total_seconds()
    count(out, names.QUEUE_TIME, max(waited, 0.0), TOOL=job.tool_name)


def _count_attempt(out: Output, job: JobRow, error: str, seconds: float) -> None:
    outcome = "failed" if error else _COMPLETED
    count(out, names.ATTEMPTS, 1, TOOL=job.tool_name, OUTCOME=outcome, ERROR=error)
    count(out, names.ATTEMPT_DURATION, seconds, TOOL=job.tool_name, ERROR=error)


def _place_of(job: JobRow, number: int, out: Output) -> Place:
    parent = parsed(job.traceparent)
    trace_id = job_trace_id(job.job_id) if parent is None else parent.trace_id
    return Place(trace_id, attempt_span_id(job.job_id, number), out.sampler.samples(trace_id, parent))


def _of_attempt(job: JobRow) -> dict[Attribute, str | int | float | bool]:
    return {
        Attribute.TOOL: job.tool_name,
        Attribute.JOB_ID: job.job_id,
        Attribute.ATTEMPT: job.attempt,
        Attribute.MOST_ATTEMPTS: job.max_attempts,
        Attribute.MESSAGING_SYSTEM: _MESSAGING,
        Attribute.MESSAGING_OPERATION: "process",
    }


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) * 1_000_000
