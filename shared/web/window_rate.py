"""How often one window may ask. Kept by each instance for itself: a bound on what a hostile page can cause."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from shared.errors import CallError, WindowSessionError, WindowTicketError

#: Requests at once, and more each second.
BURST: Final = 200.0
PER_SECOND: Final = 50.0
#: Calls of one window that may be under way.
AT_ONCE: Final = 16
#: Windows that are remembered; of those without a call under way, the one that asked the longest ago is
#: forgotten first.
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
    """Token buckets, by a job with what its caller has shown. Thread-safe.

    One is kept only for who turns out to be let in: a stranger's many guesses must not push out the buckets of
    windows, and so give them new ones.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    @contextmanager
    def asking(self, key: str) -> Iterator[None]:
        """One request. Raises `RateError`."""
        with self._lock:
            self._bucket(key)
        with self._known(key):
            yield

    @contextmanager
    def running(self, key: str) -> Iterator[None]:
        """One call under way. Raises `RateError`."""
        with self._lock:
            bucket = self._bucket(key)
            if bucket.running >= AT_ONCE:
                raise RateError(f"At most {AT_ONCE} calls of one window may be under way.")
            bucket.running += 1
        try:
            with self._known(key):
                yield
        finally:
            with self._lock:
                bucket.running -= 1

    @contextmanager
    def _known(self, key: str) -> Iterator[None]:
        try:
            yield
        except (WindowSessionError, WindowTicketError):
            with self._lock:
                self._buckets.pop(key, None)
            raise

    def _bucket(self, key: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(key, _Bucket(now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST:
            # The bound may be passed by as many windows as have calls under way.
            idle = [one for one, known in self._buckets.items() if not known.running and one != key]
            for oldest in idle[: len(self._buckets) - MOST]:
                del self._buckets[oldest]
        bucket.left = min(bucket.left + (now - bucket.at) * PER_SECOND, BURST)
        bucket.at = now
        if bucket.left < 1:
            raise RateError
        bucket.left -= 1
        return bucket
