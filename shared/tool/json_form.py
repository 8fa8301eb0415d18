"""The JSON form of what a tool returned: one documented form for every Python type.

    str, bool, int, None          themselves; integers of any size keep every digit
    float                         itself; NaN and infinities, which JSON has not, become null
    dict, Mapping                 an object; keys become texts as JSON writes them, and must differ as texts
    list, tuple, deque            an array
    set, frozenset                an array, sorted
    bytes, bytearray, memoryview  a base64 text (RFC 4648, section 4), wherever they stand
    Enum                          its value's form
    dataclass                     an object of its fields, under their aliases where they have some
    pydantic model                what its own serializer says, by alias
    datetime, date, time          ISO 8601;  timedelta: ISO 8601 duration
    Decimal                       its text, every digit kept: 1.10, 1E+2, NaN
    UUID, Path, URL, IP address   a text, as pydantic writes them

Anything else has none: `ResultError`. Iterators have none either: to read one would use it up. Lone surrogates,
which no encoding can carry, become U+FFFD in `dumps`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from shared.errors import ResultError
from shared.text import clean_text
from shared.tool.content import McpToolResponse, is_block

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
#: pydantic would write these as a text of Python's own making.
_NO_FORM: Final = (complex, re.Pattern)


def dumps(value: Any) -> str:
    """Compact JSON text of JSON data, always encodable as UTF-8. Raises `ResultError`."""
    try:
        text = _encode(value)
    except ValueError as error:
        raise ResultError(f"the result cannot be written as JSON: {error}") from None
    clean = clean_text(text)
    if clean is not text:
        _check_clean_keys(value)
    return clean


def to_json(value: Any) -> Any:
    """The value as JSON data. Raises `ResultError` that says what has no JSON form."""
    try:
        return plain_form(value)
    except RecursionError:
        raise ResultError("the result refers to itself, or is nested too deeply") from None


def plain_form(value: Any) -> Any:
    """`to_json` for a part of a value. Raises `RecursionError` for one that holds itself."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        made = {(key if type(key) is str else _key(key)): plain_form(item) for key, item in value.items()}
        return made if len(made) == len(value) else _collided(value)
    if kind is list or kind is tuple:
        return [plain_form(item) for item in value]
    return _other_form(value)


def sorted_form(items: list[Any]) -> list[Any]:
    """JSON data of a set, in a fixed order, so that equal sets give equal answers."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=_encode)


def _other_form(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return plain_form(value.value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, set | frozenset):
        return sorted_form([plain_form(item) for item in value])
    if isinstance(value, Mapping):
        return plain_form(dict(value))
    if is_block(value) or isinstance(value, McpToolResponse):
        raise ResultError(
            f"a {type(value).__name__} stands inside other data; return blocks by themselves, in a list, or "
            "as the content of an McpToolResponse"
        )
    if isinstance(value, list | tuple | deque):
        return [plain_form(item) for item in value]
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return plain_form(plain(value))
    return _object_form(value)


def _object_form(value: Any) -> Any:
    """Of an instance of a class that is no scalar and no collection."""
    is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
    # Aliases and serializers are pydantic's: where nothing has loaded it, no class has any.
    if (is_dataclass and "pydantic" in sys.modules) or _is_pydantic(value):
        from shared.tool.writing import class_writer

        kind: Any = type(value)
        write = class_writer(kind)
        if write is not None:
            return write(value)
    if is_dataclass:
        return {item.name: plain_form(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Iterator | AsyncIterator):
        raise ResultError(
            f"the result is, or holds, an iterator ({type(value).__name__}), which can be read only once: "
            "return a list"
        )
    return _pydantic_form(value)


def _is_pydantic(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(type(value), "__pydantic_serializer__")


def _pydantic_form(value: Any) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if not isinstance(value, _NO_FORM):
        try:
            return plain_form(to_jsonable_python(value, by_alias=True))
        except (PydanticSerializationError, ValueError, TypeError) as error:
            if _is_pydantic(value):
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise ResultError(f"the result cannot be written as JSON: {reason}") from error
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise ResultError(
        f"the result cannot be written as JSON: a value of type {name} has no JSON form; return plain data, a "
        "dataclass or a pydantic model"
    )


def _key(key: Any) -> str:
    form = plain_form(key)
    if isinstance(form, str):
        return form
    if form is None or isinstance(form, bool | int | float):
        return _encode(form)
    raise ResultError(f"the result has a {type(key).__name__} as a key; keys must be texts")


def _collided(value: Mapping[Any, Any]) -> Any:
    """Raises `ResultError` that names the first key of a dict that is there twice once written."""
    seen: set[str] = set()
    for key in map(_key, value):
        if key in seen:
            raise ResultError(f"two keys of the result are both '{key[:80]}' once written as texts")
        seen.add(key)
    raise ResultError("the result was changed while it was written")


def _check_clean_keys(value: Any) -> None:
    """Raises `ResultError` for keys that differ in lone surrogates only, which are all written as U+FFFD."""
    if isinstance(value, dict):
        if len({clean_text(key) for key in value}) < len(value):
            raise ResultError("two keys of the result differ only in characters that cannot be written")
        for item in value.values():
            _check_clean_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_clean_keys(item)
