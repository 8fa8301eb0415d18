"""What the benchmarks share: interleaved rounds, medians, one JSON line a result."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence


def report(name: str, **figures: object) -> None:
    """Prints one JSON line. Figures are ratios where they claim anything; absolutes are for orientation."""
    print(json.dumps({"benchmark": name, **figures}), flush=True)


def median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def ratios(rounds: Sequence[Mapping[str, float]], one: str, other: str) -> float:
    """The median over the rounds of `one` divided by `other`, pair by pair: a drift of the machine cancels."""
    return median([figures[one] / figures[other] for figures in rounds])
