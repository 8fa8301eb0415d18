"""`dev.py upstream ...`: the app's own command, with the app's settings."""

from __future__ import annotations

import os
import subprocess

from infra.local.dev import paths, setup
from infra.local.dev.settings import effective_settings


def run(arguments: list[str]) -> int:
    """In a process of its own, since it loads what the app loads and starts servers; its exit code."""
    setup.ensure_settings()
    command = [str(paths.VENV_PYTHON), "-m", "shared.upstream.commands", *arguments]
    return subprocess.call(command, cwd=paths.REPO, env=effective_settings(paths.LOCAL_SETTINGS, os.environ))
