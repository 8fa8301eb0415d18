"""Ends the children of a process that was killed: `python watcher.py`, started with the first of them.

A child of a killed worker sees the end of its standard input, and most leave then. One that does not would stay
for ever, since nobody is left to kill it. So a small process of its own is told the groups that run (`+PID`,
`-PID`, one a line on its standard input) and ends what is left when the pipe does: asked first, then forced.

This file is also run by its path, with nothing of the app loaded.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Final, TextIO

_LOG = logging.getLogger("toolbox.upstream")
#: Seconds that a group has between being asked and being forced to end, and between two looks at it.
PATIENCE: Final = 2.0
_POLL: Final = 0.05


class Watcher:
    """The watching process of this one. Where it cannot be started, only a polite end reaches every child."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._tried = False
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def add(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def discard(self, group: int) -> None:
        if self._process is not None:
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Its end, at the end of this process: whatever it still knows of is ended by it."""
        # A fork of this process has the pipe too, but no child.
        if self._process is not None and os.getpid() == self._owner:
            assert self._process.stdin is not None
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE + 1)

    def _tell(self, line: str) -> None:
        with self._lock:
            if not self._tried:
                self._tried = True
                self._process = _started()
            if self._process is not None and self._process.stdin is not None:
                # It was killed: then there is nobody to tell.
                with contextlib.suppress(OSError, ValueError):
                    os.write(self._process.stdin.fileno(), line.encode())


def _started() -> subprocess.Popen[bytes] | None:
    if sys.platform == "win32":
        return None
    try:
        return subprocess.Popen(
            [sys.executable or "python3", "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            # What is sent to the app's group is not meant for it: it has to outlive the app.
            start_new_session=True,
        )
    except OSError as error:
        _LOG.warning(
            "Upstream servers are not watched: a process cannot be started (%s).", type(error).__name__
        )
        return None


watcher: Final = Watcher()
atexit.register(watcher.close)


def watch(lines: TextIO) -> set[int]:
    """The groups that are left when the lines end."""
    groups: set[int] = set()
    for line in lines:
        if line[1:].strip().isdecimal():
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    return groups


def end(groups: Iterable[int]) -> None:
    """Asks them to end, and forces those that are still there after `PATIENCE` seconds."""
    left = {group for group in groups if _sent(group, signal.SIGTERM)}
    until = time.monotonic() + PATIENCE
    while left and time.monotonic() < until:
        time.sleep(_POLL)
        left = {group for group in left if _sent(group, 0)}
    for group in left:
        _sent(group, signal.SIGKILL)


def _sent(group: int, number: int) -> bool:
    """Whether there is such a group, and the signal could be sent to it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    end(watch(sys.stdin))
