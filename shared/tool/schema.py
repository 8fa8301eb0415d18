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
from typing import Annotated, Any, Literal, TypeAliasType, Union

import pydantic
import pydantic_core
from pydantic.fields import FieldInfo

from shared.errors import DeclarationError
from shared.tool.arguments import Binder
from shared.tool.call import ToolCall
from shared.tool.context import Context
from shared.tool.faults import Fault
from shared.tool.integers import integers_of
from shared.tool.spec import JsonObject

type Bind = Callable[[JsonObject], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function takes: the published schema, and the way from arguments to its parameters."""

    schema: JsonObject
    #: Arguments that fit the schema -> keyword arguments. Raises `InputError` for what the annotations refuse.
    bind: Bind
    #: What the annotations refuse of any arguments; None: nothing.
    verify: Callable[[JsonObject], list[Fault]] | None = None
    context_name: str | None = None
    call_name: str | None = None


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The function's annotations, texts resolved. Raises `DeclarationError`."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise DeclarationError(f"an annotation cannot be resolved: {error}") from error
    for name, hint in hints.items():
        try:
            _injected(hint)
        except Exception as error:
            # A type alias is evaluated when it is looked into.
            raise DeclarationError(f"the annotation of '{name}' cannot be resolved: {error}") from error
    return hints


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
        elif (kind := _injected(hints[name])) is not None:
            if kind in injected:
                faults.append(f"only one parameter may be a {kind.__name__}")
            injected[kind] = name
        elif name.startswith("_"):
            faults.append(f"parameter '{name}' must not begin with an underscore")
        elif name.startswith("model_") and hasattr(pydantic.BaseModel, name):
            faults.append(f"parameter '{name}' has a name that pydantic keeps for itself; choose another")
        else:
            fields[name] = _field(hints[name], parameter.default)
    try:
        binder = _binder(f"{tool}_arguments", fields)
    except Exception as error:
        faults += _culprits(fields) or [f"no JSON Schema can be made of its parameters: {_reason(error)}"]
    if faults:
        raise DeclarationError("; ".join(faults))
    return Shape(binder.schema, binder.bind, binder.faults, injected.get(Context), injected.get(ToolCall))


def takes_one_dict(function: Callable[..., Any], hints: Mapping[str, Any], properties: set[str]) -> bool:
    """Whether the function takes all arguments as one dict, as a handler of the Node library does."""
    names = _ordinary(function, hints)
    if len(names) != 1 or names[0] in properties:
        return False
    hint = hints.get(names[0])
    return hint in (dict, Mapping) or typing.get_origin(hint) in (dict, Mapping)


def dict_shape(function: Callable[..., Any], hints: Mapping[str, Any], schema: JsonObject) -> Shape:
    (name,) = _ordinary(function, hints)
    injected = {_injected(hint): parameter for parameter, hint in hints.items()}
    integers = integers_of(schema)
    return Shape(
        schema,
        lambda arguments: {name: integers(arguments)},
        context_name=injected.get(Context),
        call_name=injected.get(ToolCall),
    )


def with_schema(shape: Shape, schema: JsonObject) -> Shape:
    return replace(shape, schema=schema)


def _binder(name: str, fields: dict[str, Any]) -> Binder:
    with warnings.catch_warnings():
        # `json`, `copy` and `schema` are good names for parameters, also when a model has methods of them.
        warnings.filterwarnings("ignore", message="Field name .* shadows an attribute")
        return Binder(pydantic.create_model(name, **fields))


def _culprits(fields: dict[str, Any]) -> list[str]:
    """The parameters that pydantic cannot make a schema of, found one by one, each with the reason."""
    faults = []
    for name, definition in fields.items():
        try:
            _binder("probe", {name: definition})
        except Exception as error:
            what = f"parameter '{name}' has an annotation that no JSON Schema can be made of"
            faults.append(f"{what}: {_reason(error)}")
    return faults


def _reason(error: Exception) -> str:
    """An exception of pydantic's in one line. Those of its core tell the reason last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if isinstance(error, pydantic_core.SchemaError):
        last = lines[-1].removeprefix("SchemaError: ")
        return f"its pattern cannot be used: {last[7:]}" if last.startswith("error: ") else last
    return lines[0]


def _ordinary(function: Callable[..., Any], hints: Mapping[str, Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if _injected(hints.get(name)) is None]


def _injected(hint: Any) -> type | None:
    """`Context` or `ToolCall`, if that is what an annotation comes down to."""
    bare, _ = _without_none(hint)
    while (inner := _unwrapped(bare)) is not bare:
        bare = inner
    return bare if bare in (Context, ToolCall) else None


def _field(hint: Any, default: Any) -> Any:
    """A parameter as a field of pydantic's: `X | None` is `X`, and optional.

    A default may stand in the signature, or in a `Field` there or in the annotation.
    """
    annotation, optional = _without_none(hint)
    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], inspect.Parameter.empty
    if default is not inspect.Parameter.empty:
        return annotation, default
    if optional and FieldInfo.from_annotation(annotation).is_required():
        return annotation, None
    return annotation


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """(`X`, True) for `X | None` and `Literal[…, None]`, metadata kept; (annotation, False) for anything else.

    None is found behind type aliases too; an alias without it keeps its name.
    """
    origin = typing.get_origin(annotation)
    if isinstance(annotation, TypeAliasType) or isinstance(origin, TypeAliasType):
        bare, optional = _without_none(_unwrapped(annotation))
        return (bare, True) if optional else (annotation, False)
    if origin is Annotated:
        inner, *metadata = typing.get_args(annotation)
        bare, optional = _without_none(inner)
        return (Annotated[bare, *metadata], optional) if optional else (annotation, False)
    if origin is Literal:
        values = tuple(value for value in typing.get_args(annotation) if value is not None)
        if values and len(values) < len(typing.get_args(annotation)):
            return Literal[values], True
    if origin in (Union, types.UnionType):
        members = [_without_none(member) for member in typing.get_args(annotation)]
        kept = tuple(bare for bare, _ in members if bare is not type(None))
        if kept and (len(kept) < len(members) or any(optional for _, optional in members)):
            return Union[kept], True  # noqa: UP007 - made from a tuple
    return annotation, False


def _unwrapped(annotation: Any) -> Any:
    """What a type alias stands for, what `Annotated` describes; anything else as it is."""
    origin = typing.get_origin(annotation)
    if isinstance(annotation, TypeAliasType):
        return annotation.__value__
    if isinstance(origin, TypeAliasType):
        return origin.__value__[typing.get_args(annotation)]
    return typing.get_args(annotation)[0] if origin is Annotated else annotation
