"""What callers are told about a job: the acceptance, the final answer, and the status body."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from shared import storage
from shared.errors import JobNotFoundError, PayloadError
from shared.jobs import keys, window_moves
from shared.jobs.logs import LINES, LogLine
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.payload import check_body, unpack_result
from shared.jobs.repair import repaired
from shared.jobs.rows import stamp
from shared.jobs.store import JobStore
from shared.jobs.timings import Timing
from shared.tool.result import META_PREFIX, ToolResult, failure
from shared.tool.spec import JsonObject

_LOG = logging.getLogger(__name__)

#: Seconds between a waiting call's reads: short at first, for jobs that are done at once.
FIRST_POLL: Final = 0.1
LAST_POLL: Final = 1.0


def job_path(job_id: str) -> str:
    return f"/mcp/jobs/{job_id}"


def status_url(job_id: str) -> str:
    return f"{job_path(job_id)}/status"


def acceptance(
    job: Job, *, wait_limit_ms: int | None = None, ticket: str = "", token_unused: bool = False
) -> ToolResult:
    """The answer for a job that is not done (or not waited for): how to read it later.

    `wait_limit_ms`: how long this call has waited, when it did. `ticket`: what opens the job's window.
    `token_unused`: the call came with a token that a window does not get.
    """
    body: JsonObject = {
        "status": "accepted",
        "executionMode": str(job.execution_mode),
        "mode": str(job.mode),
        "jobId": job.job_id,
        "jobStatusPath": job_path(job.job_id),
        "statusUrl": status_url(job.job_id),
        "jobStatus": str(job.status),
        "correlationId": job.correlation_id,
        "timeoutMs": job.timeout_ms,
        "hasAuthToken": job.has_auth_token,
        "authSource": _auth_source(job),
    }
    if job.connection_name:
        body["connectionName"] = job.connection_name
    if wait_limit_ms is not None:
        body["waitLimitMs"] = wait_limit_ms
    if job.window is not None:
        body["window"] = window_moves.told(job, ticket)
        url = body["window"].get("url")
        if url is not None:
            body["message"] = _window_message(job, str(url), token_unused=token_unused)
    elif wait_limit_ms is not None:
        body["message"] = (
            f"The job still runs after the {wait_limit_ms} ms that a call waits, and goes on. Read it with "
            f"GET {status_url(job.job_id)} and the X-MCP-Auth-Token header until it is completed or failed."
        )
    return ToolResult((), body, meta=_meta(job))


def _window_message(job: Job, url: str, *, token_unused: bool) -> str:
    where = url if url.startswith("http") else f"{url} at this app's address"
    text = (
        f"A person has to go on with this: open {where} before {stamp(job.window_until)}. Then read the result "
        f"with GET {status_url(job.job_id)} and the X-MCP-Auth-Token header, or with the tool job_status."
    )
    return f"{text} The authToken was not used: a window is never given one." if token_unused else text


def _auth_source(job: Job) -> str:
    """Whose credentials the call came with; its own token counts, though the APIs use the connection's."""
    if job.has_auth_token:
        return "provided-token"
    return "connection-name" if job.connection_name else "none"


async def wait(job: Job, store: JobStore, limit_ms: int) -> Job:
    """The job as it is when it has ended, or after `limit_ms` milliseconds."""
    deadline = time.monotonic() + limit_ms / 1000
    pause = FIRST_POLL
    while not job.status.terminal:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LAST_POLL)
        try:
            found = await storage.run(store.get, job.job_id)
        except Exception:
            # The job goes on without us: whoever waits gets the acceptance in the end, with the way to read it.
            _LOG.warning("job %s: could not be read while waiting", job.job_id, exc_info=True)
            continue
        if found is None:
            raise JobNotFoundError
        now = utc_now()
        is_late = found.lease_expired(now) or found.window_over(now)
        job = await storage.run(repaired, found, store) if is_late else found
    return job


