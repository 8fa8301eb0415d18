"""How a tool's own process ended, and how the caller is told."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from shared.tool.spec import JsonObject


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended. `message`: the `result` or `error` it sent; None: it sent none."""

    message: JsonObject | None
    #: What it wrote that is no message; it was ended for that.
    fault: str = ""
    #: As `subprocess` has it: below zero for a signal. None: it was ended by us, or never started.
    code: int | None = None


def describe_ending(tool_name: str, code: int | None) -> str:
    """Why a process that sent no answer ended, for the caller. `code`: see `Ending`."""
    if code is None:
        what = "its process stopped answering"
    elif code >= 0:
        what = f"its process ended with exit code {code}"
    else:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        what = f"its process ended with signal {name}"
        if name == "SIGKILL":
            what += "; the system does that to a process that takes too much memory"
    return f"Tool '{tool_name}' failed: {what}"


def ends_within(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Whether it ends by itself in that time. Leaves it to be waited for, so that its number stays its own."""
    if not hasattr(os, "waitid"):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        try:
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:
            return True  # somebody else has waited for it
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
