"""Writes large JSON in parts, each by the library's C code: what is small goes together with its neighbours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

#: Characters that one call of C code writes, about.
PIECE: Final = 32 * 1024
#: Characters of a number, and of the marks around any value, about.
_OF_ANY: Final = 4
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def written(value: Any) -> Iterator[str]:
    """The parts of a value's JSON: compact, and not only ASCII."""
    if not value or not isinstance(value, str | dict | list) or _weight(value) <= PIECE:
        yield _encode(value)
    elif isinstance(value, str):
        yield '"'
        for start in range(0, len(value), PIECE):
            yield _encode(value[start : start + PIECE])[1:-1]
        yield '"'
    elif isinstance(value, dict):
        yield from _members(value)
    else:
        yield from _items(value)


def _members(value: dict[str, Any]) -> Iterator[str]:
    before, together, weight = "{", dict[str, Any](), 0
    for name, item in value.items():
        own = len(name) + _weight(item)
        if weight + own > PIECE and together:
            yield before + _encode(together)[1:-1]
            before, together, weight = ",", {}, 0
        if own > PIECE:
            yield f"{before}{_encode(name)}:"
            yield from written(item)
            before = ","
        else:
            together[name] = item
            weight += own
    yield (before + _encode(together)[1:-1] if together else "") + "}"


def _items(value: list[Any]) -> Iterator[str]:
    before, together, weight = "[", list[Any](), 0
    for item in value:
        own = _weight(item)
        if weight + own > PIECE and together:
            yield before + _encode(together)[1:-1]
            before, together, weight = ",", [], 0
        if own > PIECE:
            yield before
            yield from written(item)
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
