"""What a job keeps from one attempt to the next, for tools that may run again after a lost worker.

    row "checkpoint"    sealed {"value": any JSON object or null, "parts": [[attempt, first, count], …]}
    blob ID/part-N/M    a part: attempt N's number M (from 0), sealed, never written twice

The row goes with the recorder's next write of the job, in the same transaction and on the same version; the
next attempt reads it with the job's input, in the same request; the terminal transaction removes it. A job that
keeps nothing pays no request for it.

A part is stored before the row that counts it, under a name that no other attempt writes. So what a row counts
is there, and a lost worker that wakes up cannot change what its successor goes on from.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from shared.errors import JobCancelledError, PayloadError, ToolboxError, ToolError
from shared.jobs import keys
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.tool.spec import JsonObject

_LOG = logging.getLogger(__name__)

#: Bytes of a value as JSON: its row is written with the log's chunks, and a property has 64 KiB.
VALUE_BYTES: Final = 48 * 1024
#: Bytes of one part: with base64 around it, a frame from a tool's own process still holds it.
PART_BYTES: Final = 32 * 1024 * 1024

_FIELD: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class Run:
    """Parts of one attempt that follow one another: `count` of them from number `first` on."""

    attempt: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What a checkpoint's row says."""

    value: JsonObject | None = None
    parts: tuple[Run, ...] = ()

    def with_part(self, attempt: int, number: int) -> tuple[Run, ...]:
        """The parts and one more."""
        last = self.parts[-1] if self.parts else None
        if last is not None and last.attempt == attempt and last.first + last.count == number:
            return (*self.parts[:-1], Run(attempt, last.first, last.count + 1))
        return (*self.parts, Run(attempt, number, 1))


def open_kept(job: Job, sealed: bytes | None, sealer: Sealer) -> Kept:
    """What an earlier attempt has kept. Raises `PayloadError` when it cannot be read."""
    if sealed is None:
        return Kept()
    try:
        body = json.loads(sealer.open(job.job_id, sealed, _FIELD))
        return Kept(body["value"], tuple(Run(*numbers) for numbers in body["parts"]))
    except (ValueError, KeyError, TypeError):
        raise PayloadError("What an earlier attempt has kept is damaged.") from None


class JobCheckpoint:
    """`context.checkpoint` of a running attempt. `unwanted`: why its work is not wanted any more, if so.

    `keep`: takes the sealed row, which goes with the next write of the job.
    """

    def __init__(
        self,
        job: Job,
        store: JobStore,
        sealer: Sealer,
        found: Kept,
        keep: Callable[[bytes], None],
        unwanted: Callable[[], JobCancelledError | None],
    ) -> None:
        self._job = job
        self._store = store
        self._sealer = sealer
        self._keep = keep
        self._unwanted = unwanted
        # One save at a time: their order is that of the parts.
        self._turn = threading.Lock()
        self._found = self._now = found
        self._next = 0

    @property
    def value(self) -> JsonObject | None:
        """See `shared.tool.context.Checkpoint`."""
        return self._found.value

    @property
    def has_parts(self) -> bool:
        """Whether there may be parts to remove at the end."""
        return self._next > 0 or bool(self._found.parts) or self._job.kept

    def parts(self) -> Iterator[bytes]:
        """See `shared.tool.context.Checkpoint`."""
        for number in range(self.part_count):
            yield self.part(number)

    @property
    def part_count(self) -> int:
        return sum(run.count for run in self._found.parts)

    def part(self, number: int) -> bytes:
        """One of the parts, counted from 0. Blocks. Raises `ToolError` when it cannot be read."""
        left = number
        for run in self._found.parts:
            if left < run.count:
                return self._opened(run.attempt, run.first + left)
            left -= run.count
        raise ToolError(f"checkpoint: there is no part {number}; it has {self.part_count}")

    def save(self, value: JsonObject, part: bytes = b"") -> None:
        """See `shared.tool.context.Checkpoint`."""
        text = written(value)
        check_part(part)
        with self._turn:
            self._check_wanted()
            kept = Kept(
                json.loads(text),
                self._now.with_part(self._job.attempt, self._next) if part else self._now.parts,
            )
            sealed = self._sealed(kept, text)
            if part:
                self._put(part)
            self._now = kept
            self._keep(sealed)

    def clear(self) -> None:
        """See `shared.tool.context.Checkpoint`."""
        with self._turn:
            self._found = Kept()
            if self._now != self._found:
                self._now = self._found
                self._keep(self._sealed(self._now))

    def _sealed(self, kept: Kept, text: str = "null") -> bytes:
        parts = [[run.attempt, run.first, run.count] for run in kept.parts]
        body = f'{{"value":{text},"parts":{json.dumps(parts)}}}'
        return self._sealer.seal(self._job.job_id, body.encode("ascii"), _FIELD)

    def _put(self, part: bytes) -> None:
        attempt, number = self._job.attempt, self._next
        # Counted before it is stored: what may be there is removed at the end, and never written over.
        self._next += 1
        name = keys.part_blob(self._job.job_id, attempt, number)
        sealed = self._sealer.seal(self._job.job_id, part, _part_field(attempt, number))
        try:
            self._store.put_blob(name, sealed)
        except Exception as error:
            _LOG.warning("job %s: a part was not kept", self._job.job_id, exc_info=True)
            raise ToolError(f"checkpoint: the part could not be stored ({type(error).__name__})") from None
        try:
            self._check_wanted()
        except JobCancelledError:
            # It may have come after the end, when nobody looks for parts any more.
            self._store.delete_blob(name)
            raise

    def _opened(self, attempt: int, number: int) -> bytes:
        try:
            sealed = self._store.get_blob(keys.part_blob(self._job.job_id, attempt, number))
            if sealed is not None:
                return self._sealer.open(self._job.job_id, sealed, _part_field(attempt, number))
        except ToolboxError as error:
            raise ToolError(f"checkpoint: a kept part cannot be read: {error.message}") from None
        raise ToolError("checkpoint: a kept part is gone")

    def _check_wanted(self) -> None:
        reason = self._unwanted()
        if reason is not None:
            raise reason


def written(value: JsonObject) -> str:
    """A value's JSON, in ASCII. Raises `ToolError` for what cannot be kept."""
    if not isinstance(value, dict):
        raise ToolError(f"checkpoint: the value must be an object, not {type(value).__name__}")
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolError(f"checkpoint: the value cannot be written as JSON ({error})") from None
    if len(text) > VALUE_BYTES:
        raise ToolError(f"checkpoint: the value has {len(text)} bytes as JSON; it may have {VALUE_BYTES}")
    return text


def check_part(part: bytes) -> None:
    """Raises `ToolError` for what cannot be kept."""
    if not isinstance(part, bytes):
        raise ToolError(f"checkpoint: a part must be bytes, not {type(part).__name__}")
    if len(part) > PART_BYTES:
        raise ToolError(f"checkpoint: a part has {len(part)} bytes; it may have {PART_BYTES} (32 MiB)")


def _part_field(attempt: int, number: int) -> str:
    return f"part {attempt}/{number}"
