"""A whole table in one pass: names, ragged rows, columns, warnings."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from shared.tool import ToolError
from tools.csv_profile.column import DISTINCT_PER_COLUMN, DISTINCT_PER_TABLE, Column
from tools.csv_profile.model import ColumnProfile, ColumnType
from tools.csv_profile.reading import MAX_COLUMNS, Batch, Row, is_blank
from tools.csv_profile.values import printable

NAMED_LINES: Final = 5
"""Line numbers that a warning about rows names."""

_MAX_NAME: Final = 100
_RARE: Final = 0.1


class RowFault:
    """Rows with the same fault: how many, and the first few lines."""

    def __init__(self) -> None:
        self.count = 0
        self.cells = 0
        self._lines: list[int] = []

    def add(self, line: int, cells: int = 0) -> None:
        """Take note of a row on `line` that has `cells` too many or too few."""
        self.count += 1
        self.cells += cells
        if len(self._lines) < NAMED_LINES:
            self._lines.append(line)

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def where(self) -> str:
        """'line 3' or 'lines 3, 5, 9 and 12 more'."""
        named = ", ".join(map(str, self._lines))
        rest = self.count - len(self._lines)
        return f"line{'s' if self.count > 1 else ''} {named}{f' and {rest:,} more' if rest else ''}"


class Table:
    """Statistics of all rows of a table."""

    def __init__(self, names: Sequence[str], header: Row | None) -> None:
        """`header`: the record that `names` come from, which is not data; None when all records are."""
        cap = max(100, min(DISTINCT_PER_COLUMN, DISTINCT_PER_TABLE // len(names)))
        self.columns = [Column(name, cap) for name in names]
        self.row_count = 0
        self._header = header
        self._blank = RowFault()
        self._short = RowFault()
        self._long = RowFault()

    def add(self, batch: Batch) -> None:
        """Take the rows of a batch."""
        rows = batch.rows
        width = len(self.columns)
        if self._header is not None or set(map(len, rows)) != {width}:
            rows = list(self._regular(batch, width))
        self.row_count += len(rows)
        # Column by column: the loops over cells then run in C.
        for column, cells in zip(self.columns, zip(*rows, strict=True), strict=False):
            column.add(cells)

    def _regular(self, batch: Batch, width: int) -> Iterator[Row]:
        """Data rows of exactly `width` cells."""
        for line, row in batch.lines():
            if self._header is not None:
                if row == self._header:
                    self._header = None
                else:
                    self._blank.add(line)
            elif is_blank(row, width):
                self._blank.add(line)
            elif len(row) < width:
                self._short.add(line, width - len(row))
                yield row + [""] * (width - len(row))
            elif len(row) > width:
                self._long.add(line, len(row) - width)
                yield row[:width]
            else:
                yield row

    def profiles(self) -> list[ColumnProfile]:
        """One result a column."""
        return [column.profile() for column in self.columns]

    def row_warnings(self) -> Iterator[str]:
        """What is wrong with rows."""
        if not self.row_count:
            yield "There is only a header: no row of data."
        if short := self._short:
            yield (
                f"{short.count:,} row(s) have too few cells ({short.where}); "
                f"the {short.cells:,} absent cell(s) count as missing."
            )
        if long := self._long:
            yield (
                f"{long.count:,} row(s) have too many cells ({long.where}); "
                f"the {long.cells:,} extra cell(s) were left out."
            )
        if blank := self._blank:
            yield f"{blank.count:,} blank line(s) were skipped ({blank.where})."


def type_warnings(profiles: Sequence[ColumnProfile]) -> Iterator[str]:
    """Columns that are text because of a few cells only, which usually are mistakes."""
    for profile in profiles:
        if profile.mixed:
            kind, most = max(profile.mixed.items(), key=lambda item: item[1])
            rest = sum(profile.mixed.values()) - most
            if kind is not ColumnType.TEXT and rest <= _RARE * most:
                yield (
                    f"Column {profile.name!r} is text because of {rest:,} cell(s); "
                    f"the other {most:,} are of type {kind}."
                )


def column_names(rows: Sequence[Row], *, header: bool) -> tuple[list[str], list[str]]:
    """Unique names of the columns, and warnings about them. `rows`: the first rows, none blank, at least one.

    ToolError: more columns than are profiled.
    """
    width = len(rows[0]) if header else max(map(len, rows))
    if width > MAX_COLUMNS:
        raise ToolError(
            f"csv has {width:,} columns; at most {MAX_COLUMNS:,} are profiled. Is the delimiter right?"
        )
    if not header:
        return [f"column_{number}" for number in range(1, width + 1)], []
    given = [_shown_name(cell.strip()) for cell in rows[0]]
    taken = set(given)
    names: dict[str, None] = {}
    for number, name in enumerate(given, 1):
        unique = base = name or f"column_{number}"
        suffix = 2
        while unique in names or (unique != name and unique in taken):
            unique = f"{base}_{suffix}"
            suffix += 1
        names[unique] = None
    return list(names), list(_name_warnings(given))


def _shown_name(name: str) -> str:
    return printable(name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…")


def _name_warnings(given: Sequence[str]) -> Iterator[str]:
    counts = Counter(given)
    if nameless := counts.pop("", 0):
        yield f"{nameless:,} column(s) have no name in the header; they are called column_N."
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        named = ", ".join(map(repr, repeated[:NAMED_LINES]))
        rest = len(repeated) - NAMED_LINES
        more = f" and {rest:,} more" if rest > 0 else ""
        yield f"Names that occur more than once in the header were made unique: {named}{more}."
