"""Python's collector of cycles, while something large is made that has none.

It would look at all that was made, again and again, in steps of hundreds of milliseconds at which all threads
stand still.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_resting = threading.Lock()
_readers = 0


@contextlib.contextmanager
def at_rest() -> Iterator[None]:
    """Within, on any thread, the collector does not run by itself. Behind it, what was made counts as old."""
    global _readers
    with _resting:
        if not _readers and not gc.isenabled():
            rests = False  # somebody else has stopped it
        else:
            rests = True
            _readers += 1
            gc.disable()
    try:
        yield
    finally:
        if rests:
            with _resting:
                _readers -= 1
                if not _readers:
                    if not gc.get_freeze_count():
                        # Into the oldest generation without a look at it, which would else come next.
                        gc.freeze()
                        gc.unfreeze()
                    gc.enable()
