"""Two tools that do the same: one that may run again, and one that must not.

Each run appends a line to the file FAULTS_RUNS/LABEL when it begins, and another when it ends:

    begin|end JOB_ID ATTEMPT PID

They tell their secrets to their logs, their progress and their result, where nobody may find them.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.tool import Context, ToolAnnotations, tool

#: Seconds between two steps of a run.
STEP = 0.05
#: Lines of a burst: more than what is stored in one row.
BURST = 60


@tool(modes=("one-way", "two-way"), execution_modes=("headless",))
def once(
    label: str,
    steps: int = 0,
    hold: int = 0,
    large: bool = False,
    fail: bool = False,
    password: str = "",
    padding: str = "",
    *,
    context: Context,
) -> dict[str, Any]:
    """Runs once at most. Attempts up to `hold` go on until the file LABEL.go is there.

    Each logs a burst of lines once the file LABEL.burst is there.
    """
    for _ in _steps(label, steps, hold, password, context):
        time.sleep(STEP)
    return _ending(label, large, fail, password, context)


@tool(modes=("one-way", "two-way"), execution_modes=("headless",), annotations=ToolAnnotations(idempotent=True))
async def repeatable(
    label: str,
    steps: int = 0,
    hold: int = 0,
    large: bool = False,
    fail: bool = False,
    password: str = "",
    padding: str = "",
    *,
    context: Context,
) -> dict[str, Any]:
    """May run again, and keeps a secret of its own for that."""
    for _ in _steps(label, steps, hold, password, context):
        context.checkpoint.save({"password": password})
        await asyncio.sleep(STEP)
    return _ending(label, large, fail, password, context)


def _steps(label: str, steps: int, hold: int, password: str, context: Context) -> Iterator[None]:
    _record("begin", label, context)
    context.logger.info(f"token {context.auth_token}, password {password}")
    number, burst = 0, False
    while number < steps or (context.attempt <= hold and not _runs(f"{label}.go").exists()):
        wanted, before = 1, burst
        burst = burst or _runs(f"{label}.burst").exists()
        if burst and not before:
            wanted = BURST
        for _ in range(wanted):
            number += 1
            context.logger.info(f"step {context.attempt}.{number}")
        context.update_progress(min(number, 99), f"token {context.auth_token}, password {password}")
        yield


def _ending(label: str, large: bool, fail: bool, password: str, context: Context) -> dict[str, Any]:
    _record("end", label, context)
    if fail:
        raise ValueError(f"token {context.auth_token}, password {password}")
    return {"label": label, "token": context.auth_token, "body": "x" * 40_000 if large else ""}


def _record(what: str, label: str, context: Context) -> None:
    line = f"{what} {context.job_id} {context.attempt} {os.getpid()}\n"
    with _runs(label).open("a") as file:
        file.write(line)


def _runs(name: str) -> Path:
    return Path(os.environ["FAULTS_RUNS"]) / name
