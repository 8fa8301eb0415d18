"""`dev.py upstream ...`: the app's own command, with its settings; and what `dev.py run` says of servers."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from infra.local.dev import paths, setup
from infra.local.dev.console import DevError
from infra.local.dev.settings import effective_settings

if TYPE_CHECKING:
    from collections.abc import Mapping


def run(arguments: list[str]) -> int:
    """In a process of its own, since it loads what the app loads and starts servers; its exit code."""
    setup.ensure_settings()
    command = [str(paths.VENV_PYTHON), "-m", "shared.upstream.commands", *arguments]
    return subprocess.call(command, cwd=paths.REPO, env=effective_settings(paths.LOCAL_SETTINGS, os.environ))


def faults(settings: Mapping[str, str]) -> list[str]:
    """What is wrong with the configured servers, a line each, as `dev.py upstream list` says it.

    Asks no server. Raises `DevError` for a setting that keeps the app from starting.
    """
    from shared.errors import SettingsError
    from shared.upstream.settings import upstream_settings

    try:
        upstream = upstream_settings(settings, paths.REPO)
    except SettingsError as error:
        raise DevError(error.message, "Correct it in local.settings.json or in the environment.") from error
    if not (upstream.servers_text or upstream.servers_file or upstream.known_projects()):
        return []  # and nothing has to be loaded to know it
    from shared.upstream.config.loading import load_all
    from shared.upstream.findings import Findings, findings_of

    found = findings_of(load_all(upstream, refresh=True, environ=settings))
    return Findings(found.faults).lines()
