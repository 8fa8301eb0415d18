"""From a text to rows: lines are cut lazily, parsed by the `csv` module, and handed on in batches.

Nothing here keeps more than one chunk of lines and its rows. `io.StringIO` over the whole text would cost 4
bytes a character, so it only ever sees a chunk. Line ends are \\n, \\r\\n and a
lone \\r; in quotes they are data.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Final, Protocol

from shared.tool import ToolError

CHUNK: Final = 1 << 18
"""Characters that are read at once: small enough to be cheap, large enough for C loops to pay."""

MAX_RECORD: Final = 1 << 20
"""Characters in one record, line breaks in quotes included. Longer ones are not data that anybody wrote."""

MAX_COLUMNS: Final = 1_000

type Row = list[str]


class _Reader(Protocol):
    """What `csv.reader` returns, whose type has no public name."""

    @property
    def line_num(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...
    def __next__(self) -> Row: ...


_LINE_BREAK: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How cells are told apart. Quotes are always double quotes, doubled inside a quoted cell."""

    delimiter: str
    skip_initial_space: bool = False

    def reader(self, lines: Iterable[str]) -> _Reader:
        """The rows of `lines`. csv.Error: a cell is longer than `csv.field_size_limit()`."""
        return csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.skip_initial_space)


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records. `first_line` is the 1-based line of the text on which the first one starts."""

    rows: Sequence[Row]
    first_line: int

    def lines(self) -> Iterator[tuple[int, Row]]:
        """Every record with the line on which it starts."""
        line = self.first_line
        for row in self.rows:
            yield line, row
            line += _height(row)


class RecordTooLongError(Exception):
    """A record is longer than `MAX_RECORD`; `batches` adds where and makes it a `ToolError`."""


@dataclass(slots=True)
class Source:
    """The lines of `text` from `position` on, and how far they were read.

    Iterating ends with an empty line of its own. It comes back as an empty record, unless a quote is still open
    and swallows it.
    """

    text: str
    position: int = 0
    settled: int = 0
    """The position up to which records are known to be complete; set by who reads the records."""

    chunks: int = 0
    ended: bool = False

    def __iter__(self) -> Iterator[str]:
        text = self.text
        while self.position < len(text):
            end = self._chunk_end()
            yield from StringIO(text[self.position : end], newline="")
            self.position = end
            self.chunks += 1
            if end - self.settled > MAX_RECORD + CHUNK:
                raise RecordTooLongError
        self.chunks += 1
        self.ended = True
        yield ""

    def _chunk_end(self) -> int:
        """The end of the last whole line in the next chunk, or of the next line when that is longer."""
        text, start = self.text, self.position
        limit = start + CHUNK
        if limit >= len(text):
            return len(text)
        if (cut := text.rfind("\n", start, limit)) >= 0:
            return cut + 1
        # The last character is left out: a \r there may be the first half of a \r\n.
        if (cut := text.rfind("\r", start, limit - 1)) >= 0:
            return cut + 1
        if match := _LINE_BREAK.search(text, limit - 1, start + MAX_RECORD):
            end = match.end()
            return end + 1 if text.startswith("\r\n", end - 1) else end
        if len(text) - start <= MAX_RECORD:
            return len(text)
        raise RecordTooLongError


def batches(source: Source, dialect: Dialect) -> Iterator[Batch]:
    """All records, about a chunk at a time; blank lines come as empty rows.

    ToolError: a quote is never closed, or a cell or record is too long.
    """
    reader = dialect.reader(source)
    rows: list[Row] = []
    first_line = 1
    chunks = 0
    try:
        for row in reader:
            rows.append(row)
            if source.chunks == chunks:
                continue
            if source.ended:
                last = rows.pop()
                if last:
                    raise _unclosed(first_line + sum(map(_height, rows)))
            chunks = source.chunks
            source.settled = source.position
            yield Batch(rows, first_line)
            first_line = reader.line_num + 1
            rows = []
    except (csv.Error, RecordTooLongError) as error:
        raise _unreadable(error, first_line + sum(map(_height, rows))) from error


def is_blank(row: Row, width: int) -> bool:
    """Whether a record of a table of `width` columns is a blank line. In a single column, `""` is a row."""
    return not row or (len(row) == 1 < width and row[0].isspace())


def _height(row: Row) -> int:
    """Lines of the text that a record takes."""
    return 1 + sum(len(_LINE_BREAK.findall(cell)) for cell in row)


def _unclosed(line: int) -> ToolError:
    return ToolError(
        f"csv: a quote in the record that starts on line {line:,} is never closed, so everything after it is "
        "one cell. Close it, or double every quote inside a quoted cell."
    )


def _unreadable(error: Exception, line: int) -> ToolError:
    where = f"the record that starts on line {line:,}"
    if isinstance(error, RecordTooLongError):
        return ToolError(f"csv: {where} is longer than {MAX_RECORD:,} characters, the most that is read.")
    if "field larger than field limit" in str(error):
        return ToolError(
            f"csv: {where} has a cell of more than {csv.field_size_limit():,} characters, the most that is "
            "read. Usually a quote is opened there and never closed."
        )
    return ToolError(f"csv: {where} cannot be read: {error}.")
