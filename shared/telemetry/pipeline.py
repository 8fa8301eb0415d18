"""Takes spans and measurements in, and hands them on from a thread of its own.

OpenTelemetry costs 0.3 s (OTLP) to 0.9 s (Application Insights) of processor time to load: the thread does that
a moment after the first call, so that no call and no cold start waits for it. What is more than the list holds
is dropped and counted; a killed process loses what was not sent.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from shared.telemetry.setup import Plan, pseudonym
from shared.telemetry.spans import Ended, Measured, switch

if TYPE_CHECKING:
    from shared.telemetry.exporting import Exporter

_LOG = logging.getLogger(__name__)

#: Spans and measurements that wait while the exporters are loaded, or cannot keep up.
MOST: Final = 20_000
#: Seconds that the first call has to itself before the exporters are loaded.
QUIET: Final = 1.0
#: Seconds over which is collected what is handed on together.
COLLECT: Final = 0.2
#: Seconds that the end of the process waits for the last of it.
LAST_FLUSH: Final = 2.0
#: Seconds between two lines about what was dropped.
TELL_EVERY: Final = 60.0


class Pipeline:
    """The `Output` of this process."""

    def __init__(self, plan: Plan, owner_key: bytes, *, quiet: float = QUIET) -> None:
        self.sampler = plan.sampler
        self.propagates = plan.propagates
        self._plan = plan
        self._owner_key = owner_key
        self._quiet = quiet
        self._items: deque[Ended | Measured] = deque()
        self._dropped = 0
        self._told = float("-inf")
        self._some = threading.Event()
        self._starting = threading.Lock()
        # One hands on at a time: the thread, or the last flush.
        self._handing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._exporter: Exporter | None = None
        self._is_over = False
        # The exporters could not be made.
        self._is_off = False

    def put(self, item: Ended | Measured) -> None:
        if self._is_over:
            return
        if len(self._items) >= MOST:
            self._dropped += 1
            return
        self._items.append(item)
        if not self._some.is_set():
            self._some.set()
            if self._thread is None:
                self._start()

    def pseudonym(self, owner: str) -> str:
        return pseudonym(self._owner_key, owner)

    def flush(self, seconds: float) -> None:
        """Sends all that was put until now, as far as that can be done in time. Blocks."""
        until = time.monotonic() + seconds
        self._hand_on()
        if self._exporter is not None:
            self._exporter.flush(max(until - time.monotonic(), 0.1))

    def close(self, seconds: float = LAST_FLUSH) -> None:
        """Sends what is there, in bounded time, and lets go of threads and connections."""
        self._is_over = True
        self._some.set()
        atexit.unregister(self._at_exit)
        done = threading.Thread(target=self._end, args=(seconds,), name="telemetry-end", daemon=True)
        done.start()
        done.join(seconds)

    def _end(self, seconds: float) -> None:
        if self._items or self._exporter is not None:
            self._hand_on()
        if self._exporter is not None:
            self._exporter.close(seconds)
        if self._thread is not None:
            self._thread.join(seconds)

    def _at_exit(self) -> None:
        self.close()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._is_over:
                return
            self._thread = threading.Thread(target=self._serve, name="telemetry", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    def _serve(self) -> None:
        pause = self._quiet
        while not self._is_over:
            self._some.wait()
            time.sleep(pause)
            pause = COLLECT
            if not self._is_over:
                self._hand_on()

    def _hand_on(self) -> None:
        with self._handing:
            self._some.clear()
            exporter = self._opened()
            for _ in range(len(self._items)):
                item = self._items.popleft()
                if exporter is None:
                    continue
                try:
                    exporter.take(item)
                except Exception:
                    _LOG.exception("telemetry: a span or measurement could not be handed on")
            if self._dropped and time.monotonic() - self._told > TELL_EVERY:
                _LOG.warning("telemetry: %d spans and measurements were dropped", self._dropped)
                self._dropped, self._told = 0, time.monotonic()

    def _opened(self) -> Exporter | None:
        """The exporters, made at the first need; None when they cannot be made, which is told once."""
        if self._exporter is None and not self._is_off:
            from shared.telemetry.exporting import Exporter

            try:
                self._exporter = Exporter(self._plan)
            except Exception as error:
                # Its text may quote a setting, which may hold a key.
                _LOG.error("telemetry is off: its exporters cannot be made (%s)", type(error).__name__)
                self._is_off = self._is_over = True
                if switch.out is self:
                    switch.out = None
        return self._exporter
