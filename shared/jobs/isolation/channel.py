"""The protocol's end inside a tool's own process."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, NoReturn

from shared.jobs.isolation import frames


class Channel:
    """Reads from one descriptor and writes to the other, from any thread."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._lock = threading.Lock()
        self._is_open = True
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    @property
    def is_open(self) -> bool:
        """False in a process that the tool forked: nothing that it sends arrives."""
        return self._is_open

    def launch(self) -> dict[str, Any] | None:
        return frames.read(self._reading, frames.LAUNCH_LIMIT)

    def read(self) -> dict[str, Any] | None:
        return frames.read(self._reading)

    def send(self, message: dict[str, Any]) -> None:
        self.send_frame(frames.packed(message))

    def send_frame(self, frame: bytes) -> None:
        with self._lock:
            if not self._is_open:
                return
            try:
                frames.write(self._writing, frame)
            except OSError:
                end()  # nobody listens any more

    def _forget(self) -> None:
        """In a process that the tool forked: only the tool's own process speaks, and its end must show."""
        self._lock = threading.Lock()
        self._is_open = False
        os.close(self._reading)
        os.close(self._writing)


def end() -> NoReturn:
    """Ends this process, whose worker is gone. Its watcher, if it has one, does that better: it goes first."""
    time.sleep(1)
    os._exit(1)
