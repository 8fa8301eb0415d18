"""How `dev.py jobs` shows jobs: never an input, a token, or a value of a result."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from infra.local.dev.console import paint, say
from infra.local.dev.jobs_actions import note
from shared.jobs import answers
from shared.jobs.logs import LogLine
from shared.jobs.model import Job, Status
from shared.jobs.payload import unpack_result
from shared.jobs.rows import stamp

_STYLES = {
    Status.FAILED: "red",
    Status.COMPLETED: "green",
    Status.IN_PROGRESS: "cyan",
    Status.PENDING: "yellow",
}
_LOG_FIELDS = ("logs", "logsDropped")


def to_json(job: Job, now: datetime) -> dict[str, Any]:
    """A job in short, with what only an operator is told; the summary of its input is its owner's."""
    body = answers.status_body(job, (), None)
    shown = {name: value for name, value in body.items() if name not in _LOG_FIELDS}
    extra = {
        "owner": job.owner,
        "maxAttempts": job.max_attempts,
        "messagesSent": 0 if job.window is not None else job.sends,
        "messageSentAt": stamp(job.sent_at),
        "leaseUntil": stamp(job.lease_until),
        "deliveryError": job.delivery_error,
        "note": note(job, now),
    }
    return shown | {name: value for name, value in extra.items() if value not in (None, "")}


def full_json(job: Job, lines: Sequence[LogLine], now: datetime) -> dict[str, Any]:
    body = answers.status_body(job, lines, None)
    shown = to_json(job, now) | {name: body[name] for name in _LOG_FIELDS}
    return shown | ({} if job.result is None else {"resultSummary": result_summary(job)})


def result_summary(job: Job) -> dict[str, Any]:
    """Size, place, and the names of its fields. Its values are its owner's."""
    stored = job.result
    assert stored is not None
    summary: dict[str, Any] = {"bytes": stored.size, "in": "blob" if stored.in_blob else "row"}
    if stored.inline is None:
        return summary | {"sha256": stored.sha256}
    result = unpack_result(stored.inline)
    if isinstance(result.structured, dict):
        summary["fields"] = sorted(result.structured)
    summary["content"] = [str(block.get("type", "")) for block in result.content]
    return summary


def show_list(jobs: Sequence[Job], now: datetime) -> None:
    rows = [
        (job.job_id, str(job.status), stamp(job.created_at) or "", job.tool_name, job.owner, note(job, now))
        for job in jobs
    ]
    heads = ("JOB", "STATUS", "CREATED", "TOOL", "OWNER", "NOTE")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    say(paint(_line(heads, widths), "dim"))
    for job, row in zip(jobs, rows, strict=True):
        say(paint(_line(row, widths), _STYLES[job.status]))


def show_job(job: Job, lines: Sequence[LogLine], now: datetime) -> None:
    body = full_json(job, lines, now)
    progress = body.get("progress", {})
    body["progress"] = f"{progress.get('percent', 0)} % {progress.get('message', '')}".rstrip()
    for name, value in body.items():
        if name not in (*_LOG_FIELDS, "resultSummary", "window") and value != "":
            say(f"{name:<15} {value}")
    if (summary := body.get("resultSummary")) is not None:
        say(f"{'result':<15} {', '.join(f'{key}: {_plain(value)}' for key, value in summary.items())}")
    if body["logsDropped"]:
        say(paint(f"… {body['logsDropped']} older lines are gone", "dim"))
    for line in body["logs"]:
        say(f"  {line['timestamp']} {line['level']:<5} {line['message']}")


def _plain(value: object) -> str:
    return " ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
