"""Streaming statistics of one column: batches of cells in, a `ColumnProfile` out.

Memory does not grow with the number of cells: a column keeps a bounded table of values (`values.py`), a bounded
histogram (`bins.py`) and a few numbers.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import chain, repeat
from operator import mul
from typing import Final

from tools.csv_profile.bins import Bins, Histogram
from tools.csv_profile.kinds import (
    NULL_WORDS,
    Cells,
    Number,
    common_type,
    is_plainly_text,
    parse_batch,
    parse_word,
)
from tools.csv_profile.model import ColumnProfile, ColumnType, TopValue
from tools.csv_profile.values import ValueTally, shown

TOP_VALUES: Final = 5
DISTINCT_PER_COLUMN: Final = 50_000
DISTINCT_PER_TABLE: Final = 200_000
"""Different values kept in one column and in all of them; beyond, `distinct` is an estimate."""

_SAFE_INTEGER: Final = 2**53 - 1
_NUMERIC: Final = frozenset({ColumnType.INTEGER, ColumnType.NUMBER})
_MOMENTS: Final = frozenset({ColumnType.DATE, ColumnType.DATETIME})


class NumericSummary:
    """Exact extremes and the mean of finite numbers.

    Integers are added exactly. Doubles are added with one rounding a batch, and the batches exactly.
    """

    def __init__(self) -> None:
        self.low: Number = math.inf
        self.high: Number = -math.inf
        self._total = Fraction(0)
        self._count = 0

    def add(self, numbers: Sequence[Number], weights: Sequence[int]) -> None:
        """Count each number as often as the parallel `weights` say; all are ints, or all are doubles."""
        self.low = min(self.low, min(numbers))
        self.high = max(self.high, max(numbers))
        self._total += _total(numbers, weights)
        self._count += sum(weights)

    @property
    def mean(self) -> float:
        """Sum over count. At least one number must have been added."""
        return float(self._total / self._count)


def _total(numbers: Sequence[Number], weights: Sequence[int]) -> Fraction:
    """The sum of a batch: exact for integers, correctly rounded (fsum) for doubles."""
    if isinstance(numbers[0], int):
        return Fraction(sum(map(mul, numbers, weights)))
    # Not the products with the weights: each would be rounded on its own.
    cells = chain.from_iterable(map(repeat, numbers, weights))
    try:
        return Fraction(math.fsum(cells))
    except OverflowError:  # the sum is beyond a double, although the mean is one
        exact = (Fraction(number) * weight for number, weight in zip(numbers, weights, strict=True))
        return sum(exact, Fraction(0))


@dataclass(slots=True)
class _Group:
    """Cells of a batch that are of one kind, as parallel lists (`numbers`, `moments`: of those kinds only)."""

    words: list[str] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)


class Column:
    """Everything that is remembered about one column."""

    def __init__(self, name: str, cap: int) -> None:
        self.name = name
        self._missing = 0
        self._kinds: Counter[ColumnType] = Counter()
        self._null_words: Counter[str] = Counter()
        self._tally = ValueTally(cap)
        self._shortest: float = math.inf
        self._longest = 0
        self._numbers = NumericSummary()
        self._bins: Bins | None = Bins()
        self._earliest: tuple[datetime, str] | None = None
        self._latest: tuple[datetime, str] | None = None

    def add(self, cells: Sequence[str]) -> None:
        """Take a batch of cells. Equal ones are looked at once, which makes columns of few values fast."""
        counts = Counter(map(str.strip, cells))
        self._missing += counts.pop("", 0)
        for word in counts.keys() & NULL_WORDS:
            self._null_words[word] += counts.pop(word)
        if not counts:
            return
        words = list(counts)
        lengths = list(map(len, words))
        longest = max(lengths)
        self._shortest = min(self._shortest, min(lengths))
        self._longest = max(self._longest, longest)
        self._tally.add(counts, longest)
        parsed = parse_batch(words)
        if parsed is not None:
            self._add_parsed(parsed, words, list(counts.values()))
        else:
            self._add_each(counts)

    def _add_each(self, counts: Counter[str]) -> None:
        total = counts.total()
        # Most cells of a text column are told by their first character: the loop below is for the others.
        unclear = [item for item in counts.items() if not is_plainly_text(item[0])]
        if plain := total - sum(count for _, count in unclear):
            self._kinds[ColumnType.TEXT] += plain
            self._bins = None
        groups: defaultdict[ColumnType, _Group] = defaultdict(_Group)
        for word, count in unclear:
            cell = parse_word(word)
            group = groups[cell.kind]
            group.words.append(word)
            group.weights.append(count)
            group.numbers.extend(cell.numbers)
            group.moments.extend(cell.moments)
        for kind, group in groups.items():
            self._add_parsed(Cells(kind, group.numbers, group.moments), group.words, group.weights)

    def _add_parsed(self, cells: Cells, words: Sequence[str], weights: Sequence[int]) -> None:
        self._kinds[cells.kind] += sum(weights)
        if cells.kind in _NUMERIC:
            self._numbers.add(cells.numbers, weights)
            if self._bins is not None:
                self._bins.add(cells.numbers, weights)
        else:
            self._bins = None  # one cell that is no number, and the column will never be drawn
        if cells.kind in _MOMENTS:
            earliest = min(zip(cells.moments, words, strict=True))
            latest = max(zip(cells.moments, words, strict=True))
            self._earliest = min(self._earliest or earliest, earliest)
            self._latest = max(self._latest or latest, latest)

    @property
    def type(self) -> ColumnType:
        """The type so far. A column of null words alone is text: nothing says that they are no values."""
        kind = common_type(set(self._kinds))
        return ColumnType.TEXT if kind is ColumnType.EMPTY and self._null_words else kind

    def histogram(self) -> Histogram | None:
        """The distribution of an integer or number column, None for other types."""
        if self._bins is None or self.type not in _NUMERIC:
            return None
        return self._bins.histogram(whole=self.type is ColumnType.INTEGER)

    def profile(self) -> ColumnProfile:
        """The result for this column."""
        kind = self.type
        if kind is ColumnType.TEXT:
            return self._text_profile()
        missing = self._missing + self._null_words.total()
        common = {"name": self.name, "type": kind, "missing": missing, "distinct": self._tally.distinct}
        common["distinct_exact"] = self._tally.exact
        if kind in _NUMERIC:
            low, high = self._numbers.low, self._numbers.high
            return ColumnProfile.model_validate(
                common | {"min": _number(low, kind), "max": _number(high, kind), "mean": self._numbers.mean}
            )
        if self._earliest and self._latest:
            return ColumnProfile.model_validate(common | {"min": self._earliest[1], "max": self._latest[1]})
        if kind is ColumnType.BOOLEAN:
            return ColumnProfile.model_validate(common | {"top": self._top(), "top_exact": True})
        return ColumnProfile.model_validate(common)

    def _text_profile(self) -> ColumnProfile:
        if self._null_words:  # in a column of text they are values like any other
            self._tally.add(self._null_words, 0)
            lengths = list(map(len, self._null_words))
            self._shortest, self._longest = min(self._shortest, *lengths), max(self._longest, *lengths)
            self._kinds[ColumnType.TEXT] += self._null_words.total()
            self._null_words = Counter()
        return ColumnProfile(
            name=self.name,
            type=ColumnType.TEXT,
            missing=self._missing,
            distinct=self._tally.distinct,
            distinct_exact=self._tally.exact,
            min_length=int(self._shortest),
            max_length=self._longest,
            top=self._top(),
            top_exact=self._tally.exact,
            mixed=self._mixed(),
        )

    def _top(self) -> list[TopValue]:
        return [TopValue(value=shown(key), count=count) for key, count in self._tally.top(TOP_VALUES)]

    def _mixed(self) -> dict[ColumnType, int] | None:
        kinds = dict(self._kinds)
        if ColumnType.NUMBER in kinds:  # a batch of both counts as numbers, so integers are not told apart here
            kinds[ColumnType.NUMBER] += kinds.pop(ColumnType.INTEGER, 0)
        if ColumnType.TEXT in kinds:  # among words, "No" is a word: Norway, nobelium
            kinds[ColumnType.TEXT] += kinds.pop(ColumnType.BOOLEAN, 0)
        return dict(sorted(kinds.items())) if len(kinds) > 1 else None


def _number(number: Number, kind: ColumnType) -> Number | str:
    """A double in a column of numbers, else an exact integer: as text where JSON readers would round it."""
    if kind is ColumnType.NUMBER:
        return float(number)
    return int(number) if abs(number) <= _SAFE_INTEGER else str(number)
