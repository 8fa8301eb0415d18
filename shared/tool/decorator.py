"""`@tool`: makes a plain function a tool, and leaves it a plain function."""

from __future__ import annotations

import functools
import inspect
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAliasType, Unpack, overload

from shared.errors import DeclarationError, ResultError
from shared.tool import promise, properties, schema
from shared.tool.binding import trigger_fields
from shared.tool.collecting import collected
from shared.tool.context import Context
from shared.tool.declaration import bypassed
from shared.tool.handler import Handler
from shared.tool.options import (
    ToolOptions,
    annotations_of,
    capabilities_of,
    icons_of,
    metadata_of,
    parsed,
    usable,
)
from shared.tool.result import from_value
from shared.tool.spec import (
    ExecutionMode,
    Isolation,
    JsonObject,
    RunRules,
    ToolSpec,
    check_name,
    make_rules,
)
from shared.tool.writing import Write

#: Where a decorated function keeps what `@tool` made of it.
ATTRIBUTE = "__toolbox_tool__"
_NO_BINDINGS = (
    "A tool has no further Functions bindings: read and write storage in the tool, or declare an ordinary "
    "mcp_tool_trigger in function_app.py."
)
_WRAP: Final = "Wrap it: put @tool on a def of your own with annotated parameters, and call it there."
_SETTING = re.compile(r"%([A-Za-z0-9_.:-]+)%")
#: App settings that names were made of -> their values then: what was declared holds for these only.
settings_in_names: Final[dict[str, str | None]] = {}


@overload
def tool[F: Callable[..., Any]](function: F, /) -> F: ...


