"""What the tests of csv_profile share: a watcher, a short way to a profile, and a checker of PNG files."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

from tools.csv_profile.model import ColumnProfile, CsvProfile
from tools.csv_profile.profile import profile_csv


@dataclass
class Watcher:
    """Remembers what a reporter is told."""

    messages: list[str] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def started(self, message: str) -> None:
        self.messages.append(message)

    def advanced(self, share: float, rows: int) -> None:
        self.shares.append(share)
        self.rows.append(rows)


def profiled(text: str, delimiter: str | None = None, header: bool | None = None) -> CsvProfile:
    return profile_csv(text, delimiter, header, Watcher())[0]


def column(cells: list[str], name: str = "x") -> ColumnProfile:
    """The profile of one column, quoted so that each cell arrives as it is."""
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in [name, *cells]]
    return profiled("\n".join(quoted), ",", True).columns[0]


@dataclass(frozen=True)
class Png:
    width: int
    height: int
    pixels: tuple[bytes, ...]
    palette: tuple[tuple[int, ...], ...]

    def share(self, colour: tuple[int, int, int]) -> float:
        """The part of the image that has this colour."""
        index = self.palette.index(colour)
        return sum(row.count(index) for row in self.pixels) / (self.width * self.height)


def read_png(data: bytes) -> Png:
    """Decode an 8-bit palette PNG without filters, and check everything a strict reader checks."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: list[tuple[bytes, bytes]] = []
    rest = data[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, body, check = rest[4:8], rest[8 : 8 + length], rest[8 + length : 12 + length]
        assert struct.unpack(">I", check) == (zlib.crc32(kind + body),)
        chunks.append((kind, body))
        rest = rest[12 + length :]
    assert [kind for kind, _ in chunks] == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, *settings = struct.unpack(">IIBBBBB", chunks[0][1])
    assert settings == [8, 3, 0, 0, 0]
    palette = chunks[1][1]
    raw = zlib.decompress(chunks[2][1])
    assert len(raw) == height * (width + 1)
    lines = [raw[start : start + width + 1] for start in range(0, len(raw), width + 1)]
    assert {line[0] for line in lines} == {0}
    assert max(raw) < len(palette) // 3
    return Png(
        width,
        height,
        tuple(line[1:] for line in lines),
        tuple(tuple(palette[start : start + 3]) for start in range(0, len(palette), 3)),
    )
