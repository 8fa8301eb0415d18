"""Which file of a tool's folder is its headless entry.

Looked for in this order: `agents.headlessEntry`, `dist/headless.py`, `headless.py`, `[tool.toolbox] main` of
pyproject.toml, `main` of package.json when it names a `.py` file. The first one there is decides, and what is
wrong with it is the fault: nothing falls through to the next, no other file runs instead.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from shared.contract.config import Package
from shared.contract.findings import Findings

CONVENTIONAL: Final = ("dist/headless.py", "headless.py")
_FILE_NAME = re.compile(r"[^./\\]+\.py")
_ENTRY_PATH: Final = "$.agents.headlessEntry"


@dataclass(frozen=True, slots=True)
class Entry:
    """`file`: as a person would write it, relative to the tool's folder; `path`: the file that links lead to.

    What stands beside that file is what it imports, whoever has found the entry: a check, or a lock file.
    """

    file: str
    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(os.path.realpath(self.path)))


def find_entry(folder: Path, configured: str | None, package: Package, found: Findings) -> Entry | None:
    """The entry; None: there is none, or an error says what is wrong with the one that decides."""
    if configured is not None:
        return _checked(folder, configured, _ENTRY_PATH, found)
    for name in CONVENTIONAL:
        # A folder of that name is no entry; a link that leads nowhere is a broken one.
        if (folder / name).is_file() or (folder / name).is_symlink():
            return _checked(folder, name, name, found)
    for main in package.mains:
        return _checked(folder, main.value, main.path, found.of(main.file))
    return None


def foreign_entry(folder: Path) -> str | None:
    """An entry written for the original, which cannot run here."""
    names = (
        str(PurePosixPath(name).with_suffix(suffix))
        for name in CONVENTIONAL
        for suffix in (".js", ".mjs", ".cjs")
    )
    return next((name for name in names if (folder / name).is_file()), None)


def docstring(entry: Entry) -> str | None:
    """The first paragraph of what the entry says of itself; read, not run."""
    try:
        text = ast.get_docstring(ast.parse(entry.path.read_bytes()))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return " ".join((text or "").strip().split("\n\n")[0].split()) or None


def _checked(folder: Path, written: str, path: str, found: Findings) -> Entry | None:
    reason, hint = _illegal(written)
    if not reason:
        relative = PurePosixPath(written.strip())
        target = folder / relative
        reason = _unusable(folder, target)
        if not reason:
            return Entry(str(relative), target)
    found.error(path, f"'{written[:80]}' {reason}", hint)
    return None


def _illegal(written: str) -> tuple[str, str]:
    """(what is wrong with the path as written, what to write); empty: nothing."""
    text = written.strip()
    if not text or "\0" in text:
        return "is no path", "name a .py file inside the tool's folder"
    if "\\" in text:
        return "has a backslash in it", "write / between folders"
    if text.startswith(("/", "~")) or re.match(r"[A-Za-z]:", text):
        return "must be relative to the tool's folder", "name a .py file inside it"
    if ".." in PurePosixPath(text).parts:
        return "leaves the tool's folder with '..'", "name a .py file inside it"
    name = PurePosixPath(text).name
    if not _FILE_NAME.fullmatch(name):
        stem = PurePosixPath(text).with_suffix(".py") if name.endswith((".js", ".mjs", ".cjs", ".ts")) else None
        hint = f"entries are Python here: write '{stem}'" if stem else "name one like headless.py"
        return "must name a .py file without further dots in its name", hint
    return "", ""


def _unusable(folder: Path, target: Path) -> str:
    try:
        if not target.exists():
            return "does not exist"
        if not target.is_file():
            return "is no file"
        inside = Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return "cannot be read"
    return "" if inside else "is a link that leaves the tool's folder"
