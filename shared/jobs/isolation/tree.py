"""Ends what a process has started: its group, its session and, on Linux, its descendants wherever they went."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple

#: Looks for what is left after a kill: a process that was being forked may show at the second.
_ROUNDS = 4


class _Process(NamedTuple):
    pid: int
    state: str
    parent: int
    session: int


def kill_descendants(leader: int) -> None:
    """Kills all that descends from a session's leader, or is in its session; not the leader itself.

    The leader must still be there, so that its number is its own: a zombie will do. A process that was orphaned
    in a session of its own (a daemon) is not found. Does nothing where there is no /proc.
    """
    for _ in range(_ROUNDS):
        left = _below(leader)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def kill_group(leader: int) -> None:
    """Kills a process group with its leader."""
    if not hasattr(os, "killpg"):
        os.kill(leader, signal.SIGTERM)  # Windows: TerminateProcess, of the one process
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _below(leader: int) -> list[int]:
    processes = [process for process in _processes() if process.state not in "ZX"]
    found = {process.pid for process in processes if process.session == leader}
    parents = {leader, *found}
    while parents:
        parents = {process.pid for process in processes if process.parent in parents} - found
        found |= parents
    return sorted(found - {leader})


def _processes() -> Iterator[_Process]:
    """All processes of the system, from /proc (proc_pid_stat(5))."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - a Path for each costs more than reading the file
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                stat = file.read()
            # The name in brackets may hold anything, brackets too.
            fields = stat[stat.rindex(b")") + 2 :].split(maxsplit=4)
            yield _Process(int(name), fields[0].decode(), int(fields[1]), int(fields[3]))
        except (OSError, ValueError, IndexError):
            continue  # it has just ended
