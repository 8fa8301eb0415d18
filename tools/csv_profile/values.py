"""How often each value of a column occurs, in bounded memory.

Up to `cap` different values everything is exact. Beyond that

* the number of different values is estimated by adaptive sampling (Wegman's method: keep the hashes below a
  threshold, halve the threshold when there are too many). With k hashes kept the standard error is about
  1.2/sqrt(k): 2% for 4,096;
* the counts are a Misra-Gries summary: all counts lose the same amount when the table is full, and those that
  reach zero go. A kept count is a lower bound, and every value more frequent than the total loss is kept.

Both depend on the data alone, not on a random seed or on Python's randomised `hash`.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Final
from zlib import crc32

KEY_LIMIT: Final = 64
"""Characters of a value that are kept as they are; a longer one is kept as its beginning and a digest."""

_SHOWN: Final = 48
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_SPACE: Final = 1 << 32
_MAX_HASHES: Final = 4096


def key_of(value: str) -> str:
    """The text under which a value is counted: itself, or a beginning and a 64-bit digest when it is long."""
    if len(value) <= KEY_LIMIT:
        return value
    digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{value[:_SHOWN]}…{digest}"


def shown(key: str) -> str:
    """A key as a reader should see it: without the digest, and with nothing that UTF-8 cannot carry."""
    return printable(key if len(key) <= KEY_LIMIT else key[: _SHOWN + 1])


def printable(text: str) -> str:
    """`text` with U+FFFD in place of unpaired surrogates, which no JSON text in UTF-8 can hold."""
    return _SURROGATES.sub("\ufffd", text)


def add_weighted[K](counter: Counter[K], keys: Collection[K], weights: Iterable[int]) -> None:
    """Add to `counter` each of `keys` as often as its weight, which is at least 1, says.

    Counting runs in C, merging two counters does not, and where there are many keys most weights are 1.
    """
    counter.update(iter(keys))
    for key, weight in zip(keys, weights, strict=True):
        if weight > 1:
            counter[key] += weight - 1


class DistinctSketch:
    """An estimate of how many different values were added, from at most `size` 32-bit hashes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._threshold = _SPACE
        self._hashes: set[int] = set()

    def add(self, values: Collection[str]) -> None:
        """Take note of `values`."""
        try:
            encoded = list(map(str.encode, values))
        except UnicodeEncodeError:
            encoded = [value.encode("utf-8", "surrogatepass") for value in values]
        threshold = self._threshold
        # A CRC is linear, so that ids which count up may share its high bits in patterns; the multiplication
        # (by the golden ratio, after Knuth) breaks them up.
        self._hashes |= {h for crc in map(crc32, encoded) if (h := crc * 0x9E3779B1 & 0xFFFFFFFF) < threshold}
        while len(self._hashes) > self._size:
            self._threshold >>= 1
            self._hashes = {h for h in self._hashes if h < self._threshold}

    def estimate(self) -> int:
        """Different values, with the collisions of a 32-bit hash allowed for."""
        occupied = len(self._hashes) * (_SPACE / self._threshold)
        return round(-_SPACE * math.log1p(-min(occupied, _SPACE - 1) / _SPACE))


class ValueTally:
    """Counts of the values of one column: at most `cap` kept at the end of each `add`."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._counts: Counter[str] = Counter()
        self._sketch: DistinctSketch | None = None
        self._cells = 0

    @property
    def exact(self) -> bool:
        """Whether every different value is known with its count."""
        return self._sketch is None

    @property
    def distinct(self) -> int:
        """Different values so far; an estimate when not `exact`."""
        if self._sketch is None:
            return len(self._counts)
        return min(max(self._sketch.estimate(), len(self._counts)), self._cells)

    def add(self, counts: Counter[str], longest: int) -> None:
        """Add the counts of a batch; `longest` is the length in characters of its longest value."""
        self._cells += counts.total()
        if longest > KEY_LIMIT:
            shortened: Counter[str] = Counter()
            for value, count in counts.items():
                shortened[key_of(value)] += count
            counts = shortened
        add_weighted(self._counts, counts, counts.values())
        if self._sketch is not None:
            self._sketch.add(counts)
        if len(self._counts) > self._cap:
            if self._sketch is None:
                self._sketch = DistinctSketch(min(_MAX_HASHES, self._cap))
                self._sketch.add(self._counts)
            self._shrink()

    def _shrink(self) -> None:
        # Down to half of the cap, so that a column of unique values is not shrunk again after every batch.
        loss = sorted(self._counts.values(), reverse=True)[self._cap // 2]
        self._counts = Counter({value: count - loss for value, count in self._counts.items() if count > loss})

    def top(self, n: int) -> list[tuple[str, int]]:
        """The `n` most frequent keys, ties in the order of their text."""
        return heapq.nsmallest(n, self._counts.items(), key=lambda item: (-item[1], item[0]))
