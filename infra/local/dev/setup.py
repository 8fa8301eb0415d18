"""Set-up: everything that a fresh clone lacks, made once, and nothing at all when it is there.

Virtual environment and Python packages, npm packages, local.settings.json. Whether the first two are up to date
is known from stamps (a hash of the files they were made from), without starting a process.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator, List, Mapping

from infra.local.dev import paths
from infra.local.dev.console import say, warn
from infra.local.dev.locks import FileLock
from infra.local.dev.node import NodePackages, require_node
from infra.local.dev.settings import create_settings
from infra.local.dev.venv import Venv


def project_venv() -> Venv:
    """The checkout's virtual environment."""
    return Venv(paths.VENV, paths.REQUIREMENTS)


def project_node_packages() -> NodePackages:
    """The checkout's node_modules."""
    return NodePackages(paths.REPO, paths.NPM_FILES, expected=paths.AZURITE_JS)


def ensure(environ: Mapping[str, str] = os.environ, *, node: bool = True) -> None:
    """Make what is missing or out of date. `node=False`: the command needs no Azurite. Raises `DevError`."""
    venv, packages = project_venv(), project_node_packages()
    if node:
        require_node(environ)
    if venv.is_ready() and (packages.is_ready() or not node):
        return
    with _locked():
        # npm, which takes longest, works while the Python packages are installed.
        npm = packages.start_install(environ) if node and not packages.is_ready() else None
        try:
            if not venv.is_ready():
                venv.make(environ)
            if npm is not None:
                packages.finish_install(npm)
        finally:
            if npm is not None:
                npm.stop()


def agent_venvs() -> List[Venv]:
    """A virtual environment for each MCP client of tests/agents: what they need does not fit into one."""
    files = sorted(paths.AGENTS.glob("*/requirements.txt"))
    return [Venv(paths.AGENT_VENVS / file.parent.name, (file,)) for file in files]


def ensure_agents(environ: Mapping[str, str] = os.environ) -> None:
    """Make the agents' environments that are missing or out of date. Raises `DevError`."""
    if all(venv.is_ready() for venv in agent_venvs()):
        return
    # The checkout's own environment has uv, which is quick at making more of them.
    path = os.pathsep.join([str(paths.VENV_PYTHON.parent), environ.get("PATH", os.defpath)])
    with _locked():
        paths.AGENT_VENVS.mkdir(exist_ok=True)
        for venv in agent_venvs():
            if not venv.is_ready():
                venv.make({**environ, "PATH": path})


def ensure_settings() -> None:
    """local.settings.json, with secrets of its own. Raises `DevError`."""
    if os.path.lexists(paths.LOCAL_SETTINGS):
        return
    with _locked():
        if create_settings(paths.LOCAL_SETTINGS, paths.EXAMPLE_SETTINGS):
            say(f"Made {paths.LOCAL_SETTINGS.name} with new secrets.")


@contextmanager
def _locked() -> Iterator[None]:
    """One at a time in this checkout."""
    lock = FileLock(paths.STATE / "setup.lock")
    lock.acquire(on_wait=lambda: warn("another dev.py is setting up this checkout; waiting for it."))
    try:
        yield
    finally:
        lock.release()
