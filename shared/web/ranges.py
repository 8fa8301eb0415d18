"""Files over HTTP: whole, or one part of them (RFC 9110, section 14)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import azure.functions as func

from shared.jobs.store import StoredFile
from shared.web import answers

_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class Found:
    """`first`: where the part begins; None for the whole file."""

    file: StoredFile
    first: int | None


def parse(header: str | None) -> Range | None:
    """The part asked for; None for the whole: a header that is odd, or names several parts, may be ignored."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return Range(suffix=int(last))
    if last and int(last) < int(first):
        return None
    return Range(int(first), int(last) if last else None)


def read(asked: Range | None, get: Read, *, only_head: bool = False, unless: str | None = None) -> Found | None:
    """The file or its part, None when there is none. `get(offset, length)` reads a part, `get()` the whole.

    `only_head`: nothing but what there is to say of the file. `unless`: the value of If-Range; a part of a file
    that has been replaced since is of no use, so the whole is read then.
    """
    if only_head:
        about = get(0, 1)
        return None if about is None else Found(about, None)
    if asked is None or (unless and _changed(get, unless)):
        whole = get()
        return None if whole is None else Found(whole, None)
    first = asked.first
    if asked.suffix is not None:
        about = get(0, 1)
        if about is None:
            return None
        first = max(about.size - asked.suffix, 0)
    part = get(first, (2**40 if asked.last is None else asked.last + 1) - first)
    return None if part is None else Found(part, first)


def answer(found: Found, name: str, *, with_body: bool) -> func.HttpResponse:
    file, first = found.file, found.first
    headers = {**FILE_HEADERS, "ETag": file.etag, "Content-Disposition": f'attachment; filename="{name}"'}
    status = 200
    if first is not None:
        if not file.data:
            headers["Content-Range"] = f"bytes */{file.size}"
            return answers.error(416, f"The file has {file.size} bytes", headers)
        headers["Content-Range"] = f"bytes {first}-{first + len(file.data) - 1}/{file.size}"
        status = 206
    if not with_body:
        headers["Content-Length"] = str(file.size)
    body = file.data if with_body else b""
    return func.HttpResponse(body, status_code=status, mimetype=file.mime_type, headers=headers)


def _changed(get: Read, tag: str) -> bool:
    """Whether If-Range names another version. A weak tag, and a date, never name one (RFC 9110, 13.1.5)."""
    about = get(0, 1)
    return about is None or about.etag != tag.strip()
