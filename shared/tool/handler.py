"""A tool that can be run: its spec, its function, and the way in and out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.errors import InputError, ResultError
from shared.tool.argument_check import ArgumentCheck
from shared.tool.context import Context
from shared.tool.faults import Fault, told
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject, ToolSpec
from shared.tool.validation import SchemaCheck

#: Called with validated arguments; gives the raw return value, or an awaitable of it.
type Runner = Callable[[JsonObject, Context | None], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Handler:
    """What a tool's module comes down to once it is loaded."""

    spec: ToolSpec
    run: Runner
    is_async: bool
    #: False: `run` does not look at its context, which then may be None. Most tools report nothing.
    needs_context: bool
    #: Raw return value -> answer. Raises `ResultError`.
    to_result: Callable[[Any], ToolResult]
    #: What the annotations refuse and the schema cannot tell (a text that is no date).
    verify: Callable[[JsonObject], list[Fault]] | None = None
    _input: SchemaCheck = field(init=False, repr=False)
    _result: SchemaCheck | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_input", ArgumentCheck(self.spec.input_schema))
        schema = self.spec.result_schema
        object.__setattr__(self, "_result", None if schema is None else SchemaCheck(schema))

    def check_input(self, arguments: JsonObject) -> JsonObject:
        """The arguments, if they fit. Null for an optional property counts as absent.

        Raises `InputError` that lists every fault with its JSON path, those of the annotations too: nobody
        should have to correct a call twice.
        """
        required = self.spec.input_schema.get("required", ())
        present = {name: value for name, value in arguments.items() if value is not None or name in required}
        faults = self._input.found(present)
        if faults:
            raise InputError(faults=told([*faults, *self._also_refused(present, faults)]))
        return present

    def _also_refused(self, arguments: JsonObject, faults: list[Fault]) -> list[Fault]:
        """What the annotations refuse in the parts that fit the schema."""
        try:
            found = [] if self.verify is None else self.verify(arguments)
        except Exception:
            # A validator of the tool's author may stumble over what it need not expect.
            return []
        return [fault for fault in found if not any(map(fault.touches, faults))]

    def check_binding(self, arguments: JsonObject) -> None:
        """Refuses what the annotations refuse, before a job is accepted; an inline run finds it by itself."""
        faults = () if self.verify is None else self.verify(arguments)
        if faults:
            raise InputError(faults=told(faults))

    def finish(self, value: Any) -> ToolResult:
        """The raw return value as a checked answer. Raises `ResultError`."""
        result = self.to_result(value)
        if result.is_error or self._result is None:
            return result
        if result.structured is None:
            raise ResultError(
                "Output validation failed: $: the tool promises structured data and returned content blocks "
                "only; annotate it with those (-> list[McpContentBlock]) or with no return type"
            )
        faults = self._result.faults(result.structured)
        if faults:
            raise ResultError(f"Output validation failed: {'; '.join(faults)}")
        return result


class ToolEntry(Protocol):
    """A tool as the app registers it: the spec is at hand, the code is loaded at the first call."""

    @property
    def spec(self) -> ToolSpec: ...

    def load(self) -> Handler:
        """The tool's handler; imports its module at the first call. Raises `DeclarationError`."""


#: Tool name -> tool. What triggers and workers find their tools in.
type Catalogue = Mapping[str, ToolEntry]
