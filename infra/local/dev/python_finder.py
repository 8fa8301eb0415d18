"""Finds a Python 3.13, which the app and the Functions worker need; `python3` may be another one.

`python3.13` on PATH is not enough: under pyenv it is a shim that fails unless that version is selected.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Iterator, List, Mapping, Optional

from infra.local.dev.console import DevError, step
from infra.local.dev.processes import CommandError, capture

WANTED = (3, 13)
_NAME = "python3.13"
_PROBE = "import sys; sys.version_info[:2] == (3, 13) or sys.exit(1); print(sys.executable)"
_PYENV_SORT_WIDTH = 4
_USUAL_FOLDERS = ("/usr/local/bin", "/opt/homebrew/bin", "/usr/bin")


def find_python(environ: Mapping[str, str], home: Path) -> str:
    """The path of a Python 3.13. Raises `DevError` with the ways to get one."""
    tried: List[str] = []
    for candidate in candidates(environ, home):
        found = probe(candidate)
        if found:
            return found
        tried.append(candidate)
    found = _from_uv(environ)
    if found:
        return found
    raise DevError(
        "Python 3.13 was not found. Tried: " + ", ".join(tried) + ".",
        "Install it (`pyenv install 3.13`, `uv python install 3.13`, `brew install python@3.13`, your\n"
        "system's python3.13 and python3.13-venv packages, or python.org), or name one that you have:\n"
        "  PYTHON=/path/to/python3.13 python3 dev.py run",
    )


def candidates(environ: Mapping[str, str], home: Path) -> Iterator[str]:
    """Programs that may be a Python 3.13, best first: as asked for, this one, PATH, pyenv, usual places."""
    seen = set()
    for name in _all_candidates(environ, home):
        path = name if os.sep in name else shutil.which(name, path=environ.get("PATH"))
        if path and path not in seen and os.access(path, os.X_OK):
            seen.add(path)
            yield path


def _all_candidates(environ: Mapping[str, str], home: Path) -> Iterator[str]:
    if environ.get("PYTHON"):
        yield environ["PYTHON"]
    if sys.version_info[:2] == WANTED:
        yield sys.executable
    yield _NAME
    pyenv_root = Path(environ["PYENV_ROOT"]) if environ.get("PYENV_ROOT") else home / ".pyenv"
    versions = [path for path in pyenv_root.glob("versions/3.13*") if (path / "bin" / _NAME).exists()]
    for version in sorted(versions, key=_version_key, reverse=True):
        yield str(version / "bin" / _NAME)
    for folder in _USUAL_FOLDERS:
        yield f"{folder}/{_NAME}"
    yield "python3"


def _version_key(path: Path) -> List[str]:
    # So that 3.13.10 is newer than 3.13.9; endings like "t" (the free-threaded build) sort below plain numbers.
    return [part.zfill(_PYENV_SORT_WIDTH) if part.isdigit() else "" for part in path.name.split(".")]


def probe(program: str) -> Optional[str]:
    """The real path of the interpreter if the program is a Python 3.13 that runs, else None."""
    try:
        return capture([program, "-c", _PROBE], cwd=os.curdir).strip().splitlines()[-1]
    except (CommandError, IndexError):
        return None


def _from_uv(environ: Mapping[str, str]) -> Optional[str]:
    """One that uv has, or can fetch."""
    uv = shutil.which("uv", path=environ.get("PATH"))
    if uv is None:
        return None
    find = [uv, "python", "find", "--no-python-downloads", "3.13"]
    try:
        return probe(capture(find, cwd=os.curdir).strip())
    except CommandError:
        pass
    try:
        with step("Fetching Python 3.13 with uv"):
            capture([uv, "python", "install", "3.13"], cwd=os.curdir)
        return probe(capture(find, cwd=os.curdir).strip())
    except CommandError:
        return None
