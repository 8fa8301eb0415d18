"""`@tool`: makes a plain function a tool, and leaves it a plain function."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, overload

import pydantic

from shared.errors import DeclarationError
from shared.tool import schema
from shared.tool.context import Context
from shared.tool.handler import Handler
from shared.tool.result import from_value
from shared.tool.spec import (
    Isolation,
    JsonObject,
    ToolAnnotations,
    ToolSpec,
    check_name,
    make_rules,
)

#: Where a decorated function keeps what `@tool` made of it.
ATTRIBUTE = "__toolbox_tool__"


@overload
def tool[F: Callable[..., Any]](function: F, /) -> F: ...


@overload
def tool[F: Callable[..., Any]](
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    result_schema: Any = None,
    modes: Iterable[str] | None = None,
    default_mode: str | None = None,
    execution_modes: Iterable[str] | None = None,
    default_execution_mode: str | None = None,
    timeout_ms: int | None = None,
    max_attempts: int | None = None,
    isolation: str = Isolation.THREAD,
    capabilities: Iterable[str] = (),
    annotations: ToolAnnotations | None = None,
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    result_schema: Any = None,
    modes: Iterable[str] | None = None,
    default_mode: str | None = None,
    execution_modes: Iterable[str] | None = None,
    default_execution_mode: str | None = None,
    timeout_ms: int | None = None,
    max_attempts: int | None = None,
    isolation: str = Isolation.THREAD,
    capabilities: Iterable[str] = (),
    annotations: ToolAnnotations | None = None,
) -> Any:
    """Declares a sync or async function as a tool.

    `name` defaults to the function's, `description` to its docstring, the input schema to its annotations and
    the result schema to its return annotation (or `result_schema`: a JSON Schema as text or dict, or a model).
    `modes`, `execution_modes`, their defaults and `timeout_ms` (milliseconds, per attempt) follow the rules of
    a contract's `agents` section. `max_attempts` defaults to 3 for a tool annotated read-only or idempotent,
    else 1.

    Raises `DeclarationError` that names the tool and the parameter or option.
    """

    def declare[F: Callable[..., Any]](target: F) -> F:
        tool_name = check_name(name if name is not None else getattr(target, "__name__", ""))
        if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise DeclarationError(f"tool '{tool_name}': a generator has no single result; return a value")
        told = inspect.cleandoc(description if description is not None else target.__doc__ or "").strip()
        if not told:
            raise DeclarationError(f"tool '{tool_name}': write a docstring or a description; agents read it")
        hints = schema.hints_of(tool_name, target)
        model, context_name = schema.arguments_model(tool_name, target, hints)
        declared = _declared_schema(tool_name, result_schema)
        if declared is None:
            declared = schema.result_schema(tool_name, hints.get("return", inspect.Signature.empty))
        notes = annotations or ToolAnnotations()
        spec = ToolSpec(
            name=tool_name,
            tool_id=tool_name,
            title=title or _title_of(tool_name),
            description=told,
            input_schema=schema.input_schema(model),
            result_schema=declared,
            rules=make_rules(
                tool_name,
                modes=_tuple(modes),
                default_mode=default_mode,
                execution_modes=_tuple(execution_modes),
                default_execution_mode=default_execution_mode,
                timeout_ms=timeout_ms,
                max_attempts=max_attempts,
                isolation=isolation,
                annotations=notes,
            ),
            annotations=notes,
            capabilities=tuple(capabilities),
        )
        setattr(target, ATTRIBUTE, DecoratedTool(spec, target, model, context_name))
        return target

    return declare if function is None else declare(function)


class DecoratedTool:
    """A decorated function with its spec. A `ToolEntry` whose code is loaded already."""

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[..., Any],
        model: type[pydantic.BaseModel],
        context_name: str | None,
    ) -> None:
        self.spec = spec
        self._function = function
        self._model = model
        self._context_name = context_name

    def load(self) -> Handler:
        return self._handler

    @functools.cached_property
    def _handler(self) -> Handler:
        names = tuple(self._model.model_fields)
        validate = self._model.__pydantic_validator__.validate_python
        function, context_name = self._function, self._context_name

        def run(arguments: JsonObject, context: Context) -> Any:
            # The arguments have passed the published schema; this only turns them into what the annotations
            # say: an int for 5.0, an enum's member, a datetime, a nested model.
            bound = validate(arguments)
            kwargs = {name: getattr(bound, name) for name in names}
            if context_name is not None:
                kwargs[context_name] = context
            return function(**kwargs)

        return Handler(
            spec=self.spec,
            run=run,
            is_async=inspect.iscoroutinefunction(function),
            to_result=from_value,
        )


def declared(value: object) -> DecoratedTool | None:
    """What `@tool` made of a function; None for anything else."""
    found = getattr(value, ATTRIBUTE, None)
    return found if isinstance(found, DecoratedTool) else None


def _declared_schema(tool_name: str, given: Any) -> JsonObject | None:
    """An explicit result schema: a JSON text, a dict, or a type with a schema."""
    if given is None:
        return None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise DeclarationError(f"tool '{tool_name}': result_schema is no JSON: {error}") from error
        if not isinstance(given, dict):
            raise DeclarationError(f"tool '{tool_name}': result_schema must be a JSON object")
    if isinstance(given, dict):
        return schema.object_root(dict(given))
    return schema.result_schema(tool_name, given)


def _title_of(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ").replace(".", " ").split()
    return " ".join(words).capitalize() or name


def _tuple(values: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if values is None else (values,) if isinstance(values, str) else tuple(values)
