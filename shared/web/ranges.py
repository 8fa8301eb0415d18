"""Files over HTTP: whole, or one part of them (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import azure.functions as func

from shared.jobs.store import StoredFile
from shared.web import answers

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
#: The file is somebody's data: never shown in place, never run.
FILE_HEADERS: Final = {
    **answers.SECURITY_HEADERS,
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Accept-Ranges": "bytes",
}

type Read = Callable[..., StoredFile | None]


@dataclass(frozen=True, slots=True)
class Range:
    """`bytes=first-last`, or the last `suffix` bytes."""

    first: int = 0
    last: int | None = None
    suffix: int | None = None


def parse(header: str | None) -> Range | None:
    """The part asked for; None for the whole: a header that is odd, or names several parts, may be ignored."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if match is None or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return Range(suffix=int(last))
    if last and int(last) < int(first):
        return None
    return Range(int(first), int(last) if last else None)


def read(asked: Range | None, get: Read) -> StoredFile | None:
    """The file, or its part. `get(offset, length)` reads a part, `get()` the whole."""
    if asked is None:
        return get()
    first = asked.first
    if asked.suffix is not None:
        about = get(0, 1)
        if about is None:
            return None
        first = max(about.size - asked.suffix, 0)
    return get(first, (2**40 if asked.last is None else asked.last + 1) - first)


def answer(found: StoredFile, asked: Range | None, name: str, *, with_body: bool) -> func.HttpResponse:
    headers = {**FILE_HEADERS, "ETag": found.etag, "Content-Disposition": f'attachment; filename="{name}"'}
    status = 200
    if asked is not None:
        if not found.data:
            headers["Content-Range"] = f"bytes */{found.size}"
            return answers.error(416, f"The file has {found.size} bytes", headers)
        first = max(found.size - asked.suffix, 0) if asked.suffix is not None else asked.first
        headers["Content-Range"] = f"bytes {first}-{first + len(found.data) - 1}/{found.size}"
        status = 206
    return func.HttpResponse(
        found.data if with_body else b"", status_code=status, mimetype=found.mime_type, headers=headers
    )
