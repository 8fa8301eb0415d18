"""`@tool`: makes a plain function a tool, and leaves it a plain function."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack, overload

import pydantic

from shared.errors import DeclarationError
from shared.tool import schema
from shared.tool.context import Context
from shared.tool.handler import Handler
from shared.tool.result import from_value
from shared.tool.spec import (
    ExecutionMode,
    Isolation,
    JsonObject,
    RunRules,
    ToolAnnotations,
    ToolSpec,
    check_name,
    make_rules,
)

#: Where a decorated function keeps what `@tool` made of it.
ATTRIBUTE = "__toolbox_tool__"


class ToolOptions(TypedDict, total=False):
    """The options of `@tool`; all may be left out."""

    #: The name that agents call; the function's name.
    name: str
    title: str
    #: What agents choose the tool by; the docstring.
    description: str
    #: A JSON Schema as text or dict, or a type; the return annotation.
    result_schema: Any
    #: `one-way`, `two-way`.
    modes: Iterable[str]
    default_mode: str
    #: `inline`, `headless`.
    execution_modes: Iterable[str]
    default_execution_mode: str
    #: Milliseconds an attempt may run.
    timeout_ms: int
    #: Runs of a job whose worker was lost: 3 for a tool annotated read-only or idempotent, else 1.
    max_attempts: int
    #: `thread`, `process`.
    isolation: str
    capabilities: Iterable[str]
    annotations: ToolAnnotations


@overload
def tool[F: Callable[..., Any]](function: F, /) -> F: ...


@overload
def tool[F: Callable[..., Any]](**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Declares a sync or async function as a tool: `@tool` or `@tool(modes=…, …)`.

    The input schema comes from the parameters' annotations, the result schema from the return annotation. How
    the tool may be run follows the rules of a contract's `agents` section.

    Raises `DeclarationError` that names the tool and the parameter or option.
    """
    return _declare(function, options) if function is not None else lambda target: _declare(target, options)


def _declare[F: Callable[..., Any]](target: F, options: ToolOptions) -> F:
    tool_name = check_name(options.get("name", getattr(target, "__name__", "")))
    unknown = sorted(set(options) - ToolOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(ToolOptions.__annotations__)
        raise DeclarationError(f"tool '{tool_name}': unknown option '{unknown[0]}'; known are {known}")
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise DeclarationError(f"tool '{tool_name}': a generator has no single result; return a value")
    description = inspect.cleandoc(options.get("description", target.__doc__ or "")).strip()
    if not description:
        raise DeclarationError(f"tool '{tool_name}': write a docstring or a description; agents read it")
    hints = schema.hints_of(tool_name, target)
    model, context_name = schema.arguments_model(tool_name, target, hints)
    result = _declared_schema(tool_name, options.get("result_schema"))
    if result is None:
        result = schema.result_schema(tool_name, hints.get("return", inspect.Signature.empty))
    notes = options.get("annotations", ToolAnnotations())
    rules = make_rules(
        tool_name,
        modes=_tuple(options.get("modes")),
        default_mode=options.get("default_mode"),
        execution_modes=_tuple(options.get("execution_modes")),
        default_execution_mode=options.get("default_execution_mode"),
        timeout_ms=options.get("timeout_ms"),
        max_attempts=options.get("max_attempts"),
        isolation=options.get("isolation", Isolation.THREAD),
        annotations=notes,
    )
    _check_available(tool_name, rules)
    spec = ToolSpec(
        name=tool_name,
        tool_id=tool_name,
        title=options.get("title") or _title_of(tool_name),
        description=description,
        input_schema=schema.input_schema(model),
        result_schema=result,
        rules=rules,
        annotations=notes,
        capabilities=tuple(options.get("capabilities", ())),
    )
    setattr(target, ATTRIBUTE, DecoratedTool(spec, target, model, context_name))
    return target


def _check_available(tool_name: str, rules: RunRules) -> None:
    """Refuses what a decorated function cannot have (a window) or this version cannot do yet."""
    if ExecutionMode.WINDOWED in rules.execution_modes:
        raise DeclarationError(
            f"tool '{tool_name}': execution mode 'windowed' needs a page of the tool's own, which a decorated "
            "function does not have; use 'inline' and 'headless'"
        )
    if rules.isolation is Isolation.PROCESS:
        raise DeclarationError(f"tool '{tool_name}': isolation 'process' is not available in this version")


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

        def run(arguments: JsonObject, context: Context | None) -> Any:
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
            needs_context=context_name is not None,
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
