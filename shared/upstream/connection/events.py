"""Server-sent events out of the bytes of an answer, as they come (WHATWG HTML, "Server-sent events").

Bytes throughout: no byte of a longer UTF-8 character looks like the end of a line, and what an event carries
here is JSON, which is read from bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
_DIGITS: Final = frozenset(b"0123456789")


@dataclass(frozen=True, slots=True)
class Event:
    """`id`: the last one that the stream has named so far; `retry`: milliseconds."""

    kind: str
    data: bytes
    id: str
    retry: int | None


class EventTooLargeError(Exception):
    """One event has more bytes than are taken."""


class EventReader:
    def __init__(self, most: int) -> None:
        """`most`: bytes of the lines of one event, their ends and comments not counted."""
        self._most = most
        self._first = True
        #: A CR at the end of a part, which an LF may follow.
        self._held = b""
        #: The line that has begun.
        self._parts: list[bytes] = []
        self._begun = 0
        #: The event that has begun.
        self._size = 0
        self._kind = ""
        self._data: list[bytes] = []
        self._id = ""
        self._retry: int | None = None
        self._some = False

    def feed(self, part: bytes) -> Iterator[Event]:
        """The events that `part` completes. Read it to its end before the next one. Raises
        `EventTooLargeError`."""
        if self._first and part:
            part = part.removeprefix(_BOM)  # a mark that is cut in two is no server's
            self._first = False
        if self._held:
            part, self._held = self._held + part, b""
        if b"\r" in part:
            if part.endswith(b"\r"):
                part, self._held = part[:-1], b"\r"
            part = part.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = part.split(b"\n")
        rest = lines.pop()
        for line in lines:
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts.clear()
                self._begun = 0
            if (event := self._take(line)) is not None:
                yield event
        if rest:
            self._parts.append(rest)
            self._begun += len(rest)
            self._check(self._size + self._begun)

    def end(self) -> Iterator[Event]:
        """What the end of the stream completes: an event whose last line end was a CR. Others are dropped."""
        if self._held:
            self._held = b""
            yield from self.feed(b"\n")

    def _take(self, line: bytes) -> Event | None:
        if not line:
            return self._ended()
        if line.startswith(b":"):
            return None
        self._size += len(line)
        self._check(self._size)
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._data.append(value)
            case b"event":
                self._kind = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value and _DIGITS.issuperset(value) and len(value) < 10:
                self._retry = int(value)
            case _:
                return None
        self._some = True
        return None

    def _ended(self) -> Event | None:
        self._size = 0
        if not self._some:
            return None
        event = Event(self._kind or "message", b"\n".join(self._data), self._id, self._retry)
        self._kind, self._data, self._retry, self._some = "", [], None, False
        return event

    def _check(self, size: int) -> None:
        if size > self._most:
            raise EventTooLargeError(f"Server-sent event exceeded the {self._most} byte limit.")
