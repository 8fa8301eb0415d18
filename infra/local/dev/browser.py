"""The browser that the page is tested in: what is on the machine, else Playwright's own."""

from __future__ import annotations

import os
import shutil
from typing import Mapping, Optional

from infra.local.dev import paths
from infra.local.dev.console import DevError, step
from infra.local.dev.processes import CommandError, capture

SETTING = "TOOLBOX_CHROMIUM"
NAMES = ("chromium", "chromium-browser")
_HINT = (
    "Install it (Debian and Ubuntu: `sudo apt-get install chromium`), or name a Chromium or Chrome by the "
    f"environment variable {SETTING}."
)


def found(environ: Mapping[str, str] = os.environ) -> Optional[str]:
    """The program, or None where Playwright's own has to serve. Raises `DevError` for one that is not there."""
    named = environ.get(SETTING)
    if named:
        if shutil.which(named) is None:
            raise DevError(f"{SETTING} names no program: {named}.", _HINT)
        return named
    path = environ.get("PATH", os.defpath)
    return next((program for name in NAMES if (program := shutil.which(name, path=path))), None)


def ensure(environ: Mapping[str, str] = os.environ) -> None:
    """Have a browser. Raises `DevError` when there is none and none can be fetched."""
    if found(environ) is not None:
        return
    try:
        # Quick when it is there already.
        with step("Fetching Chromium for the tests of the page"):
            capture([str(paths.VENV_PYTHON), "-m", "playwright", "install", "chromium"], cwd=str(paths.REPO))
    except CommandError as failure:
        raise DevError("The tests of the page need Chromium, and it cannot be fetched.", _HINT) from failure
