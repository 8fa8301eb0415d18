"""An owner's invocations, newest first, page by page: jobs and all other calls in one list.

Two tables are read side by side, each in the order of its calls' ids, which is that of their coming. An entry
may be shown once both have been read down to it. The usual page costs one request to each table; more are made
only where filters, or calls of other owners, leave it short.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from shared import ids
from shared.errors import InputError
from shared.invocations.reading import ALL_READ, NOTHING_READ, RecordReading, record_of
from shared.invocations.record import Record
from shared.invocations.store import InvocationReader
from shared.jobs.model import Job, Status
from shared.jobs.reading import JobReading
from shared.jobs.repair import repaired
from shared.jobs.store import JobStore
from shared.tool.spec import ExecutionMode, JsonObject
from shared.web.entries import REJECTED, Filter, entry, shown_to

DEFAULT_LIMIT: Final = 50
MOST: Final = 100
#: Requests to each table that one page may cost.
SCANS: Final = 5
#: ms that a window may be older than its time, for clocks that differ and for settings that have been lowered.
WINDOW_MARGIN_MS: Final = 3_600_000
#: All that `status` may be.
STATUSES: Final = (*(str(status) for status in Status), REJECTED)

_GOES_ON: Final = tuple(str(status) for status in Status if not status.terminal)
_END: Final = "end"
_BAD_CURSOR: Final = "cursor: must be one that an earlier page gave"

#: Where the reading of one table goes on: (the `before` of its scan, the scan's token); "end": all has been
#: read; None: from the page's own `before` on.
type Place = tuple[str, str] | str | None


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page begins."""

    #: Id: only older calls are wanted. "": all.
    before: str = ""
    records: Place = None
    jobs: Place = None

    def text(self, wanted: Filter) -> str:
        told = ["invocations", wanted.key(), self.before, self.records, self.jobs]
        return json.dumps(told, ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str, wanted: Filter) -> Position:
        """The inverse. Raises `InputError` for another list's, or other filters'."""
        try:
            kind, key, before, records, jobs = json.loads(text)
        except (ValueError, TypeError):
            raise InputError(_BAD_CURSOR) from None
        if kind != "invocations":
            raise InputError(_BAD_CURSOR)
        if key != wanted.key():
            raise InputError("cursor: belongs to a list with other filters; begin again without it")
        return cls(before, _place(records), _place(jobs))


@dataclass(frozen=True, slots=True)
class Listed:
    """A page's entries, and where the next one begins; None: there is none."""

    entries: list[JsonObject]
    following: Position | None


@dataclass(frozen=True, slots=True)
class History:
    """Lists invocations. All of it blocks."""

    records: Callable[[], InvocationReader]
    jobs: Callable[[], JobStore]
    #: How long a window can be open at most, in ms.
    longest_window_ms: int

    def page(self, owner: str, wanted: Filter, at: Position, limit: int = DEFAULT_LIMIT) -> Listed:
        """A page may be short, or empty, and still not be the last."""
        return _Merge(self._records(wanted, at, limit), self._jobs(owner, wanted, at, limit), at).page(
            owner, wanted, limit
        )

    def one(self, owner: str, identifier: str) -> JsonObject | None:
        """The entry of one call, as the list has it; None: there is none that this owner may see.

        One request to each table, and a second one for records in under one of a hundred cases.
        """
        store = self.jobs()
        job = store.get(identifier)
        job = repaired(job, store) if job is not None and job.owner == owner else None
        found = record_of(self.records(), identifier)
        record = None if found is None else shown_to(found, owner)
        return None if record is None and job is None else entry(record, job)

    def _records(self, wanted: Filter, at: Position, limit: int) -> RecordReading | None:
        # A call that goes on is a job.
        if at.records == _END or wanted.status in _GOES_ON:
            return None
        before, token = at.records if isinstance(at.records, tuple) else (at.before, None)
        rows = limit if wanted == Filter() else MOST
        return RecordReading(self.records(), before, token, rows=rows, requests=SCANS)

    def _jobs(self, owner: str, wanted: Filter, at: Position, limit: int) -> JobReading | None:
        # A call that was rejected made none.
        if at.jobs == _END or wanted.status == REJECTED:
            return None
        before, token = at.jobs if isinstance(at.jobs, tuple) else (at.before, None)
        some = wanted.mode is not None or wanted.execution_mode is not None
        return JobReading(
            self.jobs(),
            owner,
            before,
            token,
            tool=wanted.tool,
            statuses=() if wanted.status is None else (Status(wanted.status),),
            rows=MOST if some else limit,
            requests=SCANS,
            since_ms=self._since(wanted),
        )

    def _since(self, wanted: Filter) -> int | None:
        """The earliest moment, in ms since 1970, that jobs of this filter can be from; None: any.

        A page asks for the windows that wait for somebody again and again, and mostly there are few, so that
        the whole table would be read in search of more. A windowed job stays pending until its deadline, which
        counts from its creation: an older one has ended, whether or not its row says so.
        """
        if (wanted.status, wanted.execution_mode) != (str(Status.PENDING), str(ExecutionMode.WINDOWED)):
            return None
        return time.time_ns() // 1_000_000 - self.longest_window_ms - WINDOW_MARGIN_MS


