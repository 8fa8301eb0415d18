"""JSON Schemas from Python annotations: what pydantic makes of them, tidied to what a person would write.

Imported with the tools, not with the app: pydantic is not needed to register a tool from its spec.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Union, cast

import pydantic
from pydantic.json_schema import GenerateJsonSchema

from shared.errors import DeclarationError
from shared.tool.content import McpContentBlock, McpToolResponse
from shared.tool.context import Context
from shared.tool.spec import RESULT_KEY, JsonObject


class _Tidy(GenerateJsonSchema):
    """Without the titles that pydantic derives from field names: they repeat the name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def hints_of(tool: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The function's annotations, texts resolved. Raises `DeclarationError`."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise DeclarationError(f"tool '{tool}': an annotation cannot be resolved: {error}") from error


def arguments_model(
    tool: str, function: Callable[..., Any], hints: dict[str, Any]
) -> tuple[type[pydantic.BaseModel], str | None]:
    """A model of the function's parameters, and the name of its `Context` parameter if it has one.

    A parameter `X | None` is optional even without a default: the host refuses null for a required property,
    so None could never be sent.
    """
    fields: dict[str, Any] = {}
    context_name: str | None = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DeclarationError(
                f"tool '{tool}': parameter '{name}' must be an ordinary named one "
                "(no *args, no **kwargs, not positional-only)"
            )
        if name not in hints:
            raise DeclarationError(f"tool '{tool}': parameter '{name}' has no annotation")
        if hints[name] is Context:
            if context_name is not None:
                raise DeclarationError(f"tool '{tool}': only one parameter may be a Context")
            context_name = name
            continue
        if name.startswith("_"):
            raise DeclarationError(f"tool '{tool}': parameter '{name}' must not begin with an underscore")
        annotation, optional = _without_none(hints[name])
        default = parameter.default
        if default is parameter.empty:
            default = None if optional else ...
        fields[name] = (annotation, default)
    config = pydantic.ConfigDict(extra="forbid")
    try:
        model = pydantic.create_model(f"{tool}_arguments", __config__=config, **fields)
        model.model_json_schema()
    except Exception as error:
        raise DeclarationError(f"tool '{tool}': {_culprit(fields)}: {error}") from error
    return model, context_name


def _culprit(fields: dict[str, Any]) -> str:
    """The parameters that pydantic cannot make a schema of, found one by one."""
    bad = []
    for name, definition in fields.items():
        try:
            pydantic.create_model("probe", **{name: definition}).model_json_schema()
        except Exception:
            bad.append(f"'{name}'")
    return f"parameter {', '.join(bad) or '?'} has an annotation that no JSON Schema can be made of"


def input_schema(model: type[pydantic.BaseModel]) -> JsonObject:
    """The published schema of the arguments: root `type: object`, no other arguments accepted."""
    schema = _tidy(model.model_json_schema(schema_generator=_Tidy))
    properties = cast("JsonObject", schema.setdefault("properties", {}))
    for published in properties.values():
        if published.get("default", ...) is None:
            del published["default"]
    return schema


def result_schema(tool: str, annotation: Any) -> JsonObject | None:
    """The published schema of what the function returns; None where nothing can be promised.

    A result that is no object is published, and sent, as `{"result": …}`.
    """
    if annotation in (None, type(None), Any, inspect.Signature.empty) or _answers_blocks(annotation):
        return None
    try:
        raw = pydantic.TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Tidy)
    except Exception as error:
        raise DeclarationError(
            f"tool '{tool}': no JSON Schema can be made of its return annotation: {error}"
        ) from error
    return object_root(_tidy(raw))


def object_root(schema: JsonObject) -> JsonObject:
    """The schema with an object at its root, wrapped under `result` if it describes something else."""
    definitions = schema.pop("$defs", None)
    if set(schema) == {"$ref"} and definitions:
        schema = dict(definitions[schema["$ref"].rpartition("/")[2]])
    if schema.get("type") != "object":
        schema = {"type": "object", "properties": {RESULT_KEY: schema}, "required": [RESULT_KEY]}
    if definitions:
        schema["$defs"] = definitions
    return schema


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """(`X`, True) for `X | None`, metadata kept; (annotation, False) for anything else."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = typing.get_args(annotation)
        bare, optional = _without_none(inner)
        return (Annotated[bare, *metadata], optional) if optional else (annotation, False)
    if origin in (Union, types.UnionType):
        members = typing.get_args(annotation)
        kept = tuple(member for member in members if member is not type(None))
        if len(kept) < len(members) and kept:
            return Union[kept], True  # noqa: UP007 - made from a tuple
    return annotation, False


def _answers_blocks(annotation: Any) -> bool:
    """Whether the annotation speaks of content blocks, which have no schema of their own."""
    if isinstance(annotation, type) and issubclass(annotation, (McpContentBlock, McpToolResponse)):
        return True
    return any(_answers_blocks(part) for part in typing.get_args(annotation))


def _tidy(schema: JsonObject) -> JsonObject:
    schema.pop("title", None)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    return schema
