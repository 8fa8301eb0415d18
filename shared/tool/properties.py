"""`tool_properties`: the explicit list or mapping of the Functions libraries, beside or instead of annotations.

    [{"propertyName": "city", "propertyType": "string", "description": "…",
      "isRequired": True, "isArray": False, "enumValues": ["a", "b"]}]
    {"city": {"propertyType": "string", …}}          the same as a mapping
    '[…]'                                            the list as JSON text, as it goes over the wire

`isRequired` and `isArray` left out mean False for a tool that takes its arguments as one dict, and what the
parameter says for a tool with parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from shared.text import shape_of
from shared.tool.binding import ENVELOPE_KEY, flat_properties
from shared.tool.json_form import dumps
from shared.tool.spec import JsonObject
from shared.tool.validation import SchemaCheck, kind_of

TYPES: Final = ("string", "integer", "number", "boolean", "object")
_KEYS: Final = ("propertyName", "propertyType", "description", "isRequired", "isArray", "enumValues")


@dataclass(frozen=True, slots=True)
class ToolProperty:
    """One explicit property. None: not said."""

    name: str
    type: str
    description: str = ""
    required: bool | None = None
    is_array: bool | None = None
    enum: tuple[Any, ...] = ()

    def to_schema(self) -> JsonObject:
        item: JsonObject = {"type": self.type}
        if self.enum:
            item["enum"] = list(self.enum)
        schema: JsonObject = {"type": "array", "items": item} if self.is_array else item
        return {**schema, "description": self.description} if self.description else schema


def read_properties(given: Any, faults: list[str]) -> list[ToolProperty]:
    """The properties of any of the forms; what is wrong with them is added to `faults`."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            faults.append(f"tool_properties is no JSON: {error}")
            return []
    if given is None:
        return []
    entries: Iterable[tuple[str, Any]]
    if isinstance(given, Mapping):
        if given.get("type") == "object" and isinstance(given.get("properties"), Mapping):
            faults.append("tool_properties is a JSON Schema; describe properties, or annotate the parameters")
            return []
        entries = [(f"tool_properties['{name}']", _named(name, entry)) for name, entry in given.items()]
    elif isinstance(given, list | tuple):
        entries = [(f"tool_properties[{number}]", entry) for number, entry in enumerate(given)]
    else:
        faults.append(f"tool_properties must be a list or a mapping, not {type(given).__name__}")
        return []
    found = [entry for where, raw in entries if (entry := _read(where, raw, faults)) is not None]
    names = [entry.name for entry in found]
    faults += [
        f"tool_properties: '{name}' stands there twice"
        for name in sorted({n for n in names if names.count(n) > 1})
    ]
    return found


def _named(name: str, entry: Any) -> Any:
    return {"propertyName": name, **entry} if isinstance(entry, Mapping) else entry


def _read(where: str, raw: Any, faults: list[str]) -> ToolProperty | None:
    before = len(faults)
    if not isinstance(raw, Mapping):
        faults.append(f"{where} must be a mapping, not {type(raw).__name__}")
        return None
    faults += [f"{where}: unknown key '{key}'; known are {', '.join(_KEYS)}" for key in raw if key not in _KEYS]
    name, kind = raw.get("propertyName"), raw.get("propertyType")
    if not isinstance(name, str) or not name:
        faults.append(f"{where}: propertyName must be a non-empty text, not {shape_of(name)}")
    elif name == ENVELOPE_KEY:
        faults.append(f"{where}: '{name}' is the name of the call's own options; choose another")
    if not isinstance(raw.get("description"), str | None):
        faults.append(f"{where}: description must be a text, not {kind_of(raw['description'])}")
    if kind == "array":
        faults.append(f"{where}: propertyType must be the items' type, with isArray for an array")
    elif kind not in TYPES:
        faults.append(f"{where}: propertyType must be one of {', '.join(TYPES)}, got {kind!r}")
    for key in ("isRequired", "isArray"):
        if not isinstance(raw.get(key), bool | None):
            faults.append(f"{where}: {key} must be True or False, not {kind_of(raw[key])}")
    enum = raw.get("enumValues") or ()
    if not isinstance(enum, list | tuple):
        faults.append(f"{where}: enumValues must be a list, not {kind_of(enum)}")
    elif kind in TYPES:
        fits = SchemaCheck({"type": kind})
        faults += [
            f"{where}: enumValues[{number}] of '{name}' must be {kind}, as its propertyType says, "
            f"not {kind_of(value)}"
            for number, value in enumerate(enum)
            if fits.faults(value)
        ]
    if len(faults) > before:
        return None
    return ToolProperty(
        str(name),
        str(kind),
        raw.get("description") or "",
        raw.get("isRequired"),
        raw.get("isArray"),
        tuple(enum),
    )


def schema_of(properties: list[ToolProperty]) -> JsonObject:
    """The input schema of a tool that takes its arguments as one dict."""
    schema: JsonObject = {
        "type": "object",
        "properties": {entry.name: entry.to_schema() for entry in properties},
        "additionalProperties": False,
    }
    required = [entry.name for entry in properties if entry.required]
    return {**schema, "required": required} if required else schema


def merged(schema: JsonObject, properties: list[ToolProperty], faults: list[str]) -> JsonObject:
    """The parameters' schema with what the explicit properties add to it; disagreements are faults."""
    flat = {entry["propertyName"]: entry for entry in flat_properties(schema)}
    result = {**schema, "properties": dict(schema.get("properties", {}))}
    for entry in properties:
        inferred = flat.get(entry.name)
        if inferred is None:
            faults.append(
                f"tool_properties: '{entry.name}' is no parameter; those are {', '.join(flat) or 'none'}"
            )
            continue
        for said, found, what in (
            (entry.type, inferred["propertyType"], "propertyType"),
            (entry.is_array, inferred["isArray"], "isArray"),
            (entry.required, inferred["isRequired"], "isRequired"),
        ):
            if said is not None and said != found:
                faults.append(f"tool_properties: '{entry.name}' says {what} {said}, its annotation {found}")
        published = dict(result["properties"][entry.name])
        if entry.description:
            published["description"] = entry.description
        if entry.enum:
            published = _with_enum(published, entry, inferred, faults)
        result["properties"][entry.name] = published
    return result


def _with_enum(
    published: JsonObject, entry: ToolProperty, inferred: JsonObject, faults: list[str]
) -> JsonObject:
    """The parameter's schema with the explicit values, which its own and its default must agree with."""
    values = list(entry.enum)
    default = published.get("default")
    fits = SchemaCheck({"enum": values})
    given = default if inferred["isArray"] and isinstance(default, list) else [default]
    if any(value is not None and fits.faults(value) for value in given):
        faults.append(f"tool_properties: '{entry.name}' has a default that is none of its enumValues")
    if "enumValues" in inferred:
        if inferred["enumValues"] != [value if isinstance(value, str) else dumps(value) for value in values]:
            faults.append(f"tool_properties: '{entry.name}' lists other enumValues than its annotation")
        return published
    if inferred["isArray"] and "items" in published:
        return {**published, "items": {**published["items"], "enum": values}}
    return {**published, "enum": values}
