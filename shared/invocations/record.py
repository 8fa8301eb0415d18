"""One record of one call, as it is stored and logged: a line of JSON.

A call that became a job has the job's row as its stored record, which changes as the job does. Every other call
is in a row of the table `invocations`, which holds many:

    partition key  inverted time bucket (8 hex digits): newest first
    row key        the id of the row's newest call, inverted (see `shared.ids`): newest first
    oldest         the id of its oldest call
    lines          the records, oldest first, as lines of JSON; compressed with zlib

One row a second and process is what the log costs, whatever the number of calls; long ones make some more.

The rows of all processes lie in one order, that of their newest calls, and a row's calls came within `SPAN_MS`.
So a reader that has come to a row has seen every call newer than it, and who wants the calls before a moment
need not begin more than that span above it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final

from shared import ids

TABLE: Final = "invocations"
#: How long one partition is written to.
BUCKET_MS: Final = 600_000
#: The most that lies between a row's calls. Those that took long lie in rows of their own: where a page begins,
#: a reader must look at all rows of this span again.
SPAN_MS: Final = 5_000
#: Characters of an error's text.
ERROR_LIMIT: Final = 2_000
#: The most that a row's property may hold, less some.
ROW_BYTES: Final = 60 * 1024

_BUCKETS: Final = (1 << 32) - 1
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Outcome(StrEnum):
    COMPLETED = "completed"
    #: The tool ran and failed.
    FAILED = "failed"
    #: A job was made, and goes on.
    ACCEPTED = "accepted"
    #: The tool never ran: arguments, options or token were refused.
    REJECTED = "rejected"
    #: A person closed the window without an answer.
    NO_RESULT = "no-result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is known of one call. Texts are redacted already."""

    #: UUIDv7: when the call came, and what makes its correlation id.
    id: str
    tool_id: str
    tool_name: str
    outcome: Outcome
    duration_ms: int
    #: Empty where the call was refused before it was known.
    owner: str = ""
    mode: str = ""
    execution_mode: str = ""
    job_id: str = ""
    #: The Functions host's own id of this invocation.
    invocation_id: str = ""
    prefill_summary: str = ""
    error: str = ""
    error_code: str = ""

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(ids.milliseconds_of(self.id) / 1000, UTC)

    def fields(self) -> dict[str, Any]:
        """The record by its names on the wire; what is unknown is left out."""
        named = {
            "time": self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "toolId": self.tool_id,
            "toolName": self.tool_name,
            "mode": self.mode,
            "executionMode": self.execution_mode,
            "outcome": self.outcome.value,
            "durationMs": self.duration_ms,
            "owner": self.owner,
            "correlationId": ids.correlation_id(self.id),
            "jobId": self.job_id,
            "invocationId": self.invocation_id,
            "prefillSummary": self.prefill_summary,
            "error": self.error[:ERROR_LIMIT],
            "errorCode": self.error_code,
        }
        return {name: value for name, value in named.items() if value != ""}

    def line(self) -> str:
        """The record as one line of JSON, for the app's log."""
        return _compact(self.fields())

    @classmethod
    def of_line(cls, line: str) -> Record:
        """The inverse of `line`."""
        told = json.loads(line)
        return cls(
            id=told["correlationId"].removeprefix(ids.CORRELATION_PREFIX),
            tool_id=told["toolId"],
            tool_name=told["toolName"],
            outcome=Outcome(told["outcome"]),
            duration_ms=told["durationMs"],
            owner=told.get("owner", ""),
            mode=told.get("mode", ""),
            execution_mode=told.get("executionMode", ""),
            job_id=told.get("jobId", ""),
            invocation_id=told.get("invocationId", ""),
            prefill_summary=told.get("prefillSummary", ""),
            error=told.get("error", ""),
            error_code=told.get("errorCode", ""),
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A record ready to be stored."""

    id: str
    text: str


def entities(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The rows that hold the lines."""
    return [row for part in _spans(lines) for row in _rows(part)]


def _spans(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines in the order of their calls' coming, cut where a row would reach over too long a time."""
    part: list[Line] = []
    first = 0
    for came, line in sorted(((ids.milliseconds_of(line.id), line) for line in lines), key=itemgetter(0)):
        if part and came - first > SPAN_MS:
            yield part
            part = []
        if not part:
            first = came
        part.append(line)
    if part:
        yield part


def _rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    data = zlib.compress("\n".join(line.text for line in lines).encode(), 1)
    if len(data) > ROW_BYTES and len(lines) > 1:
        half = len(lines) // 2
        return [*_rows(lines[:half]), *_rows(lines[half:])]
    told = [line.id for line in lines]
    newest, oldest = max(told), min(told)
    partition = partition_key(ids.milliseconds_of(newest))
    return [{"PartitionKey": partition, "RowKey": ids.inverted(newest), "oldest": oldest, "lines": data}]


def partition_key(milliseconds: int) -> str:
    return f"{max(_BUCKETS - milliseconds // BUCKET_MS, 0):08x}"


def records_of(lines: bytes) -> list[Record]:
    """The inverse of `entities`, for one row's `lines`."""
    return [Record.of_line(line) for line in zlib.decompress(lines).decode().split("\n")]
