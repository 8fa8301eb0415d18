"""Child processes end with dev.py, whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import paths
from infra.local.dev.processes import Command, CommandError, capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Starts a grandchild that would run for a minute, says so, and waits for it.
_PARENT = "sleep 60 & echo $! > {file}.new; mv {file}.new {file}; wait"


def _wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended: its parent, which has ended too, did not collect it, and process 1 will.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")


def test_output_and_exit_code(tmp_path: Path) -> None:
    assert capture(["sh", "-c", "echo out; echo err >&2"], cwd=str(tmp_path)) == "out\nerr\n"
    with pytest.raises(CommandError) as caught:
        capture(["sh", "-c", "echo why; exit 3"], cwd=str(tmp_path))
    assert (caught.value.code, caught.value.output) == (3, "why\n")
    with pytest.raises(CommandError, match="no-such-program") as caught:
        capture(["no-such-program"], cwd=str(tmp_path))
    assert caught.value.code is None


def test_stopped_command_takes_its_children_along(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    command = Command(["sh", "-c", _PARENT.format(file=file)], cwd=str(tmp_path))
    _wait_for(file.exists)
    grandchild = int(file.read_text())
    assert _is_running(grandchild)
    command.stop()
    command.stop()
    _wait_for(lambda: not _is_running(grandchild))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_set_up_stops_what_was_started(signum: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import sys; from infra.local.dev import cli, processes\n"
        "cli._run = lambda argv: processes.capture(argv, cwd='.')\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    # A shell starts a background job with SIGINT ignored; SIGHUP is ignored on purpose, by `nohup`.
    before = signal.SIG_DFL if signum == signal.SIGHUP else signal.SIG_IGN
    process = subprocess.Popen(
        [sys.executable, "-c", code, "sh", "-c", _PARENT.format(file=file)],
        cwd=paths.REPO,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signum, before) and None,
    )
    with process:
        _wait_for(file.exists)
        process.send_signal(signum)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 128 + signum
    assert b"Traceback" not in errors
    grandchild = int(file.read_text())
    _wait_for(lambda: not _is_running(grandchild))


def test_signal_while_a_process_is_being_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import os, signal, subprocess, sys, time; from infra.local.dev import cli, processes\n"
        "class Slow(subprocess.Popen):\n"
        "    def __init__(self, *arguments, **options):\n"
        "        super().__init__(*arguments, **options)\n"
        "        while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "subprocess.Popen = Slow\n"
        "cli._run = lambda argv: processes.capture(argv, cwd='.')\n"
        "sys.exit(cli.main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", code, str(file), "sh", "-c", _PARENT.format(file=file)]
    done = subprocess.run(command, cwd=paths.REPO, capture_output=True, timeout=60)
    assert done.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in done.stderr
    grandchild = int(file.read_text())
    _wait_for(lambda: not _is_running(grandchild))


def test_second_signal_does_not_wait(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import pathlib, sys; from infra.local.dev import cli, processes\n"
        "processes._GRACE_SECONDS = 600\n"
        "real = processes.start\n"
        "def start(*arguments, **options):\n"
        "    process = real(*arguments, **options)\n"
        "    pathlib.Path(sys.argv[1]).touch()\n"  # a signal that comes before this is held back
        "    return process\n"
        "processes.start = start\n"
        "cli._run = lambda argv: processes.capture(argv, cwd='.')\n"
        "sys.exit(cli.main(sys.argv[2:]))"
    )
    started = tmp_path / "started"
    # Does not end on SIGTERM, so that the first signal leaves dev.py waiting for it.
    stubborn = f"trap 'echo > {file}.term' TERM; echo > {file}; while :; do sleep 0.01; done"
    command = [sys.executable, "-c", code, str(started), "sh", "-c", stubborn]
    process = subprocess.Popen(command, cwd=paths.REPO)
    with process:
        _wait_for(lambda: file.exists() and started.exists())
        process.send_signal(signal.SIGTERM)
        _wait_for(file.with_name("pid.term").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
