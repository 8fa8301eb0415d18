"""Fixtures for tests of dev.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from infra.local.dev import paths, setup

type DevCommand = Callable[..., subprocess.CompletedProcess[str]]
type Script = Callable[[str, str], Path]


@pytest.fixture
def dev_command() -> DevCommand:
    """Runs `dev.py` with arguments (and `python=`, `environ=`) in a checkout that is set up already."""
    if not (setup.project_venv().is_ready() and setup.project_node_packages().is_ready()):
        pytest.fail("This checkout is not set up as its lock files say: run `python3 dev.py setup` first.")

    def run(
        *arguments: str, python: str = sys.executable, environ: Mapping[str, str] = os.environ
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, str(paths.REPO / "dev.py"), *arguments],
            env={**environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Makes an executable shell script in a folder that can be a PATH of its own."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, body: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
        path.chmod(0o755)
        return path

    return make
