"""What a single cell is: the rules that tell integers, numbers, booleans, dates and text apart.

A cell is judged without the white space around it:

* integer: at most 308 ASCII digits with an optional sign. A leading zero makes an id ("007"), hence text.
* number: an integer with a decimal point, an exponent or both, and finite as a double. No thousands
  separators, no decimal comma; "NaN" and "inf" are no numbers.
* boolean: true, false, yes, no in any case.
* date: YYYY-MM-DD. datetime: a date, "T" or a space, HH:MM[:SS[.ffffff]], and optionally Z or ±HH:MM. Both must
  exist in the calendar. Other orders of day and month are ambiguous, hence text.
* text: everything else.

Whole batches of cells are tried first, with one regular expression over the joined cells and one C-level
conversion; only a batch of several kinds is taken cell by cell.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tools.csv_profile.model import ColumnType

# Words that say "no value" in a column that is otherwise not text. In a text column they are values:
# "NA" is Namibia, and "None" can be a name.
NULL_WORDS: Final = frozenset({"NA", "N/A", "#N/A", "NaN", "nan", "NULL", "Null", "null", "None"})

_BOOLEANS: Final = frozenset({"true", "false", "yes", "no"})
_TYPED_START: Final = frozenset("+-.0123456789tTfFyYnN")

# Every repeat is possessive or ends at a character that it cannot contain, so that no text makes a match slow.
_DIGITS: Final = r"(?:0|[1-9][0-9]{0,307}+)"
_INTEGER: Final = rf"[+-]?+{_DIGITS}"
_NUMBER: Final = rf"[+-]?+(?:{_DIGITS}(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]{{1,5}}+)?+"
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATETIME: Final = (
    _DATE + r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?+)?+(?:Z|[+-][0-9]{2}:?+[0-9]{2})?+"
)

type Number = int | float


@dataclass(slots=True)
class Cells:
    """Cells of one kind with their meaning.

    `numbers` is filled for integers and numbers, `moments` (all with a zone, so that they compare; those
    written without one are taken as UTC) for dates and datetimes; both run parallel to the words parsed.
    """

    kind: ColumnType
    numbers: Sequence[Number] = ()
    moments: Sequence[datetime] = ()


def parse_integers(words: Sequence[str]) -> Cells:
    """Exact integers of any size. ValueError: never for words that match the rule."""
    return Cells(ColumnType.INTEGER, numbers=list(map(int, words)))


def parse_numbers(words: Sequence[str]) -> Cells:
    """Doubles. ValueError: one of them is too large for a double."""
    numbers = list(map(float, words))
    if not all(map(math.isfinite, numbers)):
        raise ValueError("beyond the range of a double")
    return Cells(ColumnType.NUMBER, numbers=numbers)


def _parse_moments(kind: ColumnType, words: Sequence[str]) -> Cells:
    moments = [
        moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in map(datetime.fromisoformat, words)
    ]
    return Cells(kind, moments=moments)


def parse_dates(words: Sequence[str]) -> Cells:
    """Midnights in UTC. ValueError: no such day."""
    return _parse_moments(ColumnType.DATE, words)


def parse_datetimes(words: Sequence[str]) -> Cells:
    """Moments with a zone. ValueError: no such day or time."""
    return _parse_moments(ColumnType.DATETIME, words)


# Order matters: every integer also matches the rule for numbers.
_RULES: Final[tuple[tuple[str, Callable[[Sequence[str]], Cells]], ...]] = (
    (_INTEGER, parse_integers),
    (_NUMBER, parse_numbers),
    (_DATE, parse_dates),
    (_DATETIME, parse_datetimes),
)
_SINGLE: Final = tuple((re.compile(pattern), parse) for pattern, parse in _RULES)
_BATCH: Final = tuple((re.compile(rf"(?:{pattern}\n)*+"), parse) for pattern, parse in _RULES)


def is_plainly_text(word: str) -> bool:
    """Whether the first character of a stripped, non-empty cell says that it is text (most text does)."""
    return word[0] not in _TYPED_START


def parse_word(word: str) -> Cells:
    """The narrowest kind of one stripped, non-empty cell."""
    for pattern, parse in _SINGLE:
        if pattern.fullmatch(word):
            try:
                return parse((word,))
            except ValueError:
                return Cells(ColumnType.TEXT)
    return Cells(ColumnType.BOOLEAN if word.lower() in _BOOLEANS else ColumnType.TEXT)


def parse_batch(words: Sequence[str]) -> Cells | None:
    """All `words` (stripped, none empty) as one kind, or None when they must be taken one by one.

    In a batch of whole and decimal numbers all are numbers. A batch of text answers None: that its cells share
    no narrower kind says nothing about each of them.
    """
    joined = "\n".join(words) + "\n"
    for pattern, parse in _BATCH:
        if pattern.fullmatch(joined):
            try:
                return parse(words)
            except ValueError:  # a day that does not exist, or a cell that holds a line break
                return None
    if _BOOLEANS.issuperset(map(str.lower, words)):
        return Cells(ColumnType.BOOLEAN)
    return None


def common_type(kinds: set[ColumnType]) -> ColumnType:
    """The type of a column whose cells have these kinds."""
    match sorted(kinds):
        case []:
            return ColumnType.EMPTY
        case [single]:
            return single
        case [ColumnType.INTEGER, ColumnType.NUMBER]:
            return ColumnType.NUMBER
        case [ColumnType.DATE, ColumnType.DATETIME]:
            return ColumnType.DATETIME
        case _:
            return ColumnType.TEXT
