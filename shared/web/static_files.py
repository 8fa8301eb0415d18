"""The page's files: what lies in one folder and has a type that is listed here, and nothing else.

A name is looked up among the names found in the folder; no path is ever made of what a client sends.
"""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is served."""

    body: bytes = field(repr=False)
    content_type: str
    #: Of the content, without quotes.
    tag: str


class StaticFiles:
    """The files of a folder. One that changes is read again: nobody restarts the app for a style sheet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        #: name -> ((time of the last change in ns, size), the file)
        self._read: dict[str, tuple[tuple[int, int], Asset]] = {}

    def get(self, name: str) -> Asset | None:
        """The file of exactly that name; None when there is none to be served. Blocks, for a small file."""
        path = self._find(name)
        if path is None:
            return None
        about = path.stat()
        version = (about.st_mtime_ns, about.st_size)
        with self._lock:
            known = self._read.get(name)
            if known is None or known[0] != version:
                body = path.read_bytes()
                asset = Asset(body, TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:32])
                known = self._read[name] = (version, asset)
        return known[1]

    def _find(self, name: str) -> Path | None:
        if not _NAME.fullmatch(name):
            return None
        path = next((path for path in self._folder.iterdir() if path.name == name), None)
        # A link may lead anywhere.
        served = path is not None and path.suffix in TYPES and path.is_file() and not path.is_symlink()
        return path if served else None
