"""The child process of a stdio server: started without a shell, in a process group of its own, killed whole.

The SDK's own stdio client is not used: it gathers a line of any length (and copies all of it again for each
piece), one byte that is no UTF-8 ends it, its stderr goes to a file instead of a bounded tail, and processes
that the server has started outlive it when the server itself leaves in time.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from shared.upstream.connection.limits import LOG_LINE_BYTES
from shared.upstream.connection.lines import LineSplitter
from shared.upstream.connection.tail import Tail
from shared.upstream.connection.watcher import watcher

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_POLL: Final = 0.01
#: Seconds that the end of a child and the end of its output may lie apart.
_APART: Final = 0.2

#: Leaders of the groups that are alive, for the end of this process.
_groups: set[int] = set()
#: A fork of this process has the list too, but must leave the children alone.
_PARENT: Final = os.getpid()


def command_path(command: str, environment: Mapping[str, str]) -> str | None:
    """The executable: looked for on the child's own PATH (with PATHEXT on Windows); None when there is none."""
    if Path(command).is_absolute():
        return command if Path(command).exists() else None
    return shutil.which(command, path=environment.get("PATH"))


class Child(asyncio.SubprocessProtocol):
    """One running child. `on_output` gets what it writes to stdout, `on_end` is called once nothing more will
    come.

    stderr is always read, so that the child never waits for it, and goes into `tail`.
    """

    def __init__(self, tail: Tail, on_output: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._tail = tail
        self._on_output = on_output
        self._on_end = on_end
        self._errors = LineSplitter(4 * LOG_LINE_BYTES)
        self._transport: asyncio.SubprocessTransport | None = None
        self._open = {_STDIN, _STDOUT, _STDERR}
        self._ended = False
        #: Bytes given to its stdin.
        self.written = 0
        #: A second descriptor of that pipe: it tells what nobody has read, when the first one is closed.
        self._gauge: int | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        #: Whether the pipe has taken what was written last.
        self._taken = True
        self.pid = 0
        self.exited = asyncio.Event()

    @classmethod
    async def start(
        cls,
        path: str,
        args: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        tail: Tail,
        on_output: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> Child:
        """`OSError` when it cannot be started; `ValueError` when an argument holds a NUL."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: cls(tail, on_output, on_end),
            path,
            *args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            start_new_session=sys.platform != "win32",
        )
        protocol._transport = transport
        protocol.pid = transport.get_pid()
        protocol._gauge = _second_end(protocol._pipe(_STDIN, asyncio.WriteTransport))
        _groups.add(protocol.pid)
        watcher.add(protocol.pid)
        return protocol

    # What asyncio calls.

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDOUT:
            self._on_output(data)
            return
        for line in self._errors.feed(data):
            if isinstance(line, bytes):
                self._tail.add(line.decode("utf-8", "replace"))
            else:
                self._tail.add(f"[a line of {line.size} bytes is left out]")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if fd == _STDERR and isinstance(rest := self._errors.rest(), bytes):
            self._tail.add(rest.decode("utf-8", "replace"))
        if fd == _STDIN:
            self._writable.set()
        if fd == _STDOUT:
            self._end_soon()

    def process_exited(self) -> None:
        self.exited.set()
        self._end_soon()

    def _end_soon(self) -> None:
        """Its last words may still be in the pipe, and a grandchild may hold the pipe open for ever.

        Without its output it may live on, and what it has read is not known before it has ended.
        """
        if self._ended:
            return
        if self.exited.is_set() and _STDOUT not in self._open:
            self._end()
        else:
            asyncio.get_running_loop().call_later(_APART, self._end)

    def pause_writing(self) -> None:
        self._taken = False
        self._writable.clear()

    def resume_writing(self) -> None:
        self._taken = True
        self._writable.set()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_end()

    # What the transport calls.

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def read(self) -> int:
        """Bytes of its stdin that it may have read. Known once it has ended; before, and where the system does
        not tell, all that was written.
        """
        if self._gauge is None or not self.exited.is_set():
            return self.written
        return self.written - _unread(self._gauge)

    def pause_reading(self) -> None:
        if _STDOUT in self._open:
            with contextlib.suppress(RuntimeError):
                self._pipe(_STDOUT, asyncio.ReadTransport).pause_reading()

    def resume_reading(self) -> None:
        if _STDOUT in self._open:
            with contextlib.suppress(RuntimeError):
                self._pipe(_STDOUT, asyncio.ReadTransport).resume_reading()

    async def write(self, data: bytes) -> None:
        """`BrokenPipeError` when it does not read any more."""
        if _STDIN not in self._open or self._ended:
            raise BrokenPipeError
        pipe = self._pipe(_STDIN, asyncio.WriteTransport)
        self.written += len(data)
        try:
            pipe.write(data)
        except RuntimeError:
            # uvloop's word for a pipe that was closed a moment ago.
            self.written -= len(data)
            raise BrokenPipeError from None
        if pipe.is_closing():
            raise BrokenPipeError
        if not self._writable.is_set():
            await self._writable.wait()
            # What the pipe took may have been read, also by a child that is gone by now: `read` tells.
            if not self._taken:
                raise BrokenPipeError

    def _pipe[T: asyncio.BaseTransport](self, fd: int, kind: type[T]) -> T:
        assert self._transport is not None
        return cast("T", self._transport.get_pipe_transport(fd))

    async def stop(self, patience: float) -> None:
        """Close its stdin, then end its whole group: asked after `patience` seconds, forced after as much
        again.

        The order is the specification's (lifecycle, shutdown). Whatever the child has started goes with it,
        also when the child itself has left.
        """
        assert self._transport is not None
        if self._gauge is not None:
            os.close(self._gauge)  # or its stdin would stay open
            self._gauge = None
        try:
            if _STDIN in self._open:
                self._pipe(_STDIN, asyncio.WriteTransport).close()
            if not await self._gone(patience, group=False) or _group_alive(self.pid):
                _signal_group(self.pid, signal.SIGTERM)
                await self._gone(patience, group=True)
        finally:
            self.kill()
            # Of a killed child the end is known at once; without this its transport would be left to the
            # collector.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self.exited.wait()
            self._transport.close()

    def kill(self) -> None:
        """Force the whole group to end, now. Once: later, its id may be somebody else's."""
        if self.pid in _groups:
            _groups.discard(self.pid)
            _kill_group(self.pid)
            watcher.discard(self.pid)

    async def _gone(self, seconds: float, *, group: bool) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not self.exited.is_set() or (group and _group_alive(self.pid)):
            if loop.time() >= until:
                return False
            await asyncio.sleep(_POLL)
        return True


def _second_end(stdin: asyncio.WriteTransport) -> int | None:
    """Another descriptor of the pipe to a child; None where there is none, or it is no pipe (uvloop)."""
    try:
        number = stdin.get_extra_info("pipe").fileno()
        return os.dup(number) if stat.S_ISFIFO(os.fstat(number).st_mode) else None
    except (AttributeError, OSError, ValueError):  # another event loop's; the child has left already
        return None


def _unread(pipe: int) -> int:
    """Bytes in a pipe that nobody has read (Linux, macOS)."""
    if sys.platform == "win32":
        return 0
    import fcntl
    import termios

    try:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def _signal_group(pid: int, number: signal.Signals) -> None:
    if sys.platform == "win32":
        return
    # The leader's id is the group's, also after the leader has gone: the group keeps it while it has members.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_group(pid: int) -> None:
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
    else:
        _signal_group(pid, signal.SIGKILL)


def _group_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@atexit.register
def _kill_all() -> None:
    """No child outlives this process: what is still open at its end is killed without asking.

    When this process is killed itself, the watcher does it.
    """
    if os.getpid() == _PARENT:
        for pid in tuple(_groups):
            _kill_group(pid)