@overload
def tool[F: Callable[..., Any]](**options: Unpack[ToolOptions]) -> Callable[[F], F]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Declares a sync or async function as a tool: `@tool` or `@tool(modes=…, …)`.

    The input schema comes from the parameters' annotations, the result schema from the return annotation. How
    the tool may be run follows the rules of a contract's `agents` section.

    Raises `DeclarationError` that names the tool and every parameter and option that is wrong.
    """
    return _declare(function, options) if function is not None else lambda target: _declare(target, options)


@collected
def _declare[F: Callable[..., Any]](target: F, options: ToolOptions) -> F:
    if not inspect.isfunction(target):
        # Only a function has annotations of its own, and takes the mark that it is a tool.
        given: object = target
        wraps = callable(given) or isinstance(given, classmethod)
        advice = _WRAP if wraps and not hasattr(given, "_function") else _NO_BINDINGS
        raise DeclarationError(
            f"@tool must stand on a function, not on a value of type '{type(target).__name__}'. {advice}"
        )
    declaration = _Declaration(target, options)
    setattr(target, ATTRIBUTE, declaration.finish())
    return target


class _Declaration:
    """Reads a declaration part by part and collects what is wrong, so that all of it is told at once."""

    def __init__(self, target: Callable[..., Any], options: ToolOptions) -> None:
        self._target = target
        self._faults: list[str] = []
        self._options = usable(options, self._faults)
        self._name = self._tried(lambda: check_name(self._named())) or str(self._given_name())[:80]

    def finish(self) -> DecoratedTool:
        options, faults = self._options, self._faults
        if inspect.isgeneratorfunction(self._target) or inspect.isasyncgenfunction(self._target):
            faults.append("a generator has no single result; return a value")
        rules = self._tried(self._rules) or RunRules()
        given = options.get("description")
        description = inspect.cleandoc(self._target.__doc__ or "" if given is None else given).strip()
        if not description:
            faults.append("write a docstring or a description; agents read it")
        metadata, icons = metadata_of(options, faults), icons_of(options, faults)
        annotations, capabilities = annotations_of(options, faults), capabilities_of(options, faults)
        hints = self._tried(lambda: schema.hints_of(self._target))
        shape = None if hints is None else self._tried(lambda: self._shape(hints))
        result = None if hints is None else self._tried(lambda: self._result_schema(hints))
        if faults or shape is None or result is None:
            raise DeclarationError(f"tool '{self._name}': {'; '.join(dict.fromkeys(faults))}")
        spec = ToolSpec(
            name=self._name,
            tool_id=self._name,
            title=options.get("title") or _title_of(self._name),
            description=description,
            input_schema=shape.schema,
            result_schema=result.schema,
            wraps_result=result.wraps,
            rules=rules,
            annotations=annotations,
            capabilities=capabilities,
            icons=icons,
            metadata=metadata,
        )
        try:
            # What cannot be written as JSON would otherwise stop the app at load, with all its tools.
            trigger_fields(spec)
        except (TypeError, ValueError, ResultError) as error:
            raise DeclarationError(f"tool '{self._name}': its schemas have no JSON form: {error}") from error
        return DecoratedTool(spec, self._target, shape, result.write)

    def _tried[T](self, part: Callable[[], T]) -> T | None:
        try:
            return part()
        except DeclarationError as error:
            self._faults.append(error.message)
            return None

    def _given_name(self) -> Any:
        return self._options.get("name", self._target.__name__)

    def _named(self) -> str:
        given = self._given_name()
        if not isinstance(given, str):
            raise DeclarationError(f"name must be a text, not {type(given).__name__}")

        def setting(match: re.Match[str]) -> str:
            value = os.environ.get(match[1])
            settings_in_names[match[1]] = value or None
            if not value:
                raise DeclarationError(f"name '{given}' asks for the app setting {match[1]}, which is not set")
            return value

        return _SETTING.sub(setting, given)

    def _rules(self) -> RunRules:
        options = self._options
        rules = make_rules(
            modes=_tuple(options.get("modes")),
            default_mode=options.get("default_mode"),
            execution_modes=_tuple(options.get("execution_modes")),
            default_execution_mode=options.get("default_execution_mode"),
            timeout_ms=options.get("timeout_ms"),
            max_attempts=options.get("max_attempts"),
            isolation=options.get("isolation", Isolation.THREAD),
            annotations=options.get("annotations"),
        )
        if ExecutionMode.WINDOWED in rules.execution_modes:
            raise DeclarationError(
                "execution mode 'windowed' needs a page of the tool's own, which a decorated function does not "
                "have; use 'inline' and 'headless'"
            )
        if rules.isolation is Isolation.PROCESS and ExecutionMode.HEADLESS not in rules.execution_modes:
            raise DeclarationError(
                "isolation 'process' is for jobs only: add 'headless' to execution_modes, or leave it out"
            )
        return rules

    def _shape(self, hints: dict[str, Any]) -> schema.Shape:
        explicit = properties.read_properties(self._options.get("tool_properties"), self._faults)
        if "tool_properties" in self._options and schema.takes_one_dict(
            self._target, hints, {p.name for p in explicit}
        ):
            return schema.dict_shape(self._target, hints, properties.schema_of(explicit))
        shape = schema.parameter_shape(self._name, self._target, hints)
        return schema.with_schema(shape, properties.merged(shape.schema, explicit, self._faults))

    def _result_schema(self, hints: dict[str, Any]) -> promise.Promise:
        given = self._options.get("result_schema")
        if given is None:
            return promise.result_schema(hints.get("return", inspect.Signature.empty))
        if isinstance(given, str):
            given = parsed("result_schema", given)
        if isinstance(given, Mapping):
            return promise.object_root(dict(given))
        if not isinstance(given, type | types.UnionType | TypeAliasType) and not hasattr(given, "__origin__"):
            raise DeclarationError(
                f"result_schema must be a JSON Schema (text or dict) or a type, not {type(given).__name__}"
            )
        return promise.result_schema(given)


class DecoratedTool:
    """A decorated function with its spec. A `ToolEntry` whose code is loaded already."""

    def __init__(
        self, spec: ToolSpec, function: Callable[..., Any], shape: schema.Shape, write: Write | None = None
    ) -> None:
        self.spec = spec
        self._function = function
        self._shape = shape
        self._write = write

    def is_of(self, function: object) -> bool:
        return self._function is function

    def load(self) -> Handler:
        return self._handler

    @functools.cached_property
    def _handler(self) -> Handler:
        function, bind, shape = self._function, self._shape.bind, self._shape

        def run(arguments: JsonObject, context: Context | None) -> Any:
            kwargs = bind(arguments)
            if context is not None:
                if shape.context_name is not None:
                    kwargs[shape.context_name] = context
                if shape.call_name is not None:
                    kwargs[shape.call_name] = context.call
            return function(**kwargs)

        return Handler(
            spec=self.spec,
            run=run,
            is_async=inspect.iscoroutinefunction(function),
            needs_context=shape.context_name is not None or shape.call_name is not None,
            to_result=functools.partial(from_value, wrap=self.spec.wraps_result, write=self._write),
            verify=shape.verify,
        )


def declared(value: object) -> DecoratedTool | None:
    """What `@tool` made of a function; None for anything else. Raises `DeclarationError`."""
    found = getattr(value, ATTRIBUTE, None)
    if isinstance(found, DecoratedTool):
        if not found.is_of(value):
            raise bypassed("tool", found.spec.name)
        return found
    # A Functions decorator above @tool leaves a builder around the function.
    function = getattr(value, "_function", None)
    inner = getattr(function, "get_user_function", None)
    if callable(inner) and hasattr(inner(), ATTRIBUTE):
        raise DeclarationError(
            f"tool '{inner().__name__}' stands below another Functions decorator. {_NO_BINDINGS}"
        )
    return None


def _title_of(name: str) -> str:
    words = re.sub(r"[_.-]+", " ", name).split()
    return " ".join(words).capitalize() or name


def _tuple(values: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if values is None else (values,) if isinstance(values, str) else tuple(values)
