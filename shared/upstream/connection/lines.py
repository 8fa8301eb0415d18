"""Bytes from a pipe -> lines, each at most so long; a longer one is dropped as it arrives, not gathered.

Of a dropped line its first and last bytes are kept: they hold the id of the message it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: Bytes of each end of a dropped line that are kept.
_ENDS: Final = 512

_ID: Final = rb'"id"\s*:\s*(?P<id>-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_AT_START: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
_AT_END: Final = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line of `size` bytes that was not kept."""

    size: int
    start: bytes
    end: bytes

    @property
    def message_id(self) -> int | str | None:
        """The JSON-RPC id of the message, if it stands at either end of it, where every library writes it."""
        found = _AT_START.match(self.start) or _AT_END.search(self.end)
        if found is None:
            return None
        text = found["id"].decode("utf-8", "replace")
        return text[1:-1] if text.startswith('"') else int(text)


class LineSplitter:
    def __init__(self, most: int) -> None:
        """`most`: bytes of a line, its end not counted."""
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._start = b""
        self._end = b""

    def feed(self, data: bytes) -> Iterator[bytes | OverlongLine]:
        """The lines that `data` completes, without their ends. Read it to its end before the next `feed`."""
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            self._take(data[at:end])
            yield self._line()
            at = end + 1
        if at < len(data):
            self._take(data[at:])

    def rest(self) -> bytes | OverlongLine | None:
        """What stands after the last end of a line, when nothing more will come."""
        return self._line() if self._size else None

    def _take(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._parts.append(part)
            return
        if self._parts:
            kept = b"".join(self._parts)
            self._start, self._end = kept[:_ENDS], kept[-_ENDS:]
            self._parts.clear()
        if len(self._start) < _ENDS:
            self._start += part[: _ENDS - len(self._start)]
        self._end = (self._end + part[-_ENDS:])[-_ENDS:]

    def _line(self) -> bytes | OverlongLine:
        line: bytes | OverlongLine
        if self._size > self._most:
            line = OverlongLine(self._size, self._start, self._end)
        else:
            line = b"".join(self._parts)
        self._parts, self._size, self._start, self._end = [], 0, b"", b""
        return line
