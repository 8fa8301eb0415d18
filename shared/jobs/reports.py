"""What a running attempt's tool has said so far, and whether it is still wanted. No storage.

The tool reports from any thread; the recorder takes what is new, and puts back what it could not write.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from shared.errors import JobCancelledError
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import Job, utc_now
from shared.redaction import Redactor

#: Characters of a progress message.
MESSAGE_LIMIT: Final = 1_000

_LEVELS: Final = {"debug": Level.DEBUG, "info": Level.INFO, "warn": Level.WARN, "error": Level.ERROR}


class Reports:
    """Thread-safe. `job`: the row as claimed."""

    def __init__(self, job: Job, redact: Redactor) -> None:
        self._redact = redact
        #: Guards everything here; notified when there is something new to write, and at the end.
        self.changed = threading.Condition()
        self._ring = LogRing(job.log_lines, job.log_chunk)
        self._percent = job.progress_percent
        self._message = job.progress_message
        self._kept: bytes | None = None
        self._dirty = False
        self._closed = False
        self._unwanted: JobCancelledError | None = None
        self._when_unwanted: list[Callable[[], object]] = []

    @property
    def dirty(self) -> bool:
        """Whether there is something that was not taken yet."""
        return self._dirty

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def unwanted(self) -> JobCancelledError | None:
        """Why later reports raise; None while the attempt is wanted."""
        return self._unwanted

    @property
    def over(self) -> JobCancelledError | None:
        """Why nothing can be left for the job any more: it is not wanted, or the attempt has ended."""
        if self._unwanted is None and self._closed:
            return JobCancelledError("The job has ended.")
        return self._unwanted

    def progress(self, percent: object, message: object) -> None:
        """Progress is a whole number from 0 to 100 that never falls; anything else leaves it as it is."""
        with self.changed:
            if self._unwanted is not None:
                raise self._unwanted
            if self._closed:
                return
            self._percent = max(self._percent, whole_percent(percent) or 0)
            if message is not None:
                self._message = self._redact(text_of(message))[:MESSAGE_LIMIT]
            self._mark()

    def log(self, level: str, message: object) -> None:
        line = self._redact(text_of(message))
        with self.changed:
            if not self._closed:
                self._ring.append(_LEVELS.get(level, Level.INFO), line, utc_now())
                self._mark()

    def keep(self, sealed: bytes) -> None:
        """What the next attempt is to find, in the place of what was kept before."""
        with self.changed:
            if not self._closed:
                self._kept = sealed
                self._mark()

    def on_unwanted(self, callback: Callable[[], object]) -> None:
        """Calls back, from any thread, once the attempt is not wanted any more; at once if it is so already."""
        with self.changed:
            if self._unwanted is None:
                self._when_unwanted.append(callback)
                return
        callback()

    def abandon(self, reason: str) -> None:
        """The tool is no longer waited for: its next report raises, its result will change nothing."""
        with self.changed:
            if self._unwanted is not None:
                return
            self._unwanted = JobCancelledError(reason)
            told, self._when_unwanted = self._when_unwanted, []
        for callback in told:
            callback()

    def close(self, last_line: tuple[Level, str] | None = None) -> None:
        """Nothing is taken in after this but the last line."""
        with self.changed:
            self._closed = True
            if last_line is not None:
                self._ring.append(last_line[0], self._redact(last_line[1]), utc_now())
            self.changed.notify_all()

    # What the recorder writes.

    def take(self) -> tuple[tuple[int, bytes], ...]:
        """The chunks of the log that changed since the last call."""
        with self.changed:
            self._dirty = False
            return tuple(self._ring.take_dirty())

    def take_kept(self) -> bytes | None:
        """What was kept since the last call."""
        with self.changed:
            kept, self._kept = self._kept, None
            return kept

    def put_back(self, slots: Iterable[int], kept: bytes | None = None) -> None:
        """Their write did not go through."""
        with self.changed:
            self._ring.put_back(slots)
            self._kept = kept if self._kept is None else self._kept
            self._dirty = True

    def put_into(self, job: Job) -> Job:
        """The row with what was said so far."""
        with self.changed:
            return replace(
                job,
                progress_percent=self._percent,
                progress_message=self._message,
                log_lines=self._ring.lines,
                log_chunk=self._ring.next_chunk,
            )

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.changed.notify_all()


def whole_percent(value: object) -> int | None:
    """A number as a whole one from 0 to 100; None for what is none, and for NaN and the infinities."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return min(max(math.floor(value), 0), 100)


def text_of(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
