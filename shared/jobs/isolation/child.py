"""The first thing that runs in a tool's own process: `python -P child.py LIFELINE`.

Started by `shared.jobs.isolation.process` as the leader of a session, with the protocol on standard input and
output (see `frames`). Both move to descriptors that nothing else knows, so that whatever the tool prints or
reads cannot disturb it: its standard input is empty, and its standard output goes where its standard error
does, to the app's own.

Before anything else is loaded, the process splits in two. The leader stays small and only watches: it ends the
other one, and all that has come from it, when the lifeline ends with the worker (a pipe into which nobody
writes), and it takes over the exit code. It can do that even while the tool's code keeps Python from running
anything else (a long `re.match`). The other one is the tool's. Where there is no fork, there is no watcher, and
the process ends by itself when its standard input does (see `inside`).

This file is run by its path, before anything of the app can be imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

NO_LIFELINE = "-"


def main() -> None:
    reading, writing = os.dup(0), os.dup(1)
    _take_over_standard_streams()
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    if sys.argv[1] != NO_LIFELINE:
        lifeline = int(sys.argv[1])
        tool = os.fork()
        if tool:
            os.close(reading)
            os.close(writing)
            _watch(tool, lifeline)
        os.close(lifeline)
    faulthandler.enable()
    from shared.jobs.isolation.channel import Channel

    channel = Channel(reading, writing)
    launch = channel.launch()
    if launch is None:
        return
    sys.path[:] = launch["path"]
    from shared.jobs.isolation import inside

    inside.run(channel, launch)


def _take_over_standard_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    # Otherwise a line that is printed shows when the process ends, or never when it is killed.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _watch(tool: int, lifeline: int) -> NoReturn:
    """The leader's life: ends as the tool's process ended, or with the worker."""
    from shared.jobs.isolation.tree import kill_descendants, kill_group

    leader = os.getpid()

    def end_with_worker() -> None:
        os.read(lifeline, 1)
        kill_descendants(leader)
        kill_group(leader)

    # What the tool sends to its process group is not meant for the watcher.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=end_with_worker, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(tool, 0)[1])
    kill_descendants(leader)
    if code < 0:
        _end_by_signal(-code)
    os._exit(code)


def _end_by_signal(number: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the tool's process has left one, if there is to be one
    with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to take away
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
