"""What a tool promises of its result: the published schema, an object at its root, and how it is kept."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass, replace
from typing import Any

import pydantic

from shared.errors import DeclarationError
from shared.tool.content import McpContentBlock, McpToolResponse
from shared.tool.references import described, enclosed, reference_faults
from shared.tool.spec import RESULT_KEY, JsonObject
from shared.tool.tidy import Tidy, tidy
from shared.tool.writing import Write, annotation_writer


@dataclass(frozen=True, slots=True)
class Promise:
    """The published schema of a result; None where nothing can be promised."""

    schema: JsonObject | None = None
    #: Whether it is `{"result": …}` around what is returned.
    wraps: bool = False
    #: The JSON form of what is returned, where the annotation says another than the value's type alone.
    write: Write | None = None


def result_schema(annotation: Any) -> Promise:
    """What the return annotation promises. What is not always an object is published, and sent, wrapped."""
    if annotation in (None, type(None), Any, inspect.Signature.empty) or _answers_blocks(annotation):
        return Promise()
    try:
        adapter = pydantic.TypeAdapter(annotation)
        raw = adapter.json_schema(mode="serialization", schema_generator=Tidy)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise DeclarationError(f"no JSON Schema can be made of its return annotation: {reason}") from error
    return replace(object_root(tidy(raw)), write=annotation_writer(adapter))


def object_root(schema: JsonObject) -> Promise:
    """The schema with an object at its root, wrapped under `result` if it may describe something else.

    References keep their meaning. Raises `DeclarationError` for one that leads nowhere: at a call it would only
    be found when the result is there, and a reference to elsewhere would be fetched.
    """
    try:
        faults = reference_faults(schema)
        if faults:
            raise DeclarationError(f"result schema: {'; '.join(faults)}")
        return _object_root(_without_detour(schema))
    except RecursionError:
        raise DeclarationError("the result schema holds itself, or is nested too deeply") from None


def _object_root(schema: JsonObject) -> Promise:
    if not _is_object(schema, schema):
        return Promise(
            enclosed(
                schema,
                lambda part: {"type": "object", "properties": {RESULT_KEY: part}, "required": [RESULT_KEY]},
            ),
            wraps=True,
        )
    return Promise(schema if "type" in schema else {"type": "object", **schema})


def _without_detour(schema: JsonObject) -> JsonObject:
    """The definition itself in the place of a reference to it that says nothing else (a recursive model)."""
    definitions, reference = schema.get("$defs"), schema.get("$ref")
    if set(schema) != {"$ref", "$defs"} or not isinstance(definitions, dict) or not isinstance(reference, str):
        return schema
    own = definitions.get(reference.removeprefix("#/$defs/"))
    if not isinstance(own, dict) or {"$id", "$anchor", "$dynamicAnchor", "$defs"} & own.keys():
        return schema
    return {**own, "$defs": definitions}


def _is_object(part: Any, root: JsonObject, depth: int = 0) -> bool:
    """Whether a schema in `root` says that it describes objects: itself, by reference, or all alternatives."""
    found = described(part, root)
    if not isinstance(found, dict):
        return False
    if "type" in found:
        return bool(found["type"] == "object")
    if "properties" in found:
        return True
    branches = found.get("anyOf") or found.get("oneOf")
    return (
        isinstance(branches, list)
        and depth < 8
        and all(_is_object(branch, root, depth + 1) for branch in branches)
    )


def _answers_blocks(annotation: Any) -> bool:
    """Whether the annotation speaks of content blocks, which have no schema of their own."""
    if isinstance(annotation, type):
        if issubclass(annotation, (McpContentBlock, McpToolResponse)):
            return True
        if annotation.__module__.startswith(("mcp_types", "mcp.types")):
            return True
    return any(_answers_blocks(part) for part in typing.get_args(annotation))
