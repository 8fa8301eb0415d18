"""A histogram in one pass and bounded memory whose result depends on the values only, not on their order.

Bins are as wide as a power of two and start at multiples of their width. The width is the smallest that
covers the range seen so far with at most `MAX_BINS` bins. When the range grows, neighbouring bins are merged,
which loses nothing because floor(floor(x / 2^a) / 2^b) = floor(x / 2^(a+b)). (One exception: a negative number
some 300 orders of magnitude smaller than the width may count as 0.)
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tools.csv_profile.kinds import Number
from tools.csv_profile.values import add_weighted

MAX_BINS: Final = 512
MAX_BARS: Final = 32

# 2^1000 and 2^-1000 are doubles with room to multiply; finer differences share a bin.
_FINEST: Final = -1000
# A double has 53 significant bits: bins finer than this part of the largest value would be empty.
_PRECISION: Final = 52


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of equally wide bars from the left; `width` is in units of the values."""

    counts: tuple[int, ...]
    width: float


class Bins:
    """Counts of numbers in at most `MAX_BINS` bins of width 2^exponent."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._exponent = _FINEST
        self._low = math.inf
        self._high = -math.inf

    def add(self, numbers: Sequence[Number], weights: Iterable[int]) -> None:
        """Count each of the finite, at least one `numbers` as often as the parallel `weights` say."""
        self._low = min(self._low, float(min(numbers)))
        self._high = max(self._high, float(max(numbers)))
        exponent = _exponent(self._low, self._high)
        if exponent > self._exponent:
            self._counts = _merged(self._counts, exponent - self._exponent)
            self._exponent = exponent
        scale = math.ldexp(1.0, -self._exponent)
        add_weighted(self._counts, [math.floor(number * scale) for number in numbers], weights)

    def histogram(self, *, whole: bool) -> Histogram:
        """At most `MAX_BARS` bars; with `whole` (a column of integers) none is narrower than 1."""
        shift = max(0, -self._exponent) if whole else 0
        low, high = min(self._counts), max(self._counts)
        while (high >> shift) - (low >> shift) >= MAX_BARS:
            shift += 1
        merged = _merged(self._counts, shift)
        bars = tuple(merged[index] for index in range(low >> shift, (high >> shift) + 1))
        return Histogram(bars, math.ldexp(1.0, self._exponent + shift))


def _exponent(low: float, high: float) -> int:
    """The smallest exponent whose bins cover low..high with at most `MAX_BINS`; a wider range never has a
    smaller one."""
    exponent = _FINEST
    if largest := max(abs(low), abs(high)):
        exponent = max(exponent, math.frexp(largest)[1] - _PRECISION)
    if half_range := high / 2 - low / 2:  # the full range of two doubles may be no double
        exponent = max(exponent, math.frexp(half_range)[1] - 10)  # 2^exponent <= range / 2^9: not yet too wide
    while _index(high, exponent) - _index(low, exponent) >= MAX_BINS:
        exponent += 1
    return exponent


def _index(number: float, exponent: int) -> int:
    return math.floor(number * math.ldexp(1.0, -exponent))


def _merged(counts: Counter[int], shift: int) -> Counter[int]:
    merged: Counter[int] = Counter()
    for index, count in counts.items():
        merged[index >> shift] += count
    return merged
