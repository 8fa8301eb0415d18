"""A lock that is a file: held by a process, given back by the system when it ends, however it ends."""

from __future__ import annotations

import fcntl
import time
from typing import IO, TYPE_CHECKING, Callable, Optional

if TYPE_CHECKING:
    from pathlib import Path


class FileLock:
    """An exclusive lock on `path`, between processes of one machine. The file stays behind.

    `fileno` may be handed to a child process: the lock is then held until both have ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: Optional[IO[bytes]] = None

    def try_acquire(self) -> bool:
        """Take the lock and say True, or say False at once when someone else has it. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+b")
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        except BaseException:
            file.close()
            raise
        self._file = file
        return True

    def acquire(self, on_wait: Optional[Callable[[], None]] = None, poll_seconds: float = 0.1) -> None:
        """Take the lock, waiting for it if need be; `on_wait` is called once, when there is a wait."""
        waited = False
        while not self.try_acquire():
            if not waited and on_wait is not None:
                on_wait()
            waited = True
            time.sleep(poll_seconds)

    def fileno(self) -> int:
        """The descriptor of the held lock."""
        if self._file is None:
            raise ValueError("the lock is not held")
        return self._file.fileno()

    def release(self) -> None:
        """Give the lock back; does nothing when it is not held."""
        if self._file is not None:
            self._file.close()
            self._file = None
