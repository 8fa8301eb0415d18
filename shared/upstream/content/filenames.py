"""Names of the files that media are stored under: safe anywhere, telling what they hold, each once in a result.

The table of extensions is our own: that of the machine knows other types on another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

#: Media type -> extensions, the one to use first.
EXTENSIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "image/png": (".png",),
        "image/jpeg": (".jpg", ".jpeg", ".jpe"),
        "image/jpg": (".jpg", ".jpeg"),
        "image/gif": (".gif",),
        "image/webp": (".webp",),
        "image/avif": (".avif",),
        "image/heic": (".heic",),
        "image/bmp": (".bmp",),
        "image/tiff": (".tiff", ".tif"),
        "image/svg+xml": (".svg",),
        "image/x-icon": (".ico",),
        "image/vnd.microsoft.icon": (".ico",),
        "audio/wav": (".wav",),
        "audio/x-wav": (".wav",),
        "audio/wave": (".wav",),
        "audio/vnd.wave": (".wav",),
        "audio/mpeg": (".mp3",),
        "audio/mp3": (".mp3",),
        "audio/ogg": (".ogg", ".oga", ".opus"),
        "audio/opus": (".opus",),
        "audio/flac": (".flac",),
        "audio/x-flac": (".flac",),
        "audio/mp4": (".m4a", ".mp4"),
        "audio/x-m4a": (".m4a",),
        "audio/aac": (".aac",),
        "audio/webm": (".webm", ".weba"),
        "audio/midi": (".mid", ".midi"),
        "video/mp4": (".mp4", ".m4v"),
        "video/mpeg": (".mpeg", ".mpg"),
        "video/webm": (".webm",),
        "video/quicktime": (".mov",),
        "text/plain": (".txt", ".text", ".log", ".md", ".csv", ".ini", ".conf", ".py", ".sh", ".sql"),
        "text/html": (".html", ".htm"),
        "text/css": (".css",),
        "text/csv": (".csv",),
        "text/markdown": (".md", ".markdown"),
        "text/xml": (".xml",),
        "text/javascript": (".js", ".mjs"),
        "text/x-python": (".py",),
        "text/yaml": (".yaml", ".yml"),
        "text/calendar": (".ics",),
        "application/json": (".json",),
        "application/xml": (".xml",),
        "application/yaml": (".yaml", ".yml"),
        "application/x-yaml": (".yaml", ".yml"),
        "application/javascript": (".js", ".mjs"),
        "application/pdf": (".pdf",),
        "application/rtf": (".rtf",),
        "application/zip": (".zip",),
        "application/gzip": (".gz", ".tgz"),
        "application/x-tar": (".tar",),
        "application/x-7z-compressed": (".7z",),
        "application/msword": (".doc",),
        "application/vnd.ms-excel": (".xls",),
        "application/vnd.ms-powerpoint": (".ppt",),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (".docx",),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": (".xlsx",),
        "application/vnd.openxmlformats-officedocument.presentationml.presentation": (".pptx",),
        "application/vnd.sqlite3": (".sqlite", ".sqlite3", ".db"),
        "application/vnd.apache.parquet": (".parquet",),
        "application/wasm": (".wasm",),
    }
)
#: Types that say nothing about what they hold: a name with any extension is left as it is.
_VAGUE: Final = ("application/octet-stream", "binary/octet-stream", "")
#: Characters of a file's name; artifacts take 128, and a number must still fit.
_LONGEST: Final = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,10}$")


def essence(mime_type: str | None) -> str:
    """The media type without parameters, in lower case; "" for none."""
    return (mime_type or "").partition(";")[0].strip().lower()


def safe(text: str) -> str:
    """The text as a part of a file's name: no separator, no dot or line at its ends; may be empty."""
    return _UNSAFE.sub("_", text).strip("._-")


def last_part(uri: str | None) -> str:
    """The last part of a uri's path as it is written (nothing is unescaped); "" where there is none."""
    if not uri:
        return ""
    try:
        path = urlsplit(uri).path
    except ValueError:
        path = uri
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


class FileNames:
    """Names for the files of one result. `default`: what a file without a name of its own is called after."""

    def __init__(self, default: str) -> None:
        self._default = safe(default)[: _LONGEST // 2].strip("._-") or "tool"
        self._taken: set[str] = set()
        self._count = 0

    def name(self, label: str, mime_type: str, uri: str | None = None) -> str:
        """A name not given before, also where case does not count. `label`: what it holds, in one word."""
        self._count += 1
        stem, extension = _parts(safe(last_part(uri)), mime_type)
        stem = stem[:_LONGEST].rstrip("._-") or f"{self._default}_{label}_{self._count}"
        number, name = 1, f"{stem}{extension}"
        while name.lower() in self._taken:
            number += 1
            name = f"{stem}-{number}{extension}"
        self._taken.add(name.lower())
        return name


def _parts(given: str, mime_type: str) -> tuple[str, str]:
    """Stem and extension: that of the name where it fits the media type, else that of the type."""
    kind = essence(mime_type)
    found = _EXTENSION.search(given)
    own = found.group().lower() if found and found.start() else ""
    known = EXTENSIONS.get(kind)
    if own and (known is None or own in known or kind in _VAGUE):
        return given[: -len(own)], given[-len(own) :]
    return given, known[0] if known else ".bin"
