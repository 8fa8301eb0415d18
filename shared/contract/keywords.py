"""The keywords of JSON Schema (draft 2020-12) and what may stand under each: the meta-schema as one table.

It is checked by hand because tools are read when the app loads, and jsonschema is too heavy for that.
`schemas.check_meta` asks jsonschema itself; a property test holds that both agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from shared.contract.findings import Findings, listed, nearest, shown, step
from shared.tool.spec import JsonObject

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
#: Keywords whose schemas describe the same value as the schema that they stand in.
IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_ONE_SCHEMA: Final = (
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_SCHEMA_MAPS: Final = ("$defs", "dependentSchemas", "patternProperties", "properties")
_SCHEMA_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_TEXTS: Final = ("$comment", "$ref", "contentEncoding", "contentMediaType", "description", "format", "title")
_NUMBERS: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum")
_COUNTS: Final = (
    "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength",
    "minProperties",
)  # fmt: skip
_FLAGS: Final = ("deprecated", "readOnly", "uniqueItems", "writeOnly")
#: Legal in JSON Schema, but what they point at would move when the schema is published inside another one.
_NOT_USED: Final = (
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$schema",
    "$vocabulary",
)
_OLD: Final = {
    "additionalItems": "write 'items' beside 'prefixItems'",
    "definitions": "write '$defs'",
    "dependencies": "write 'dependentRequired' or 'dependentSchemas'",
    "nullable": "write the type as a list with 'null' in it",
    "optional": "leave the name out of 'required'",
}


def check_node(node: JsonObject, path: str, found: Findings) -> None:
    """What is wrong with a schema itself, without the schemas in it."""
    for keyword, value in node.items():
        place = step(path, keyword)
        check = _CHECKS.get(keyword)
        if check is not None:
            check(value, place, found)
        elif keyword in _NOT_USED:
            found.error(place, "is not supported in a contract", "write '$ref' to '#/$defs/…' instead")
        elif not keyword.startswith("x-"):
            hint = _OLD.get(keyword) or nearest(keyword, _CHECKS)
            found.warn(place, "is no keyword of JSON Schema and has no effect", hint)
    _check_enum_fits(node, path, found)


def children(node: JsonObject, path: str) -> Iterator[tuple[str, str, Any]]:
    """(keyword, JSON path, value) of every place in a schema where a schema stands."""
    for keyword, value in node.items():
        place = step(path, keyword)
        if keyword in _ONE_SCHEMA:
            yield keyword, place, value
        elif keyword in _SCHEMA_MAPS and isinstance(value, Mapping):
            for name, item in value.items():
                yield keyword, step(place, name), item
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            for index, item in enumerate(value):
                yield keyword, step(place, index), item


def is_keyword(name: str) -> bool:
    return name in _CHECKS or name in _NOT_USED or name in _OLD


def matches_type(kind: str, value: Any) -> bool:
    """Whether a JSON value is of a JSON Schema type."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    expected: dict[str, Any] = {
        "string": str, "number": int | float, "array": list, "object": dict, "null": type(None),
    }  # fmt: skip
    return kind in expected and isinstance(value, expected[kind])


def _check_enum_fits(node: JsonObject, path: str, found: Findings) -> None:
    """Members that the type beside them rules out."""
    kinds, members = node.get("type"), node.get("enum")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(members, list) or not isinstance(kinds, list) or not set(map(str, kinds)) <= set(TYPES):
        return
    for index, member in enumerate(members):
        if not any(matches_type(kind, member) for kind in kinds):
            text = f"can never be given: the type is {listed(kinds)}, and this is {shown(member)}"
            found.warn(step(step(path, "enum"), index), text)


def _one_schema(value: Any, path: str, found: Findings) -> None:
    if isinstance(value, bool | dict):
        return
    hint = "write 'prefixItems' for a schema per position" if isinstance(value, list) else ""
    found.error(path, f"must be a schema (an object, true or false), got {shown(value)}", hint)


