"""A copy of the checkout, for commands that write into it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from infra.local.dev import paths, setup

_NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "local.settings.json*")
_CONFIGURED = (".gitignore", ".npmrc", ".python-version", "local.settings.json.example")


def cloned(root: Path) -> Path:
    """`root`, now a copy that is set up; its packages are the checkout's own. Fails where those are not."""
    if not (setup.project_venv().is_ready() and setup.project_node_packages().is_ready()):
        pytest.fail("This checkout is not set up as its lock files say: run `python3 dev.py setup` first.")
    shutil.copytree(paths.REPO, root, ignore=_NOT_COPIED, symlinks=True)
    for name in _CONFIGURED:
        if (paths.REPO / name).exists():
            shutil.copy(paths.REPO / name, root)
    for packages in (paths.VENV, paths.NODE_MODULES):
        (root / packages.name).symlink_to(packages)
    return root
