"""Signals as exceptions, and child processes that do not outlive dev.py."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from typing import IO, Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Set

_GRACE_SECONDS = 3.0
_groups: Set[int] = set()


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP came: no error, somebody wants dev.py to stop."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def raise_on_signals() -> None:
    """From now on the first of these signals raises `Interrupted`, so that everything is stopped in order.

    A second one does not wait for that: it kills what is left. SIGHUP stays ignored under `nohup`.
    """
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _first)


def kill_on_signals() -> None:
    """From now on a signal kills what is left: everything is being stopped in order already."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is _first:
            signal.signal(signum, _second)


def _first(signum: int, _frame: object) -> None:
    if _Held.active:
        _Held.signum = signum
        return
    kill_on_signals()
    raise Interrupted(signum)


def _second(signum: int, _frame: object) -> NoReturn:
    kill_tracked()
    os._exit(128 + signum)


class _Held:
    """A signal that came while a process was being started, and waits until it is known."""

    active = False
    signum = 0


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own. `end` ends it, or at the latest the end of dev.py."""
    _Held.active = True
    try:
        process = subprocess.Popen(command, start_new_session=True, **options)
        track(process.pid)
    finally:
        _Held.active = False
    if _Held.signum:
        _first(_Held.signum, None)
    return process


def track(group: int) -> None:
    """See to it that the process group does not outlive dev.py."""
    _groups.add(group)


def untrack(group: int) -> None:
    """The process group has ended."""
    _groups.discard(group)


def kill_tracked() -> None:
    """End what is left, when it is too late to do it in order."""
    for group in list(_groups):
        _kill_group(group)
        untrack(group)


def end(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """End the leader of a process group with SIGTERM, and whatever is left of the group with SIGKILL."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_seconds)
    if process.pid in _groups:
        _kill_group(process.pid)
        process.wait()
        untrack(process.pid)


def _kill_group(group: int) -> None:
    # It may be gone already. macOS says PermissionError of a group of zombies.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class CommandError(Exception):
    """A command ended with another code than 0, or could not be started."""

    def __init__(self, command: Sequence[str], code: Optional[int], output: str) -> None:
        super().__init__(f"{command[0]}: exit code {code}")
        self.code = code
        self.output = output


class Command:
    """A command of set-up: no input, output kept, in a process group of its own that ends with dev.py."""

    def __init__(self, command: Sequence[str], cwd: str, env: Optional[Mapping[str, str]] = None) -> None:
        self.command: List[str] = list(command)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would need a reader
        environment: Optional[Dict[str, str]] = None if env is None else {**os.environ, **env}
        try:
            self._process = start(
                self.command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            self._output.close()
            raise CommandError(self.command, None, str(error)) from error

    def finish(self) -> str:
        """Wait for the end and return the output. Raises `CommandError`."""
        try:
            code = self._process.wait()
            self._output.seek(0)
            output = self._output.read().decode("utf-8", "replace")
        finally:
            self.stop()
        if code != 0:
            raise CommandError(self.command, code, output)
        return output

    def stop(self) -> None:
        """End it if it still runs. May be called more than once."""
        if not self._output.closed:
            end(self._process, _GRACE_SECONDS)
            self._output.close()


def capture(command: Sequence[str], cwd: str, env: Optional[Mapping[str, str]] = None) -> str:
    """Run a command to its end and return its output. Raises `CommandError`."""
    return Command(command, cwd, env).finish()