def _schema_map(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, dict):
        found.error(path, f"must be an object of schemas, got {shown(value)}")
        return
    for name, item in value.items():
        # `true` is a schema too, but no description that an agent could read.
        if not isinstance(item, dict):
            found.error(step(path, name), f"must be an object, got {shown(item)}", "write {} for any value")
        if path.endswith(".patternProperties"):
            _pattern(name, step(path, name), found)


def _schema_list(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, list) or not value:
        found.error(path, f"must be a list of at least one schema, got {_or_empty(value)}")
        return
    for index, item in enumerate(value):
        _one_schema(item, step(path, index), found)


def _text(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, str):
        found.error(path, f"must be a string, got {shown(value)}")


def _pattern(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, str):
        found.error(path, f"must be a string, got {shown(value)}")
        return
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        found.error(path, f"is no regular expression that can be used: {error}")


def _number(value: Any, path: str, found: Findings) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        found.error(path, f"must be a number, got {shown(value)}")


def _multiple(value: Any, path: str, found: Findings) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        found.error(path, f"must be a number above 0, got {shown(value)}")


def _count(value: Any, path: str, found: Findings) -> None:
    whole = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value) and value.is_integer())
    if isinstance(value, bool) or not whole or value < 0:
        found.error(path, f"must be a whole number of 0 or more, got {shown(value)}")


def _flag(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, bool):
        found.error(path, f"must be true or false, got {shown(value)}")


def _names(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, list):
        hint = "name the property in the list of its parent" if isinstance(value, bool) else ""
        found.error(path, f"must be a list of property names, got {shown(value)}", hint)
        return
    seen: set[str] = set()
    for index, name in enumerate(value):
        if not isinstance(name, str):
            found.error(step(path, index), f"must be a property's name, got {shown(name)}")
        elif name in seen:
            found.error(step(path, index), f"stands twice: '{name[:80]}'")
        else:
            seen.add(name)


def _name_lists(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, dict):
        found.error(path, f"must be an object of lists of property names, got {shown(value)}")
        return
    for name, item in value.items():
        _names(item, step(path, name), found)


def _type(value: Any, path: str, found: Findings) -> None:
    if isinstance(value, list):
        if not value:
            found.error(path, "must not be empty", f"legal are {listed(TYPES)}")
        for index, item in enumerate(value):
            _type_name(item, step(path, index), found)
        if len(value) > len({str(item) for item in value}):
            found.error(path, "names a type twice")
    else:
        _type_name(value, path, found)


def _type_name(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, str):
        found.error(path, f"must be a string, one of {listed(TYPES)}, got {shown(value)}")
    elif value not in TYPES:
        hint = nearest(value, TYPES)
        if value.lower() in ("date", "date-time", "datetime", "uuid", "uri", "email", "time"):
            hint = "write type 'string' with a 'format'"
        found.error(path, f"must be one of {listed(TYPES)}, got {shown(value)}", hint)


def _enum(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, list) or not value:
        found.error(path, f"must be a list of at least one value, got {_or_empty(value)}")


def _any_list(value: Any, path: str, found: Findings) -> None:
    if not isinstance(value, list):
        found.error(path, f"must be a list, got {shown(value)}")


def _anything(value: Any, path: str, found: Findings) -> None:
    return None


def _or_empty(value: Any) -> str:
    return "an empty one" if value == [] else shown(value)


type _Check = Callable[[Any, str, Findings], None]

_CHECKS: Final[dict[str, _Check]] = {
    **dict.fromkeys(_ONE_SCHEMA, _one_schema),
    **dict.fromkeys(_SCHEMA_MAPS, _schema_map),
    **dict.fromkeys(_SCHEMA_LISTS, _schema_list),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_COUNTS, _count),
    **dict.fromkeys(_FLAGS, _flag),
    "const": _anything,
    "default": _anything,
    "dependentRequired": _name_lists,
    "enum": _enum,
    "examples": _any_list,
    "multipleOf": _multiple,
    "pattern": _pattern,
    "required": _names,
    "type": _type,
}
