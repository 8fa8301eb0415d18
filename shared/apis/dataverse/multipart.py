"""`multipart/mixed` messages of HTTP requests and answers, as `$batch` exchanges them (OData 4.0, 11.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

EOL: Final = "\r\n"
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.\d (\d{3})[ \t]*([^\r\n]*)\r?\n?")
_BOUNDARY: Final = re.compile(r"boundary=(?:\"([^\"]{1,200})\"|([^;\s]{1,200}))", re.IGNORECASE)


class MultipartError(Exception):
    """The message is not what it should be."""


@dataclass(frozen=True, slots=True)
class Part:
    """One answer inside of a batch's answer. `headers`: names in lower case; `content_id`: the part's own."""

    status: int
    reason: str
    headers: Mapping[str, str]
    content: bytes
    content_id: str | None


def request_part(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None, content_id: str | None
) -> bytes:
    """One request, with the part's own headers before it."""
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    if content_id is not None:
        lines.append(f"Content-ID: {content_id}")
    lines += ["", f"{method} {url} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return EOL.join(lines).encode() + (body or b"")


def nested(boundary: str, parts: Sequence[bytes]) -> bytes:
    """A change set as one part of a batch."""
    return f"Content-Type: multipart/mixed; boundary={boundary}{EOL}{EOL}".encode() + join(boundary, parts)


def join(boundary: str, parts: Sequence[bytes]) -> bytes:
    marker = f"--{boundary}".encode()
    pieces = [marker + b"\r\n" + part + b"\r\n" for part in parts]
    return b"".join(pieces) + marker + b"--\r\n"


def is_multipart(content_type: str) -> bool:
    return content_type.lower().startswith("multipart/mixed")


def answers(content_type: str, content: bytes) -> list[Part]:
    """All answers in order, those of change sets among the others. Raises `MultipartError`."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise MultipartError("it names no boundary")
    parts: list[Part] = []
    for piece in _split((found[1] or found[2]).encode(), content):
        headers, body = _headers(piece)
        kind = headers.get("content-type", "")
        if is_multipart(kind):
            parts += answers(kind, body)
        else:
            parts.append(_answer(headers, body))
    return parts


def _split(boundary: bytes, content: bytes) -> list[bytes]:
    marker = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?:\r?\n|$)")
    pieces: list[bytes] = []
    start: int | None = None
    position = 0
    while True:
        # The line end before a delimiter belongs to it, and may have ended the delimiter before.
        found = marker.search(content, position)
        if found is None:
            raise MultipartError("it ends in the middle")
        if start is not None:
            pieces.append(content[start : max(found.start(), start)])
        if found[1]:
            return pieces
        start = found.end()
        position = max(start - 1, 0)


def _headers(piece: bytes) -> tuple[dict[str, str], bytes]:
    """The headers before the first empty line, and what comes after it."""
    headers: dict[str, str] = {}
    position = 0
    while position < len(piece):
        end = piece.find(b"\n", position)
        end = len(piece) if end < 0 else end
        line = piece[position:end].rstrip(b"\r")
        position = end + 1
        if not line:
            break
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise MultipartError("a header line has no colon")
        headers[name.strip().lower()] = value.strip()
    return headers, piece[position:]


def _answer(outer: Mapping[str, str], body: bytes) -> Part:
    line = _STATUS_LINE.match(body)
    if line is None:
        raise MultipartError("a part holds no HTTP answer")
    headers, content = _headers(body[line.end() :])
    content_id = outer.get("content-id") or headers.get("content-id")
    return Part(int(line[1]), line[2].decode("latin-1").strip(), headers, content, content_id)
