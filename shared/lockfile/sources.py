"""What a lock file in a checkout was made from, where files change: over names and contents of all files that
decide what tools declare: tools/, shared/, requirements.txt, upstream.lock.json.

Bytecode and names that begin with a dot do not count.
"""

from __future__ import annotations

import hashlib
import os
from typing import Final

_FILES: Final = ("requirements.txt", "upstream.lock.json")


def digest(root: str, tools: str) -> str:
    """`root`: the app's folder; `tools`: the name of the folder of tools in it. A folder may be absent."""
    lines = []
    for name, path in _all(root, ("shared", tools)):
        with open(path, "rb") as file:  # noqa: PTH123
            lines.append(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}")
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def _all(root: str, folders: tuple[str, ...]) -> list[tuple[str, str]]:
    """(name below the root, path), always in the same order.

    Without pathlib, which costs more than all that is done here.
    """
    found = [(name, path) for name in _FILES if os.path.isfile(path := os.path.join(root, name))]  # noqa: PTH113, PTH118
    for folder in folders:
        found += _below(os.path.join(root, folder), folder)  # noqa: PTH118
    return sorted(found)


def _below(path: str, name: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    try:
        entries = list(os.scandir(path))
    except OSError:
        return found
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "__pycache__" or entry.name.endswith(".pyc"):
            continue
        if entry.is_dir(follow_symlinks=False):
            found += _below(entry.path, f"{name}/{entry.name}")
        elif entry.is_file():
            found.append((f"{name}/{entry.name}", entry.path))
    return found
