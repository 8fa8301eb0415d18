"""Keeps one running attempt's row up to date: progress, log lines, and the lease.

The tool reports from any thread and never waits for storage: reports are collected, and a thread of the attempt
writes them at most once a second. Every write carries the job row with its version, so a worker that lost
its lease can write nothing. Trouble with storage never fails the job: what was not written goes with the next
write.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from shared.errors import JobCancelledError, LostLeaseError
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import CANCELLED, INPUT_IN_ROW, Job, renew, utc_now
from shared.jobs.store import Change, JobStore
from shared.redaction import Redactor

_LOG = logging.getLogger(__name__)

#: Seconds between two writes of progress and log lines.
FLUSH_EVERY: Final = 1.0
#: Seconds between two looks at a row that is not written: how late a silent tool learns of a cancel.
LOOK_EVERY: Final = 5.0
#: Characters of a progress message.
MESSAGE_LIMIT: Final = 1_000

_LEVELS = {"debug": Level.DEBUG, "info": Level.INFO, "warn": Level.WARN, "error": Level.ERROR}


class Recorder:
    """The `Sink` of a job's attempt. `job`: the row as claimed."""

    def __init__(
        self, job: Job, store: JobStore, redact: Redactor, *, lease_ms: int, renew_every_ms: int
    ) -> None:
        self._store = store
        self._redact = redact
        self._lease_ms = lease_ms
        self._renew_every = renew_every_ms / 1000
        # Guards what the tool reports. Never held during a storage call.
        self._reports = threading.Condition()
        self._ring = LogRing(job.log_lines, job.log_chunk)
        self._percent = job.progress_percent
        self._message = job.progress_message
        self._dirty = False
        self._closed = False
        #: Why later reports raise; None while the attempt is wanted.
        self._unwanted: JobCancelledError | None = None
        self._when_unwanted: list[Callable[[], object]] = []
        # Guards the row: one write at a time, each with the version that the one before gave.
        self._writing = threading.Lock()
        self._job = job
        self._last_write = self._last_look = time.monotonic()
        self._in_doubt = False
        self._keeper = threading.Thread(target=self._keep, name=f"job-{job.job_id}", daemon=True)

    # What the tool calls.

    @property
    def cancelled(self) -> bool:
        return self._unwanted is not None

    def progress(self, percent: object, message: object) -> None:
        """Progress is a whole number from 0 to 100 that never falls; anything else leaves it as it is."""
        with self._reports:
            self._check_wanted()
            if self._closed:
                return
            if isinstance(percent, int | float) and not isinstance(percent, bool) and math.isfinite(percent):
                self._percent = max(self._percent, min(max(math.floor(percent), 0), 100))
            if message is not None:
                self._message = self._redact(_text(message))[:MESSAGE_LIMIT]
            self._mark()

    def log(self, level: str, message: object) -> None:
        line = self._redact(_text(message))
        with self._reports:
            if not self._closed:
                self._ring.append(_LEVELS.get(level, Level.INFO), line, utc_now())
                self._mark()

    # What the worker calls.

    def start(self) -> None:
        self._keeper.start()

    @property
    def unwanted(self) -> JobCancelledError | None:
        """Why the attempt is not wanted any more."""
        return self._unwanted

    def on_unwanted(self, callback: Callable[[], object]) -> None:
        """Calls back, from any thread, once the attempt is not wanted any more; at once if it is so already."""
        with self._reports:
            if self._unwanted is None:
                self._when_unwanted.append(callback)
                return
        callback()

    def abandon(self, reason: str) -> None:
        """The tool is no longer waited for: its next report raises, its result will change nothing."""
        with self._reports:
            if self._unwanted is not None:
                return
            self._unwanted = JobCancelledError(reason)
            told, self._when_unwanted = self._when_unwanted, []
        for callback in told:
            callback()

    def finish(self, end: Callable[[Job], Job], last_line: tuple[Level, str]) -> Job:
        """Writes the terminal row with the last log lines in one transaction and erases the input.

        Raises `LostLeaseError` when another worker or the reaper has moved the job on.
        """
        with self._reports:
            self._closed = True
            self._ring.append(last_line[0], self._redact(last_line[1]), utc_now())
            self._reports.notify_all()
        with self._writing:
            self._settle_doubt()
            before = self._snapshot()
            chunks = tuple(self._ring.take_dirty())
            drop = before.input_at == INPUT_IN_ROW
            change = Change(chunks, drop_input=drop)
            try:
                self._job = self._store.write(end(before), change)
            except LostLeaseError:
                # Somebody asked for a cancel in the last moment: the job has ended all the same.
                self._look()
                self._job = self._store.write(end(self._snapshot()), change)
            return self._job

    def release(self, error: str = "") -> None:
        """Gives the attempt up as if its lease had run out: its end could not be written. Never raises.

        `error`: why, for whoever gives the job's message up in the end.
        """
        self.close()
        with self._writing:
            try:
                self._in_doubt = True
                self._settle_doubt()
                given_up = replace(self._snapshot(), lease_until=utc_now(), delivery_error=self._redact(error))
                self._store.write(given_up)
            except Exception:
                _LOG.warning("job %s: its lease could not be given up", self._job.job_id, exc_info=True)

    def close(self) -> None:
        """Stops keeping the lease without writing anything more."""
        with self._reports:
            self._closed = True
            self._reports.notify_all()

    # The attempt's own thread.

    def _keep(self) -> None:
        while True:
            with self._reports:
                while not self._closed:
                    left = min(self._due(), self._look_due()) - time.monotonic()
                    if left <= 0:
                        break
                    self._reports.wait(left)
                if self._closed:
                    return
                is_write = self._due() <= time.monotonic()
            self._write() if is_write else self._look_for_cancel()

    def _due(self) -> float:
        return self._last_write + (min(FLUSH_EVERY, self._renew_every) if self._dirty else self._renew_every)

    def _look_due(self) -> float:
        return max(self._last_write, self._last_look) + LOOK_EVERY

    def _write(self) -> None:
        with self._writing:
            with self._reports:
                if self._closed:
                    return
                chunks = tuple(self._ring.take_dirty())
                self._dirty = False
            try:
                self._settle_doubt()
                self._write_row(Change(chunks))
            except LostLeaseError:
                self._lost()
            except Exception:
                _LOG.warning("job %s: progress could not be written yet", self._job.job_id, exc_info=True)
                self._in_doubt = True
                with self._reports:
                    self._ring.put_back(slot for slot, _ in chunks)
                    self._dirty = True
            self._last_write = time.monotonic()

    def _write_row(self, change: Change) -> None:
        try:
            self._job = self._store.write(renew(self._snapshot(), utc_now(), self._lease_ms), change)
        except LostLeaseError:
            self._look()
            self._job = self._store.write(renew(self._snapshot(), utc_now(), self._lease_ms), change)

    def _look_for_cancel(self) -> None:
        """Reads the row of an attempt that has not written for a while."""
        with self._writing:
            try:
                self._look()
            except LostLeaseError:
                self._lost()
            except Exception:
                _LOG.warning("job %s: could not be looked at", self._job.job_id, exc_info=True)
            self._last_look = time.monotonic()

    def _look(self) -> None:
        """Takes the row over as it is, if the attempt is still ours. Raises `LostLeaseError` if not."""
        self._in_doubt = True
        self._settle_doubt()

    def _lost(self) -> None:
        self.abandon("The job has moved on without this worker.")
        self.close()

    def _settle_doubt(self) -> None:
        """After a write whose outcome is unknown: the row's version as it is, if the attempt is still ours.

        Whoever takes the job moves its state or its attempt. A row that is still in progress in our attempt is
        ours, also when somebody has asked for a cancel in it.
        """
        if not self._in_doubt:
            return
        stored = self._store.get(self._job.job_id)
        if stored is None or (stored.status, stored.attempt) != (self._job.status, self._job.attempt):
            raise LostLeaseError
        self._job = stored
        self._in_doubt = False
        if stored.cancel_requested:
            self.abandon(CANCELLED)

    def _snapshot(self) -> Job:
        with self._reports:
            return replace(
                self._job,
                progress_percent=self._percent,
                progress_message=self._message,
                log_lines=self._ring.lines,
                log_chunk=self._ring.next_chunk,
            )

    def _mark(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._reports.notify_all()

    def _check_wanted(self) -> None:
        if self._unwanted is not None:
            raise self._unwanted


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
