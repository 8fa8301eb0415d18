"""Collects records and writes them off the request path: a call pays for putting one into a list.

A thread logs each record as one line of JSON and stores those that have no job's row, once a second. A process
that is killed loses what it collected in the last two seconds.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from shared import telemetry
from shared.errors import SettingsError
from shared.invocations.record import Line, Record
from shared.invocations.store import InvocationStore

_LOG = logging.getLogger(__name__)
#: One line of JSON for every call.
LINES = logging.getLogger("toolbox.invocation")

#: Seconds between two writes.
FLUSH_EVERY: Final = 1.0
#: Records that wait to be made, and bytes that wait to be stored, while there is no time or no storage for it.
MOST_DRAFTS: Final = 20_000
MOST_BYTES: Final = 8 * 1024 * 1024
#: Records of one write.
BATCH: Final = 2_000
#: Seconds that the end of the process waits for the last records.
LAST_FLUSH: Final = 2.0

#: Makes the record when it is written: what it takes is not the call's time.
type Draft = Callable[[], Record]


class InvocationLog:
    """Records of this process. `store`: made at the first record that is stored; None keeps log lines only."""

    def __init__(
        self, store: Callable[[], InvocationStore] | None = None, *, flush_every: float = FLUSH_EVERY
    ) -> None:
        self._open = store
        self._store: InvocationStore | None = None
        self._flush_every = flush_every
        self._drafts: deque[tuple[Draft, bool]] = deque()
        #: Made, logged, and not stored yet.
        self._unstored: deque[Line] = deque()
        self._unstored_bytes = 0
        self._lost = 0
        self._some = threading.Event()
        # One flush at a time: the thread's, or the last one.
        self._flushing = threading.Lock()
        self._started = False
        self._starting = threading.Lock()

    def add(self, draft: Draft, *, stored: bool = True) -> None:
        """Takes a record in. `stored`: False for a call whose job's row is its record."""
        if len(self._drafts) >= MOST_DRAFTS:
            self._lost += 1
            return
        self._drafts.append((draft, stored))
        if not self._some.is_set():
            self._some.set()
            if not self._started:
                self._start()

    def flush(self) -> bool:
        """Logs and stores everything collected so far. Blocks. False: some could not be stored yet."""
        with self._flushing:
            self._some.clear()
            self._log_lines()
            return self._store_records()

    def _start(self) -> None:
        with self._starting:
            if self._started:
                return
            self._started = True
        threading.Thread(target=self._serve, name="invocation-log", daemon=True).start()
        atexit.register(self._last_flush)

    def _serve(self) -> None:
        pause = self._flush_every
        while True:
            self._some.wait()
            # What comes meanwhile goes with the same transaction.
            time.sleep(pause)
            if self.flush():
                pause = self._flush_every
            else:
                pause = min(pause * 2, 30 * self._flush_every)
                self._some.set()

    def _last_flush(self) -> None:
        done = threading.Thread(target=self.flush, name="invocation-log-end", daemon=True)
        done.start()
        done.join(LAST_FLUSH)

    def _log_lines(self) -> None:
        # Those that are there now: calls may come faster than this gets on, and its lines must be stored too.
        for _ in range(len(self._drafts)):
            draft, stored = self._drafts.popleft()
            try:
                record = draft()
                text = record.line()
            except Exception:
                _LOG.exception("an invocation could not be recorded")
                continue
            LINES.info("%s", text)
            if stored and self._open is not None:
                self._unstored.append(Line(record.id, text))
                self._unstored_bytes += len(text)
        while self._unstored_bytes > MOST_BYTES:
            self._unstored_bytes -= len(self._unstored.popleft().text)
            self._lost += 1
        if self._lost:
            _LOG.error("%d invocation records were dropped: more calls than can be stored", self._lost)
            telemetry.records_dropped(self._lost)
            self._lost = 0

    def _store_records(self) -> bool:
        while self._unstored:
            batch = list(itertools.islice(self._unstored, BATCH))
            try:
                if self._store is None and self._open is not None:
                    self._store = self._open()
                if self._store is not None:
                    self._store.write(batch)
            except SettingsError as error:
                # It will not get better: the app runs without storage, and only logs.
                _LOG.warning("invocations are not stored: %s", error.message)
                self._open = None
                self._unstored.clear()
                self._unstored_bytes = 0
                return True
            except Exception as error:
                _LOG.warning("invocations could not be stored yet (%s)", type(error).__name__)
                return False
            for line in batch:
                self._unstored.popleft()
                self._unstored_bytes -= len(line.text)
        return True
