"""The JSON form of what a tool returned: one documented form for every Python type.

    str, bool, int, None          themselves; integers of any size keep every digit
    float                         itself; NaN and infinities, which JSON has not, become null
    dict, Mapping                 an object; keys become texts as JSON writes them
    list, tuple                   an array
    set, frozenset                an array, sorted
    bytes, bytearray, memoryview  a base64 text
    Enum                          its value's form
    dataclass                     an object of its fields
    pydantic model                what its own serializer says (by alias); bytes that are no UTF-8: base64
    datetime, date, time          ISO 8601;  timedelta: ISO 8601 duration
    Decimal, UUID, Path, URL, …   a text, as pydantic writes them

Anything else has none: `ResultError`. Lone surrogates, which no encoding can carry, become U+FFFD in `dumps`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
from collections.abc import Mapping
from typing import Any

from shared.errors import ResultError
from shared.text import clean_text
from shared.tool.content import McpToolResponse, is_block

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """Compact JSON text of JSON data, always encodable as UTF-8."""
    try:
        return clean_text(_encode(value))
    except ValueError as error:
        raise ResultError(f"the result cannot be written as JSON: {error}") from None


def to_json(value: Any) -> Any:
    """The value as JSON data. Raises `ResultError` that says where and what has no JSON form."""
    try:
        return _form(value)
    except RecursionError:
        raise ResultError("the result refers to itself, or is nested too deeply") from None


def _form(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is dict:
        return {(key if type(key) is str else _key(key)): _form(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_form(item) for item in value]
    return _other_form(value)


def _other_form(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return _form(value.value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, set | frozenset):
        return _sorted([_form(item) for item in value])
    if isinstance(value, Mapping):
        return {_key(key): _form(item) for key, item in value.items()}
    if is_block(value) or isinstance(value, McpToolResponse):
        raise ResultError(
            f"a {type(value).__name__} stands inside other data; return blocks by themselves, in a list, or "
            "as the content of an McpToolResponse"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _form(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_form(item) for item in value]
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return _form(plain(value))
    return _pydantic_form(value)


def _pydantic_form(value: Any) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        # Its output once more: numbers that JSON has not pass through it inside models.
        return _form(to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="null"))
    except UnicodeDecodeError:
        # A model writes its bytes as UTF-8 unless it says otherwise; these are none, so they become base64.
        return _form(value.model_dump(by_alias=True))
    except (PydanticSerializationError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultError(f"the result cannot be written as JSON: {reason}") from error


def _key(key: Any) -> str:
    form = _form(key)
    if isinstance(form, str):
        return form
    if form is None or isinstance(form, bool | int | float):
        return _encode(form)
    raise ResultError(f"the result has a {type(key).__name__} as a key; keys must be texts")


def _sorted(items: list[Any]) -> list[Any]:
    """In a fixed order, so that equal sets give equal answers."""
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=_encode)
