"""Tells whether something made from files is up to date: a stamp beside it holds a hash of those files."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Iterable

if TYPE_CHECKING:
    from pathlib import Path


def digest(files: Iterable[Path], *extra: str) -> str:
    """A hash of the files' names and contents, and of `extra` (what else the result depends on)."""
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        total.update(f"{file.name}\0{len(content)}\0".encode())
        total.update(content)
    for text in extra:
        total.update(f"{text}\0".encode())
    return total.hexdigest()


class Stamp:
    """A stamp file. Remove it before the work starts and set it after the end: half done is then not done."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def matches(self, value: str) -> bool:
        """Whether the work was done for this value."""
        try:
            return self.path.read_text("utf-8").strip() == value
        except (OSError, UnicodeDecodeError):
            return False

    def remove(self) -> None:
        """The work is about to be done again."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def set(self, value: str) -> None:
        """The work is done."""
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.write_text(value + "\n", "utf-8")
        fresh.replace(self.path)
