"""JSON Schemas from Python annotations: what pydantic makes of them, tidied to what a person would write.

Imported with the tools, not with the app: pydantic is not needed to register a tool from its spec.
"""

from __future__ import annotations

import inspect
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Union

import pydantic
from pydantic.json_schema import GenerateJsonSchema

from shared.errors import DeclarationError, InputError
from shared.tool.call import ToolCall
from shared.tool.content import McpContentBlock, McpToolResponse
from shared.tool.context import Context
from shared.tool.spec import RESULT_KEY, JsonObject

type Bind = Callable[[JsonObject], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function takes: the published schema, and the way from arguments to its parameters."""

    schema: JsonObject
    #: Arguments that fit the schema -> keyword arguments. Raises `InputError` for what the annotations refuse.
    bind: Bind
    context_name: str | None = None
    call_name: str | None = None

    def verify(self, arguments: JsonObject) -> list[str]:
        """What the annotations refuse of arguments that fit the schema, as `$.path: …` texts."""
        try:
            self.bind(arguments)
        except InputError as error:
            return list(error.faults)
        return []


class _Tidy(GenerateJsonSchema):
    """Without the titles that pydantic derives from field names: they repeat the name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The function's annotations, texts resolved. Raises `DeclarationError`."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise DeclarationError(f"an annotation cannot be resolved: {error}") from error


def parameter_shape(tool: str, function: Callable[..., Any], hints: Mapping[str, Any]) -> Shape:
    """The shape of a function with annotated parameters. Raises `DeclarationError` with every fault.

    A parameter `X | None` is optional even without a default: the host refuses null for a required property,
    so None could never be sent.
    """
    fields: dict[str, Any] = {}
    injected: dict[type, str] = {}
    faults: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            faults.append(f"parameter '{name}' must be a named one (no *args, **kwargs or positional-only)")
        elif name not in hints:
            faults.append(f"parameter '{name}' has no annotation")
        elif hints[name] in (Context, ToolCall):
            if hints[name] in injected:
                faults.append(f"only one parameter may be a {hints[name].__name__}")
            injected[hints[name]] = name
        elif name.startswith("_"):
            faults.append(f"parameter '{name}' must not begin with an underscore")
        elif name.startswith("model_") and hasattr(pydantic.BaseModel, name):
            faults.append(f"parameter '{name}' has a name that pydantic keeps for itself; choose another")
        else:
            annotation, optional = _without_none(hints[name])
            default = parameter.default
            if default is parameter.empty:
                default = None if optional else ...
            fields[name] = (annotation, default)
    if faults:
        raise DeclarationError("; ".join(faults))
    try:
        with warnings.catch_warnings():
            # `json`, `copy` and `schema` are good names for parameters, also when a model has methods of them.
            warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
            model = pydantic.create_model(
                f"{tool}_arguments", __config__=pydantic.ConfigDict(extra="forbid"), **fields
            )
        schema = _input_schema(model)
    except Exception as error:
        raise DeclarationError(f"{_culprit(fields)}: {str(error).splitlines()[0]}") from error
    return Shape(schema, _binder(model), injected.get(Context), injected.get(ToolCall))


def takes_one_dict(function: Callable[..., Any], hints: Mapping[str, Any], properties: set[str]) -> bool:
    """Whether the function takes all arguments as one dict, as a handler of the Node library does."""
    names = _ordinary(function, hints)
    if len(names) != 1 or names[0] in properties:
        return False
    hint = hints.get(names[0])
    return hint in (dict, Mapping) or typing.get_origin(hint) in (dict, Mapping)


def dict_shape(function: Callable[..., Any], hints: Mapping[str, Any], schema: JsonObject) -> Shape:
    (name,) = _ordinary(function, hints)
    injected = {hint: parameter for parameter, hint in hints.items() if hint in (Context, ToolCall)}
    return Shape(
        schema, lambda arguments: {name: dict(arguments)}, injected.get(Context), injected.get(ToolCall)
    )


def with_schema(shape: Shape, schema: JsonObject) -> Shape:
    return replace(shape, schema=schema)


@dataclass(frozen=True, slots=True)
class Promise:
    """The published schema of a result; None where nothing can be promised."""

    schema: JsonObject | None = None
    #: Whether it is `{"result": …}` around what is returned.
    wraps: bool = False


def result_schema(annotation: Any) -> Promise:
    """What the return annotation promises. What is not always an object is published, and sent, wrapped."""
    if annotation in (None, type(None), Any, inspect.Signature.empty) or _answers_blocks(annotation):
        return Promise()
    try:
        raw = pydantic.TypeAdapter(annotation).json_schema(mode="serialization", schema_generator=_Tidy)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise DeclarationError(f"no JSON Schema can be made of its return annotation: {reason}") from error
    return object_root(_tidy(raw))


def object_root(schema: JsonObject) -> Promise:
    """The schema with an object at its root, wrapped under `result` if it may describe something else."""
    definitions = schema.pop("$defs", None)
    if set(schema) == {"$ref"} and definitions:
        schema = dict(definitions[schema["$ref"].rpartition("/")[2]])
    if schema.get("type") != "object" and _is_union_of_objects(schema, definitions or {}):
        schema = {"type": "object", **schema}
    if "type" not in schema and "properties" in schema:
        schema = {"type": "object", **schema}
    wraps = schema.get("type") != "object"
    if wraps:
        schema = {"type": "object", "properties": {RESULT_KEY: schema}, "required": [RESULT_KEY]}
    if definitions:
        schema["$defs"] = definitions
    return Promise(schema, wraps)


def _input_schema(model: type[pydantic.BaseModel]) -> JsonObject:
    """Root `type: object`, no other arguments accepted."""
    schema = _tidy(model.model_json_schema(schema_generator=_Tidy))
    for published in schema.setdefault("properties", {}).values():
        if published.get("default", ...) is None:
            del published["default"]
    return schema


def _drop_discriminators(schema: Any) -> None:
    """OpenAPI's `discriminator` is not JSON Schema; the constants in the alternatives say the same."""
    if isinstance(schema, dict):
        if "oneOf" in schema and isinstance(schema.get("discriminator"), dict):
            del schema["discriminator"]
        for part in schema.values():
            _drop_discriminators(part)
    elif isinstance(schema, list):
        for part in schema:
            _drop_discriminators(part)


def _binder(model: type[pydantic.BaseModel]) -> Bind:
    names = tuple(model.model_fields)
    validate = model.__pydantic_validator__.validate_python

    def bind(arguments: JsonObject) -> dict[str, Any]:
        # The arguments have passed the published schema; this only turns them into what the annotations say:
        # an int for 5.0, an enum's member, a datetime, a nested model.
        try:
            bound = validate(arguments)
        except pydantic.ValidationError as error:
            raise InputError(faults=[_fault(item) for item in error.errors(include_url=False)]) from None
        return {name: getattr(bound, name) for name in names}

    return bind


def _fault(error: Any) -> str:
    path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"])
    words = str(error["msg"]).removeprefix("Input ").removeprefix("Value error, ")
    return f"{path}: {words[:1].lower()}{words[1:]}"


def _culprit(fields: dict[str, Any]) -> str:
    """The parameters that pydantic cannot make a schema of, found one by one."""
    bad = []
    for name, definition in fields.items():
        try:
            pydantic.create_model("probe", **{name: definition}).model_json_schema()
        except Exception:
            bad.append(f"'{name}'")
    return f"parameter {', '.join(bad) or '?'} has an annotation that no JSON Schema can be made of"


def _ordinary(function: Callable[..., Any], hints: Mapping[str, Any]) -> list[str]:
    return [
        name for name in inspect.signature(function).parameters if hints.get(name) not in (Context, ToolCall)
    ]


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
    if isinstance(annotation, type):
        if issubclass(annotation, (McpContentBlock, McpToolResponse)):
            return True
        if annotation.__module__.startswith(("mcp_types", "mcp.types")):
            return True
    return any(_answers_blocks(part) for part in typing.get_args(annotation))


def _is_union_of_objects(schema: JsonObject, definitions: JsonObject) -> bool:
    branches = schema.get("anyOf") or schema.get("oneOf") or ()

    def is_object(branch: Any) -> bool:
        if isinstance(branch, dict) and "$ref" in branch:
            branch = definitions.get(branch["$ref"].rpartition("/")[2], {})
        return isinstance(branch, dict) and branch.get("type") == "object"

    return bool(branches) and all(map(is_object, branches))


def _tidy(schema: JsonObject) -> JsonObject:
    schema.pop("title", None)
    _drop_discriminators(schema)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    return schema
