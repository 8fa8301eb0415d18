"""Draws the distribution of a column as a PNG that a person can read."""

import math
import unicodedata
from collections.abc import Iterator
from typing import Final

from tools.csv_profile.bins import Histogram
from tools.csv_profile.canvas import GLYPH_HEIGHT, GLYPH_WIDTH, Canvas, text_width
from tools.csv_profile.model import ColumnProfile

WIDTH: Final = 720
HEIGHT: Final = 400

_PALETTE: Final = (
    (255, 255, 255),
    (38, 110, 184),
    (60, 64, 70),
    (226, 229, 234),
    (28, 30, 34),
    (100, 106, 114),
)
_BAR, _AXIS, _GRID, _TEXT, _QUIET = range(1, len(_PALETTE))
_SCALE: Final = 2
_LINE: Final = GLYPH_HEIGHT * _SCALE
_MARGIN: Final = 16
_TOP: Final = 72
_BOTTOM: Final = HEIGHT - 48


def draw(column: ColumnProfile, histogram: Histogram) -> bytes:
    """A PNG of `WIDTH` x `HEIGHT` pixels: bars over the range, counts on the left, min and max below."""
    canvas = Canvas(WIDTH, HEIGHT, _PALETTE)
    tallest = max(histogram.counts)
    ticks = list(_ticks(tallest))
    left = _MARGIN + max(text_width(_label(tick), _SCALE) for tick in ticks) + 10
    plot_width = WIDTH - _MARGIN - left
    plot_height = _BOTTOM - _TOP
    bar_height = plot_height * 19 // 20  # of the tallest

    _headings(canvas, column, histogram)
    for tick in ticks:
        y = _BOTTOM - tick * bar_height // tallest
        canvas.fill(left, y, plot_width, 1, _GRID)
        label = _label(tick)
        canvas.text(left - 8 - text_width(label, _SCALE), y - _LINE // 2, label, _QUIET, _SCALE)
    # A lone bar stands in the middle: across the whole plot it would not look like one.
    counts = histogram.counts if len(histogram.counts) > 1 else (0, *histogram.counts, 0)
    for index, count in enumerate(counts):
        x, end = left + index * plot_width // len(counts), left + (index + 1) * plot_width // len(counts)
        height = max(2, count * bar_height // tallest) if count else 0
        canvas.fill(x + 1, _BOTTOM - height, max(1, end - x - 2), height, _BAR)
    canvas.fill(left - 1, _TOP, 2, plot_height + 2, _AXIS)
    canvas.fill(left - 1, _BOTTOM, plot_width + 1, 2, _AXIS)
    canvas.fill(left - 1, _BOTTOM, 2, 8, _AXIS)
    canvas.fill(WIDTH - _MARGIN - 2, _BOTTOM, 2, 8, _AXIS)

    low, high = f"min {_label(column.min)}", f"max {_label(column.max)}"
    canvas.text(left, _BOTTOM + 14, low, _TEXT, _SCALE)
    canvas.text(WIDTH - _MARGIN - text_width(high, _SCALE), _BOTTOM + 14, high, _TEXT, _SCALE)
    return canvas.png()


def _headings(canvas: Canvas, column: ColumnProfile, histogram: Histogram) -> None:
    shown = sum(histogram.counts)
    missing = f", {column.missing:,} missing" if column.missing else ""
    facts = f"{shown:,} value{'s' if shown != 1 else ''}{missing}, each bar is {_label(histogram.width)} wide"
    canvas.text(_MARGIN, _MARGIN, _cut(column.name), _TEXT, _SCALE)
    canvas.text(_MARGIN, _MARGIN + _LINE + 8, _cut(facts), _QUIET, _SCALE)


def _cut(text: str) -> str:
    """As much of `text` as fits in a line, letters without their accents."""
    text = "".join(
        letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter)
    )
    most = (WIDTH - 2 * _MARGIN) // ((GLYPH_WIDTH + 1) * _SCALE)
    return text if len(text) <= most else text[: most - 3] + "..."


def _ticks(tallest: int) -> Iterator[int]:
    """0 and up to five round counts (1, 2 or 5 times a power of ten) apart from each other."""
    power = 10 ** max(0, math.floor(math.log10(tallest)) - 1)
    step = next(power * factor for factor in (1, 2, 5, 10, 20, 50) if tallest <= 5 * power * factor)
    yield from range(0, tallest + 1, step)


def _label(value: float | str | None) -> str:
    """A number in at most 13 characters or so."""
    if isinstance(value, str):
        value = int(value)  # an integer beyond 2^53
    if isinstance(value, int) and abs(value) < 10**9:
        return f"{value:,}"
    return f"{value or 0:.6g}"
