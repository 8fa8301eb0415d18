"""Finds the processes that a test's commands started, also those that changed their process group."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import setup

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROC = Path("/proc")
_MARK = "TOOLBOX_TEST_MARK"


class Family:
    """Processes that inherited a mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark = f"{_MARK}={uuid.uuid4()}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment to start the first of them with."""
        name, _, value = self._mark.partition("=")
        # Killed programs leave temporary files, which pytest then removes.
        return {**os.environ, name: value, "TMPDIR": str(self._folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def members(self) -> dict[int, str]:
        """Those that run now: process id -> command line."""
        found = {}
        for folder in _PROC.iterdir():
            if folder.name.isdigit():
                try:
                    if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                        found[int(folder.name)] = command.decode(errors="replace")
                except OSError:
                    continue  # it has ended meanwhile, or is not ours
        return found

    def wait_until_gone(self, seconds: float) -> dict[int, str]:
        """Wait until none is left; those that are left after `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := self.members()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return left


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Family]:
    if not (_PROC / "self" / "environ").exists():
        pytest.skip("needs /proc to find processes")
    if not (setup.project_venv().is_ready() and setup.project_node_packages().is_ready()):
        pytest.fail("This checkout is not set up as its lock files say: run `python3 dev.py setup` first.")
    made = Family(tmp_path)
    yield made
    for pid in made.members():
        os.kill(pid, signal.SIGKILL)
