"""Makes what a server says of a tool publishable. Whatever had to be changed is told in a note.

A tool is published with an object at the root of its schemas (the host and 2025-11-25 clients know no other),
and only with schemas that can be checked without asking anybody else: nothing is ever fetched for a reference.
"""

from __future__ import annotations

from typing import Any, Final

from shared.errors import DeclarationError
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.meta_schema import refused
from shared.tool.promise import object_root
from shared.tool.references import reference_faults
from shared.tool.spec import JsonObject

_ANYTHING: Final[JsonObject] = {"type": "object"}


def input_schema(given: Any, notes: list[str]) -> JsonObject:
    """A schema for the arguments: what the server gave, else one that leaves the judgement to the server."""
    if not isinstance(given, dict):
        notes.append("input schema: it was no object; any arguments are passed on")
        return dict(_ANYTHING)
    schema = {"type": "object", **given}
    if isinstance(schema["type"], list) and "object" in schema["type"]:
        schema["type"] = "object"  # arguments always are one
    if schema["type"] != "object":
        notes.append("input schema: its root describes no object; any arguments are passed on")
        return dict(_ANYTHING)
    if not isinstance(schema.get("properties", {}), dict):
        notes.append("input schema: its properties are no object; any arguments are passed on")
        return dict(_ANYTHING)
    faults = _faults(schema)
    if faults:
        notes.append(f"input schema: it cannot be used, so the server alone checks arguments: {faults[0]}")
        names = [name for name in schema.get("properties", {}) if name != ENVELOPE_KEY]
        return {"type": "object", "properties": {name: {} for name in names}}
    if ENVELOPE_KEY in schema.get("properties", {}):
        notes.append(f"input schema: its own property {ENVELOPE_KEY} is hidden by the call options")
        schema["properties"] = {k: v for k, v in schema["properties"].items() if k != ENVELOPE_KEY}
        schema["required"] = [name for name in schema.get("required", ()) if name != ENVELOPE_KEY]
    return schema


def output_schema(given: Any, notes: list[str]) -> tuple[JsonObject | None, bool]:
    """(a schema for the structured content, whether it is put under `result`); None where none can be used."""
    if given is None:
        return None, False
    if not isinstance(given, dict):
        notes.append("output schema: left out, since it was no object")
        return None, False
    faults = _faults(given)
    if faults:
        notes.append(f"output schema: left out, since it cannot be used: {faults[0]}")
        return None, False
    try:
        promise = object_root(given)
    except DeclarationError as error:
        notes.append(f"output schema: left out, since it cannot be used: {error.message}")
        return None, False
    if promise.wraps:
        notes.append("output schema: it may describe more than objects, so all of it is put under 'result'")
    return promise.schema, promise.wraps


def _faults(schema: JsonObject) -> list[str]:
    try:
        return [*refused(schema), *reference_faults(schema)]
    except RecursionError:
        return ["it is nested too deeply"]
