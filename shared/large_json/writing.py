"""Writes large JSON in parts, each by the library's C code: what is small goes together with its neighbours.

How often the same value is looked at for its size is bounded by what has been written: where large containers
lie within each other by the hundred, again and again, the rest of such a value is written at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

#: Characters that one call of C code writes, about.
PIECE: Final = 32 * 1024
#: Characters of a number, and of the marks around any value, about.
_OF_ANY: Final = 4
#: Values larger than a piece that may be looked at: for each piece that was written, and before the first one.
_LOOKS: Final = 4
_LOOKS_AT_FIRST: Final = 128
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def written(value: Any) -> Iterator[str]:
    """The parts of a value's JSON: compact, and not only ASCII."""
    writer = _Writer()
    for part in writer.parts(value, _weight(value)):
        writer.size += len(part)
        yield part


class _Writer:
    """Writes one value. `size`: characters that have been written."""

    def __init__(self) -> None:
        self.size = 0
        self._looks = 0

    def parts(self, value: Any, weight: int) -> Iterator[str]:
        """The parts of one value within it."""
        self._looks += weight > PIECE
        may_look = self._looks <= _LOOKS_AT_FIRST + _LOOKS * self.size // PIECE
        if not value or not isinstance(value, str | dict | list) or weight <= PIECE:
            yield _encode(value)
        elif isinstance(value, str):
            yield '"'
            for start in range(0, len(value), PIECE):
                yield _encode(value[start : start + PIECE])[1:-1]
            yield '"'
        elif not may_look:
            yield _encode(value)
        elif isinstance(value, dict):
            yield from self._members(value)
        else:
            yield from self._items(value)

    def _members(self, value: dict[str, Any]) -> Iterator[str]:
        before, together, weight = "{", dict[str, Any](), 0
        for name, item in value.items():
            own = len(name) + (of_item := _weight(item))
            if weight + own > PIECE and together:
                yield before + _encode(together)[1:-1]
                before, together, weight = ",", {}, 0
            if own > PIECE:
                yield f"{before}{_encode(name)}:"
                yield from self.parts(item, of_item)
                before = ","
            else:
                together[name] = item
                weight += own
        yield (before + _encode(together)[1:-1] if together else "") + "}"

    def _items(self, value: list[Any]) -> Iterator[str]:
        before, together, weight = "[", list[Any](), 0
        for item in value:
            own = _weight(item)
            if weight + own > PIECE and together:
                yield before + _encode(together)[1:-1]
                before, together, weight = ",", [], 0
            if own > PIECE:
                yield before
                yield from self.parts(item, own)
                before = ","
            else:
                together.append(item)
                weight += own
        yield (before + _encode(together)[1:-1] if together else "") + "]"


def _weight(value: Any) -> int:
    """About how many characters its JSON has. What has more than a piece is not looked at to its end."""
    found = 0
    waiting = [value]
    while waiting and found <= PIECE:
        item = waiting.pop()
        if isinstance(item, str):
            found += len(item)
        elif isinstance(item, list | dict) and len(item) > PIECE:
            return len(item)
        elif isinstance(item, dict):
            found += sum(map(len, item))
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        found += _OF_ANY
    return found
