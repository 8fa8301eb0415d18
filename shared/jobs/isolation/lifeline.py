"""The pipe by which a tool's own process learns that its worker is gone."""

from __future__ import annotations

import os

from shared.jobs.isolation.child import NO_LIFELINE


class Lifeline:
    """A pipe whose other end the process's watcher holds: it ends with this worker, and the watcher acts."""

    def __init__(self) -> None:
        self._reading = self._writing = -1
        if hasattr(os, "fork"):
            self._reading, self._writing = os.pipe()

    @property
    def passed(self) -> tuple[int, ...]:
        return () if self._reading < 0 else (self._reading,)

    @property
    def argument(self) -> str:
        return NO_LIFELINE if self._reading < 0 else str(self._reading)

    def drop_reading_end(self) -> None:
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1

    def close(self) -> None:
        self.drop_reading_end()
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1
