"""What a text does not say: its delimiter, and whether its first row is a header. Both are decided on a sample.

The rules are plain enough to predict, which `csv.Sniffer` is not:

* delimiter: of comma, semicolon, tab and pipe, the one with which most rows have the same number of cells, at
  least two. Where two are equal, the rarer in ordinary text wins (tab, semicolon, pipe, comma).
* header: each column votes. A number, date or boolean in a column of its own kind says "data"; a text above a
  column of numbers, dates or booleans says "header". Without any vote (all columns are text) the first row is a
  header when its cells are filled, different from each other, and do not occur again below.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import Final

from shared.tool import ToolError
from tools.csv_profile.kinds import NULL_WORDS, common_type, parse_word
from tools.csv_profile.model import ColumnType
from tools.csv_profile.reading import MAX_RECORD, Dialect, Row, is_blank

SAMPLE: Final = 1 << 16
"""Characters that are looked at."""

SAMPLE_ROWS: Final = 200
"""Rows that are looked at, at most."""

_CANDIDATES: Final = ("\t", ";", "|", ",")
_INK: Final = re.compile(r"\S")
_YEARS: Final = range(1800, 2200)
_NUMERIC: Final = {ColumnType.INTEGER, ColumnType.NUMBER}


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The dialect, the first rows that are not blank, and whether the delimiter occurs in them."""

    dialect: Dialect
    rows: Sequence[Row]
    found: bool


def checked_delimiter(delimiter: str | None) -> str | None:
    """`delimiter` as one character ("\\\\t" in two characters means a tab). ToolError: it cannot be one."""
    if delimiter is None:
        return None
    if delimiter == "\\t":
        return "\t"
    if len(delimiter) != 1:
        found = f"{len(delimiter):,} characters" if delimiter else "an empty text"
        raise ToolError(
            f"delimiter is {found}; it must be exactly one character, such as ',' ';' '|' or a tab."
        )
    if delimiter in '"\r\n\0' or "\ud800" <= delimiter <= "\udfff":
        raise ToolError(
            f"delimiter is {delimiter!r}; it must be one character other than a quote, a line end, NUL or a "
            "surrogate."
        )
    return delimiter


def sniff(text: str, start: int, delimiter: str | None) -> Sniffed:
    """The dialect of `text` from `start` on; a `delimiter` that is given is taken as it is.

    `rows` is empty when not even the first record can be read.
    """
    if first := _INK.search(text, start):  # a text may begin with any number of blank lines
        start = max(start, text.rfind("\n", start, first.start()) + 1)
    # The larger sample is for a first record that does not fit in the smaller one.
    for size in (SAMPLE, 2 * MAX_RECORD):
        sample = text[start : start + size]
        whole = start + size >= len(text)
        sniffed = _sniff_sample(sample, delimiter, whole=whole)
        if whole or len(sniffed.rows) > 1:
            break
    return sniffed


def _sniff_sample(sample: str, delimiter: str | None, *, whole: bool) -> Sniffed:
    best: tuple[float, int] = (0.0, 0)
    chosen: Sniffed | None = None
    for candidate in _CANDIDATES if delimiter is None else (delimiter,):
        for skip in (False, True):
            if skip and candidate == " ":
                continue  # the csv module refuses it: the delimiter itself would be skipped
            dialect = Dialect(candidate, skip)
            rows = _sample_rows(sample, dialect, whole=whole)
            score = _score(rows)
            if score > best:
                best, chosen = score, Sniffed(dialect, rows, found=True)
    if chosen is None:
        dialect = Dialect(delimiter or _CANDIDATES[-1])
        return Sniffed(dialect, _sample_rows(sample, dialect, whole=whole), found=False)
    return chosen


def _sample_rows(sample: str, dialect: Dialect, *, whole: bool) -> list[Row]:
    rows: list[Row] = []
    try:
        rows.extend(islice(dialect.reader(StringIO(sample, newline="")), SAMPLE_ROWS + 1))
    except csv.Error:
        whole = True  # the unreadable record is not among the rows
    if not whole and 1 < len(rows) <= SAMPLE_ROWS:
        rows.pop()  # the sample ends in the middle of it
    width = max(map(len, rows), default=0)
    return [row for row in rows[:SAMPLE_ROWS] if not is_blank(row, width)]


def _score(rows: Sequence[Row]) -> tuple[float, int]:
    """The share of rows with the usual number of cells, and minus the cells whose quote opened nothing."""
    if not rows:
        return (0.0, 0)
    width, usual = _usual_width(rows)
    if width < 2:
        return (0.0, 0)
    stray = sum(cell.startswith(' "') for row in rows for cell in row)
    return (usual / len(rows), -stray)


def _usual_width(rows: Sequence[Row]) -> tuple[int, int]:
    """The most frequent number of cells, and in how many rows."""
    return Counter(map(len, rows)).most_common(1)[0]


def has_header(rows: Sequence[Row]) -> tuple[bool, bool]:
    """Whether the first of `rows` (none blank, at least one) is a header, and whether the votes say so."""
    first, below = rows[0], rows[1:]
    if len(first) < _usual_width(rows)[0]:
        return False, True  # a title above the table, or a ragged row
    votes = sum(_vote(cell.strip(), _column(below, index)) for index, cell in enumerate(first))
    if votes:
        return votes > 0, True
    names = [cell.strip() for cell in first]
    if not below:
        return all(names) and all(parse_word(name).kind is ColumnType.TEXT for name in names), False
    repeated = any(name in _column(below, index) for index, name in enumerate(names))
    return all(names) and len(set(names)) == len(names) and not repeated, False


def _column(rows: Sequence[Row], index: int) -> list[str]:
    """The values of a column without missing ones."""
    cells = [row[index].strip() for row in rows if index < len(row)]
    return [cell for cell in cells if cell and cell not in NULL_WORDS]


def _vote(cell: str, below: Sequence[str]) -> int:
    """1 for a header, -1 for data, 0 for no opinion."""
    if not cell or not below or cell in NULL_WORDS:
        return 0
    above = parse_word(cell).kind
    kind = common_type({parse_word(word).kind for word in below})
    if kind is ColumnType.TEXT:
        # A number above text says data, unless it is a year, which names a column of a wide table.
        return 0 if above is ColumnType.TEXT or _is_year(cell) else -1
    if above is ColumnType.TEXT:
        return 1
    if _is_year(cell) and not all(map(_is_year, below)):
        return 0
    return -1 if above is kind or {above, kind} <= _NUMERIC else 0


def _is_year(cell: str) -> bool:
    return len(cell) == 4 and cell.isdecimal() and int(cell) in _YEARS
