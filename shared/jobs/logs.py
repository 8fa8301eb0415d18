"""A job's log: the newest lines, bounded in number and in size. Pure: no storage.

Lines are kept in chunks, each one table row; a chunk holds complete lines:

    line   = sequence (4 bytes) | milliseconds since 1970 (8) | level (1) | length (2) | UTF-8 text
    chunk n is written to row "log-" + n modulo RING, over the chunk RING before it

Big-endian throughout. A row stays below CHUNK_BYTES, off the 64 KiB that a property may have; all chunks
of the ring together stay far from the 4 MiB of one transaction. RING is large enough that the newest LINES
are never overwritten: a full chunk holds at least CHUNK_BYTES / (LINE_BYTES + 15) = 14 lines.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Final

LINES: Final = 200
LINE_BYTES: Final = 4_096
CHUNK_BYTES: Final = 60 * 1024
#: Fewer than fit, so that a flush rewrites little of what is stored already.
CHUNK_LINES: Final = 50
RING: Final = 20
CUT_MARK: Final = "… [cut]"

_HEAD = struct.Struct(">IQBH")
_CUT_MARK_BYTES = len(CUT_MARK.encode())


class Level(IntEnum):
    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class LogLine:
    #: 1 for the first line of the job.
    sequence: int
    timestamp: datetime
    level: Level
    message: str


@dataclass(slots=True)
class Chunk:
    number: int
    data: bytearray = field(default_factory=bytearray)
    lines: int = 0
    dirty: bool = False

    @property
    def slot(self) -> int:
        return self.number % RING


class LogRing:
    """Collects lines into chunks. Not thread-safe: its owner holds a lock."""

    def __init__(self, lines_before: int = 0, first_chunk: int = 0) -> None:
        self.lines = lines_before
        self._chunks: deque[Chunk] = deque([Chunk(first_chunk)])

    @property
    def next_chunk(self) -> int:
        """The chunk that a later attempt begins with: it cannot go on in one that it has not read."""
        last = self._chunks[-1]
        return last.number + 1 if last.lines else last.number

    @property
    def dirty(self) -> bool:
        return any(chunk.dirty for chunk in self._chunks)

    def append(self, level: Level, message: str, timestamp: datetime) -> None:
        text = cut(message)
        self.lines += 1
        size = _HEAD.size + len(text)
        chunk = self._chunks[-1]
        if chunk.lines >= CHUNK_LINES or len(chunk.data) + size > CHUNK_BYTES:
            chunk = Chunk(chunk.number + 1)
            self._chunks.append(chunk)
            self._forget_old()
        milliseconds = int(timestamp.timestamp() * 1000)
        chunk.data += _HEAD.pack(self.lines & 0xFFFFFFFF, milliseconds, level, len(text)) + text
        chunk.lines += 1
        chunk.dirty = True

    def take_dirty(self) -> list[tuple[int, bytes]]:
        """(slot, bytes) of every chunk that changed since the last call."""
        changed = [(chunk.slot, bytes(chunk.data)) for chunk in self._chunks if chunk.dirty]
        for chunk in self._chunks:
            chunk.dirty = False
        return changed

    def put_back(self, slots: Iterable[int]) -> None:
        """Marks chunks as changed again: their write did not go through."""
        again = set(slots)
        for chunk in self._chunks:
            chunk.dirty = chunk.dirty or chunk.slot in again

    def _forget_old(self) -> None:
        """Drops chunks all of whose lines are behind the newest LINES."""
        while (
            len(self._chunks) > 1
            and sum(chunk.lines for chunk in self._chunks) - self._chunks[0].lines >= LINES
        ):
            self._chunks.popleft()


def read_lines(chunks: Iterable[bytes]) -> list[LogLine]:
    """The newest LINES lines of stored chunks, oldest first."""
    found = [line for data in chunks for line in _parse(data)]
    found.sort(key=lambda line: line.sequence)
    return found[-LINES:]


def cut(message: str) -> bytes:
    """The line as stored: UTF-8, at most LINE_BYTES, cut between characters and marked when cut."""
    data = message.encode("utf-8", "replace")
    if len(data) <= LINE_BYTES:
        return data
    room = LINE_BYTES - _CUT_MARK_BYTES
    return data[:room].decode("utf-8", "ignore").encode() + CUT_MARK.encode()


def _parse(data: bytes) -> Iterable[LogLine]:
    at = 0
    while at + _HEAD.size <= len(data):
        sequence, milliseconds, level, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        text = data[at : at + length].decode("utf-8", "replace")
        at += length
        yield LogLine(sequence, datetime.fromtimestamp(milliseconds / 1000, UTC), Level(level), text)
