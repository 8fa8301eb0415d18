"""What a window's requests carry: one JSON object, bounded, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import azure.functions as func

from shared import large_json
from shared.errors import InputError
from shared.text import kind_of
from shared.tool.spec import JsonObject

JSON_TYPE: Final = "application/json"
#: Objects and arrays within each other: more is no data of a person's, and checks recurse.
MOST_DEPTH: Final = 100


class TooLargeError(InputError):
    code = "too_large"


class NotJsonError(InputError):
    """The request does not say that it is JSON: so a page of another site can send it without being asked."""

    code = "not_json"


def read(request: func.HttpRequest, fields: tuple[str, ...], most: int) -> JsonObject:
    """The body's object. `most`: bytes. Raises `InputError`, `TooLargeError` and `NotJsonError`."""
    kind, _, _ = request.headers.get("Content-Type", "").partition(";")
    if kind.strip().lower() != JSON_TYPE:
        raise NotJsonError(
            f"Content-Type: must be {JSON_TYPE}, and is {'another' if kind.strip() else 'missing'}"
        )
    body = request.get_body()
    if len(body) > most:
        raise TooLargeError(f"The body has {len(body)} bytes; at most {most} are taken")
    try:
        found = large_json.loads(body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError("body: is not JSON in UTF-8, or nested too deeply") from None
    if not isinstance(found, dict):
        raise InputError(f"body: expected object, got {kind_of(found)}")
    unknown = [name for name in found if name not in fields]
    if unknown:
        raise InputError(f"body: unknown field '{unknown[0][:80]}'; known are {', '.join(fields) or 'none'}")
    if any(depth > MOST_DEPTH for depth in _depths(found)):
        raise InputError(f"body: nested deeper than {MOST_DEPTH} levels")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _depths(value: Any) -> Iterator[int]:
    waiting: list[tuple[int, Any]] = [(1, value)]
    while waiting:
        depth, item = waiting.pop()
        yield depth
        if depth <= MOST_DEPTH:
            children = item.values() if isinstance(item, dict) else item
            waiting += [(depth + 1, child) for child in children if isinstance(child, dict | list)]
