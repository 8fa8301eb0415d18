"""The way in and out of a contract tool: its rules are a bit stricter than a decorated function's."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from shared.contract.exports import is_async
from shared.contract.findings import step
from shared.contract.formats import FormatCheck
from shared.errors import InputError, ResultError
from shared.tool.content import McpToolResponse, is_block
from shared.tool.context import RETURNED, Context
from shared.tool.handler import Handler
from shared.tool.integers import integers_of
from shared.tool.json_form import to_json
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject, ToolSpec
from shared.tool.validation import kind_of


@dataclasses.dataclass(frozen=True, slots=True)
class ContractHandler(Handler):
    """Null is a value like any other, as in the original: `type: ["string", "null"]` takes it, `string` not.

    Formats count, and numbers that JSON cannot hold (1e400) are refused.
    """

    _integers: Callable[[JsonObject], JsonObject] = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_integers", integers_of(self.spec.input_schema))
        result = self.spec.result_schema
        object.__setattr__(self, "_input", FormatCheck(self.spec.input_schema))
        object.__setattr__(self, "_result", None if result is None else FormatCheck(result))

    def check_input(self, arguments: JsonObject) -> JsonObject:
        """The arguments, if they fit. Raises `InputError` that lists every fault with its JSON path."""
        faults = [f"{path}: must be a finite number" for path in not_finite(arguments, "$")]
        faults += self._input.faults(arguments)
        if faults:
            raise InputError(faults=faults)
        return self._integers(arguments)


def make_handler(spec: ToolSpec, function: Callable[..., Any]) -> ContractHandler:
    def run(arguments: JsonObject, context: Context | None) -> Any:
        value = function(arguments, context)
        return _awaited(value, context) if inspect.isawaitable(value) else _or_returned(value, context)

    return ContractHandler(
        spec=spec, run=run, is_async=is_async(function), needs_context=True, to_result=object_result
    )


async def _awaited(value: Awaitable[Any], context: Context | None) -> Any:
    return _or_returned(await value, context)


def _or_returned(value: Any, context: Context | None) -> Any:
    """What the function returned, or for None what it gave by `returnData`."""
    return context.state.get(RETURNED) if value is None and context is not None else value


def object_result(value: Any) -> ToolResult:
    """The answer that `invokeHeadless` returned: a JSON object, never wrapped. Raises `ResultError`."""
    is_no_data = value is None or isinstance(value, str | bytes | int | float | list | tuple | McpToolResponse)
    data = None if is_no_data or is_block(value) else to_json(value)
    if not isinstance(data, dict):
        raise ResultError(
            f"Headless runtime must return an object result, not {kind_of(value)}: return a dict."
        )
    # `to_json` writes null for them, which would pass for an answer.
    odd = next(not_finite(value, "$"), None)
    if odd is not None:
        raise ResultError(f"Output validation failed: {odd}: a number that JSON cannot hold (NaN or infinite)")
    return ToolResult(structured=data)


def not_finite(value: Any, path: str) -> Iterator[str]:
    """The JSON paths of NaN and infinite numbers in what has a JSON form."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from not_finite(item, step(path, str(key)))
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield from not_finite(item, step(path, index))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for item in dataclasses.fields(value):
            yield from not_finite(getattr(value, item.name), step(path, item.name))
    elif callable(dump := getattr(type(value), "model_dump", None)):
        yield from not_finite(dump(value), path)
