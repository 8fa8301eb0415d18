"""How often one window may ask. Kept by each instance for itself: a bound on what a hostile page can cause."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from shared.errors import CallError

#: Requests at once, and more each second.
BURST: Final = 200.0
PER_SECOND: Final = 50.0
#: Calls of one window that may be under way.
AT_ONCE: Final = 16
#: Windows that are remembered; the one that asked the longest ago is forgotten first.
MOST: Final = 1_000


class RateError(CallError):
    code = "rate"
    default = "The window asks too often; wait a second."


class _Bucket:
    __slots__ = ("at", "left", "running")

    def __init__(self, at: float) -> None:
        self.at = at
        self.left = BURST
        self.running = 0


class Rates:
    """Token buckets by job. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, job_id: str) -> None:
        """Raises `RateError`."""
        with self._lock:
            self._bucket(job_id)

    @contextmanager
    def running(self, job_id: str) -> Iterator[None]:
        """One call under way. Raises `RateError`."""
        with self._lock:
            bucket = self._bucket(job_id)
            if bucket.running >= AT_ONCE:
                raise RateError(f"At most {AT_ONCE} calls of one window may be under way.")
            bucket.running += 1
        try:
            yield
        finally:
            with self._lock:
                bucket.running -= 1

    def _bucket(self, job_id: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(job_id, _Bucket(now))
        self._buckets.move_to_end(job_id)
        while len(self._buckets) > MOST:
            self._buckets.popitem(last=False)
        bucket.left = min(bucket.left + (now - bucket.at) * PER_SECOND, BURST)
        bucket.at = now
        if bucket.left < 1:
            raise RateError
        bucket.left -= 1
        return bucket
