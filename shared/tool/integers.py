"""JSON knows one kind of number: where a schema asks for an integer, 5.0 arrives as 5, as by annotations.

For tools that take their arguments as one object. References are followed into the root's `$defs`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from shared.tool.spec import JsonObject

_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_DEFS: Final = "#/$defs/"


def integers_of(schema: JsonObject) -> Callable[[JsonObject], JsonObject]:
    """The way from arguments that fit a schema to a copy of them with integers where they are asked for."""
    if '"integer"' not in json.dumps(schema):
        return dict
    return lambda arguments: _made(arguments, [schema], schema)


def _made(value: Any, schemas: list[Any], root: JsonObject) -> Any:
    """The value, described by all of the schemas."""
    if not isinstance(value, float | dict | list):
        return value
    asked = [part for schema in schemas for part in _applied(schema, root, frozenset())]
    if isinstance(value, float):
        return int(value) if value.is_integer() and any(map(_is_integer, asked)) else value
    if isinstance(value, dict):
        return {name: _made(item, [*_of_field(name, asked)], root) for name, item in value.items()}
    return [_made(item, [*_of_item(index, asked)], root) for index, item in enumerate(value)]


def _applied(schema: Any, root: JsonObject, seen: frozenset[str]) -> Iterator[JsonObject]:
    """A schema, and those in it that describe the same value."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in _IN_PLACE:
        for part in schema.get(keyword, ()):
            yield from _applied(part, root, seen)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_DEFS) and reference not in seen:
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        yield from _applied(target, root, seen | {reference})


def _is_integer(schema: JsonObject) -> bool:
    kinds = schema.get("type")
    return kinds == "integer" or (isinstance(kinds, list) and "integer" in kinds)


def _of_field(name: str, schemas: list[JsonObject]) -> Iterator[Any]:
    for schema in schemas:
        named = [schema["properties"][name]] if name in schema.get("properties", ()) else []
        named += [part for key, part in schema.get("patternProperties", {}).items() if re.search(key, name)]
        yield from named or [schema.get("additionalProperties")]


def _of_item(index: int, schemas: list[JsonObject]) -> Iterator[Any]:
    for schema in schemas:
        first = schema.get("prefixItems", ())
        yield first[index] if index < len(first) else schema.get("items")
