"""Keeps one running attempt's row up to date: progress, log lines, and the lease.

The tool reports from any thread and never waits for storage: reports are collected, and a thread of the attempt
writes them at most once a second. Every write carries the job row with its version, so a worker that lost
its lease can write nothing. Trouble with storage never fails the job: what was not written goes with the next
write.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared.errors import JobCancelledError, LostLeaseError
from shared.jobs.logs import Level
from shared.jobs.model import CANCELLED, INPUT_IN_ROW, Job, renew, utc_now
from shared.jobs.reports import Reports
from shared.jobs.store import Change, JobStore
from shared.redaction import Redactor
from shared.storage import may_pass

_LOG = logging.getLogger(__name__)

#: Seconds between two writes of progress and log lines.
FLUSH_EVERY: Final = 1.0
#: Seconds between two looks at a row that is not written: how late a silent tool learns of a cancel.
LOOK_EVERY: Final = 5.0
#: Between two tries of an end that storage did not take.
END_EVERY: Final = timedelta(seconds=0.5)


class Recorder:
    """The `Sink` of a job's attempt. `job`: the row as claimed."""

    def __init__(
        self, job: Job, store: JobStore, redact: Redactor, *, lease_ms: int, renew_every_ms: int
    ) -> None:
        self._store = store
        self._redact = redact
        self._lease_ms = lease_ms
        self._renew_every = renew_every_ms / 1000
        # What the tool says. Its lock is never held during a storage call.
        self._reports = Reports(job, redact)
        # Guards the row: one write at a time, each with the version that the one before gave.
        self._writing = threading.Lock()
        self._job = job
        self._last_write = self._last_look = time.monotonic()
        self._in_doubt = False
        self._keeper = threading.Thread(target=self._keep, name=f"job-{job.job_id}", daemon=True)

    # What the tool calls.

    @property
    def cancelled(self) -> bool:
        return self._reports.unwanted is not None

    def progress(self, percent: object, message: object) -> None:
        self._reports.progress(percent, message)

    def log(self, level: str, message: object) -> None:
        self._reports.log(level, message)

    def keep(self, sealed: bytes) -> None:
        """What the next attempt is to find. Written with the next flush, a second later at most."""
        self._reports.keep(sealed)

    # What the worker calls.

    def start(self) -> None:
        self._keeper.start()

    @property
    def unwanted(self) -> JobCancelledError | None:
        """Why the attempt is not wanted any more."""
        return self._reports.unwanted

    @property
    def over(self) -> JobCancelledError | None:
        """Why nothing can be left for the job any more."""
        return self._reports.over

    def on_unwanted(self, callback: Callable[[], object]) -> None:
        """Calls back, from any thread, once the attempt is not wanted any more; at once if it is so already."""
        self._reports.on_unwanted(callback)

    def abandon(self, reason: str) -> None:
        """The tool is no longer waited for: its next report raises, its result will change nothing."""
        self._reports.abandon(reason)

    def finish(self, end: Callable[[Job], Job], last_line: tuple[Level, str]) -> Job:
        """Writes the terminal row with the last log lines in one transaction and erases the input.

        The work is done, so storage that is away is waited for as long as nobody else may take the job. Raises
        `LostLeaseError` when another worker or the reaper has moved the job on.
        """
        self._reports.close(last_line)
        with self._writing:
            chunks = self._reports.take()
            while True:
                try:
                    self._settle_doubt()
                    return self._write_end(end, chunks)
                except LostLeaseError:
                    raise
                except Exception as error:
                    if not may_pass(error) or self._job.lease_expired(utc_now() + END_EVERY):
                        raise
                    _LOG.warning("job %s: its end could not be written yet", self._job.job_id, exc_info=True)
                    self._in_doubt = True
                time.sleep(END_EVERY.total_seconds())

    def _write_end(self, end: Callable[[Job], Job], chunks: tuple[tuple[int, bytes], ...]) -> Job:
        def write() -> Job:
            erased = Change(chunks, drop_input=self._job.input_at == INPUT_IN_ROW, drop_kept=self._job.kept)
            return self._store.write(end(self._snapshot()), erased)

        try:
            self._job = write()
        except LostLeaseError:
            # Somebody asked for a cancel in the last moment: the job has ended all the same.
            self._look()
            self._job = write()
        return self._job

    def release(self, error: str = "") -> None:
        """Gives the attempt up as if its lease had run out: its end could not be written. Never raises.

        `error`: why, for whoever gives the job's message up in the end.
        """
        self.close()
        with self._writing:
            try:
                self._look()
                given_up = replace(self._snapshot(), lease_until=utc_now(), delivery_error=self._redact(error))
                self._store.write(given_up)
            except Exception:
                _LOG.warning("job %s: its lease could not be given up", self._job.job_id, exc_info=True)

    def close(self) -> None:
        """Stops keeping the lease without writing anything more."""
        self._reports.close()

    # The attempt's own thread.

    def _keep(self) -> None:
        while True:
            with self._reports.changed:
                while not self._reports.closed:
                    left = min(self._due(), self._look_due()) - time.monotonic()
                    if left <= 0:
                        break
                    self._reports.changed.wait(left)
                if self._reports.closed:
                    return
                is_write = self._due() <= time.monotonic()
            self._write() if is_write else self._look_for_cancel()

    def _due(self) -> float:
        pause = min(FLUSH_EVERY, self._renew_every) if self._reports.dirty else self._renew_every
        return self._last_write + pause

    def _look_due(self) -> float:
        return max(self._last_write, self._last_look) + LOOK_EVERY

    def _write(self) -> None:
        with self._writing:
            if self._reports.closed:
                return
            change = Change(self._reports.take(), kept=self._reports.take_kept())
            try:
                self._settle_doubt()
                self._write_row(change)
            except LostLeaseError:
                self._lost()
            except Exception:
                _LOG.warning("job %s: progress could not be written yet", self._job.job_id, exc_info=True)
                self._in_doubt = True
                self._reports.put_back((slot for slot, _ in change.chunks), change.kept)
            self._last_write = time.monotonic()

    def _write_row(self, change: Change) -> None:
        def write() -> Job:
            now = renew(self._snapshot(), utc_now(), self._lease_ms)
            return self._store.write(now if change.kept is None else replace(now, kept=True), change)

        try:
            self._job = write()
        except LostLeaseError:
            self._look()
            self._job = write()

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
        return self._reports.put_into(self._job)