class _Merge:
    """The two readings of one page, and what they have given that is not shown yet."""

    def __init__(self, records: RecordReading | None, jobs: JobReading | None, at: Position) -> None:
        self._records = records
        self._jobs = jobs
        self._at = at
        #: (inverted id, 0 for a record and 1 for a job, a number that tells equals apart, the thing), a heap:
        #: the newest comes first.
        self._heap: list[tuple[str, int, int, Record | Job]] = []
        self._count = 0
        #: Id of the last entry looked at.
        self._last = ""

    def page(self, owner: str, wanted: Filter, limit: int) -> Listed:
        found: list[JsonObject] = []
        while True:
            low = self._low()
            while len(found) < limit and self._heap and ids.of_inverted(self._heap[0][0]) >= low:
                shown = self._next(owner)
                if shown is not None and wanted.takes(shown):
                    found.append(shown)
            if len(found) >= limit or low == ALL_READ or not self._read_on(low):
                return Listed(found, self._following(low, full=len(found) >= limit))

    def _low(self) -> str:
        return max((reading.low for reading in (self._records, self._jobs) if reading), default=ALL_READ)

    def _read_on(self, low: str) -> bool:
        """Reads more where least has been read. False: there is nothing more, or it may not."""
        if self._records is not None and self._records.low == low:
            records = self._records.more()
            for record in records or ():
                self._push(record.id, 0, record)
            return records is not None
        jobs = None if self._jobs is None else self._jobs.more()
        for job in jobs or ():
            self._push(job.job_id, 1, job)
        return jobs is not None

    def _push(self, identifier: str, kind: int, thing: Record | Job) -> None:
        if not self._at.before or identifier < self._at.before:
            self._count += 1
            heapq.heappush(self._heap, (ids.inverted(identifier), kind, self._count, thing))

    def _next(self, owner: str) -> JsonObject | None:
        """The newest call that is left: its record, its job's row, or both. None: it is not this owner's."""
        key = self._heap[0][0]
        self._last = ids.of_inverted(key)
        record: Record | None = None
        job: Job | None = None
        # A record whose storing was repeated may be there twice.
        while self._heap and self._heap[0][0] == key:
            thing = heapq.heappop(self._heap)[3]
            if isinstance(thing, Job):
                job = thing
            else:
                record = shown_to(thing, owner)
        return None if record is None and job is None else entry(record, job)

    def _following(self, low: str, *, full: bool) -> Position | None:
        kept = {kind for _, kind, _, _ in self._heap}
        records = _place_of(self._records, kept=0 in kept)
        jobs = _place_of(self._jobs, kept=1 in kept)
        if records == _END and jobs == _END:
            return None
        # An id is "" where all calls were wanted, and that sorts first.
        before = self._last if full else min(low, self._at.before or NOTHING_READ)
        return Position("" if before == NOTHING_READ else before, records, jobs)


def _place_of(reading: RecordReading | JobReading | None, *, kept: bool) -> Place:
    """Where a table's reading goes on. What was fetched and not shown is fetched again."""
    if reading is None:
        return _END
    if kept or not reading.drained:
        return None
    if reading.low == ALL_READ:
        return _END
    return None if reading.token is None else (reading.before, reading.token)


def _place(value: Any) -> Place:
    return (str(value[0]), str(value[1])) if isinstance(value, list) else value