def failed(job: Job, text: str, code: str) -> ToolResult:
    """An `isError` answer that says which job it is about, so that it can be looked at."""
    return failure(
        f"{text} (job {job.job_id})", jobId=job.job_id, statusUrl=status_url(job.job_id), errorCode=code
    )


async def final(job: Job, store: JobStore) -> ToolResult:
    """The answer of a job that has ended."""
    told = failed(job, job.error, str(job.error_code)) if job.status is Status.FAILED else None
    if told is not None and job.result is None:
        return told
    try:
        result = await storage.run(result_of, job, store)
    except PayloadError as error:
        return told or failed(job, error.message, error.code)
    if told is not None:
        # What the tool has answered with its error stands beside the text that names the job.
        others = tuple(block for block in result.content if block.get("type") != "text")
        return replace(told, structured=result.structured, content=(*told.content, *others))
    return replace(result, meta={**result.meta, **_meta(job)})


def result_of(job: Job, store: JobStore) -> ToolResult:
    """A completed job's result. Blocks. Raises `PayloadError` when its blob is gone or was changed."""
    body = job.result
    if body is None:
        raise PayloadError("The job has no result.")
    data = body.inline
    if data is None:
        data = check_body(body, store.get_blob(keys.result_blob(job.job_id, body.attempt)))
    return unpack_result(data)


def status_body(job: Job, logs: Sequence[LogLine], result: ToolResult | None) -> JsonObject:
    """What everybody is told who may read a job. Absent values are left out.

    `content` holds the result's content blocks (images and the like) where the tool made any; `logs` may be a
    part of the newest lines, and `logsDropped` counts those that are kept no more.
    """
    body: JsonObject = {
        "jobId": job.job_id,
        "toolId": job.tool_id,
        "toolName": job.tool_name,
        "status": str(job.status),
        "mode": str(job.mode),
        "executionMode": str(job.execution_mode),
        "correlationId": job.correlation_id,
        "attempt": job.attempt,
        "createdAt": stamp(job.created_at),
        "startedAt": stamp(job.started_at),
        "completedAt": stamp(job.completed_at),
        "timeoutMs": job.timeout_ms,
        "progress": {"percent": job.progress_percent, "message": job.progress_message},
    }
    if result is not None:
        body["result"] = result.structured
        body["content"] = list(result.content) or None
    body["error"] = job.error or None
    body["errorCode"] = None if job.error_code is None else str(job.error_code)
    if job.window is not None:
        body["window"] = window_moves.told(job)
    if job.cancel_requested and not job.status.terminal:
        body["cancelRequested"] = True
    body["logs"] = [_line(line) for line in logs]
    body["logsDropped"] = max(job.log_lines - LINES, 0)
    body["statusUrl"] = status_url(job.job_id)
    return {name: value for name, value in body.items() if value is not None}


def owners_body(job: Job, logs: Sequence[LogLine], result: ToolResult | None) -> JsonObject:
    """What `GET /mcp/jobs/{id}` answers: the status body, with what lists leave out and operators are not told.

    `inputSummary` is redacted and short; `attempts` has the newest ones, oldest first.
    """
    body = status_body(job, logs, result) | {"owner": job.owner}
    if job.prefill_summary:
        body["inputSummary"] = job.prefill_summary
    if job.attempts:
        body["attempts"] = [_attempt(one) for one in job.attempts]
    return body


def _attempt(timing: Timing) -> JsonObject:
    """`{"attempt", "startedAt", "endedAt"?, "outcome"?}`"""
    body: JsonObject = {"attempt": timing.attempt, "startedAt": stamp(timing.started_at)}
    if timing.outcome is not None:
        body |= {"endedAt": stamp(timing.ended_at), "outcome": str(timing.outcome)}
    return body


def _line(line: LogLine) -> dict[str, Any]:
    return {
        "seq": line.sequence,
        "timestamp": stamp(line.timestamp),
        "level": line.level.word,
        "message": line.message,
    }


def _meta(job: Job) -> JsonObject:
    return {
        f"{META_PREFIX}jobId": job.job_id,
        f"{META_PREFIX}statusUrl": status_url(job.job_id),
    }
