"""From what a tool returned to what the host is given.

Every result leaves through `envelope`, as the one envelope form that carries `isError` (`call_tool_result`,
source: the MCP extension's return binder). It is always valid JSON and always valid UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from json.encoder import encode_basestring
from typing import Any, Final

from shared.errors import ResultError
from shared.text import clean_text
from shared.tool.content import McpToolResponse, is_block, is_sdk_result
from shared.tool.json_form import dumps, to_json
from shared.tool.spec import RESULT_KEY, JsonObject
from shared.tool.wire import wire_block

#: Prefix of our own keys in a result's `_meta`.
META_PREFIX: Final = "toolbox/"


class Wrapped(StrEnum):
    """A value under `result`, by how the text beside it is written."""

    NOTHING = ""
    #: A str: the text itself.
    TEXT = "text"
    #: None: nothing.
    NULL = "null"
    #: Anything else: its JSON.
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One answer, in wire form."""

    content: tuple[JsonObject, ...] = ()
    structured: JsonObject | None = None
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)
    #: What `structured` is around, if it is `{"result": …}` around a value that is no object.
    wrapped: Wrapped = Wrapped.NOTHING

    @property
    def text(self) -> str:
        """All text blocks, for an error message or a log line."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def has_text(self) -> bool:
        return any(block.get("type") == "text" for block in self.content)


def failure(text: str, **meta: Any) -> ToolResult:
    """An `isError` answer with one text block."""
    return ToolResult(
        ({"type": "text", "text": text},), is_error=True, meta={META_PREFIX + k: v for k, v in meta.items()}
    )


def from_value(value: Any, *, wrap: bool = False, write: Callable[[Any], Any] | None = None) -> ToolResult:
    """The answer that a decorated function's return value stands for. Raises `ResultError`.

    `wrap`: the tool's result schema puts whatever it returns under `result`, objects too. `write`: the JSON
    form of returned data, where the tool's annotation says another than `to_json`.
    """
    if write is None:
        if isinstance(value, str) and not isinstance(value, Enum):
            return ToolResult(structured={RESULT_KEY: str(value)}, wrapped=Wrapped.TEXT)
        if value is None:
            return ToolResult(structured={RESULT_KEY: None}, wrapped=Wrapped.NULL)
    if isinstance(value, dict):
        return structured_result(value, wrap=wrap, write=write)
    if isinstance(value, McpToolResponse):
        result = (
            ToolResult()
            if value.structured_content is None
            else structured_result(value.structured_content, wrap=wrap, write=write)
        )
        blocks = tuple(wire_block(block) for block in value.content)
        return replace(result, content=blocks, is_error=value.is_error)
    if is_block(value):
        return ToolResult((wire_block(value),))
    if isinstance(value, list | tuple) and any(map(is_block, value)):
        return ToolResult(tuple(_block_of(item) for item in value))
    if is_sdk_result(value):
        return _from_sdk(value)
    return structured_result(value, wrap=wrap, write=write)


def structured_result(
    value: Any, *, wrap: bool = False, write: Callable[[Any], Any] | None = None
) -> ToolResult:
    """Structured data: an object as it is, anything else as `{"result": …}`. Raises `ResultError`."""
    data = to_json(value) if write is None else write(value)
    if isinstance(data, dict) and not wrap:
        return ToolResult(structured=data)
    if write is None:
        return ToolResult(structured={RESULT_KEY: data}, wrapped=Wrapped.JSON)
    kind = Wrapped.TEXT if isinstance(data, str) and isinstance(value, str) else Wrapped.JSON
    return ToolResult(structured={RESULT_KEY: data}, wrapped=Wrapped.NULL if value is None else kind)


def _block_of(item: Any) -> JsonObject:
    """An item of a list that holds blocks: a block stays one, anything else becomes a text block."""
    if is_block(item):
        return wire_block(item)
    if isinstance(item, str):
        return {"type": "text", "text": clean_text(item)}
    if isinstance(item, McpToolResponse):
        raise ResultError("an McpToolResponse stands in a list; return it by itself")
    return {"type": "text", "text": dumps(to_json(item))}


def _from_sdk(value: Any) -> ToolResult:
    """The MCP SDK's CallToolResult."""
    raw = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    result = ToolResult() if "structuredContent" not in raw else structured_result(raw["structuredContent"])
    return replace(
        result,
        content=tuple(wire_block(block) for block in value.content),
        is_error=bool(raw.get("isError", False)),
        meta=raw.get("_meta", {}),
    )


def text_of(result: ToolResult) -> str:
    """The text beside structured data: a wrapped text itself, anything else as JSON."""
    data: Any = result.structured
    if result.wrapped is Wrapped.NOTHING:
        return dumps(data)
    value = data[RESULT_KEY]
    return clean_text(value) if result.wrapped is Wrapped.TEXT else dumps(value)


def call_tool_result(result: ToolResult) -> JsonObject:
    """The MCP `CallToolResult`. Raises `ResultError` for data that has no JSON form.

    A text block is added where structured data has no text beside it: many clients read only text.
    """
    content = list(result.content)
    if result.structured is not None and result.wrapped is not Wrapped.NULL and not result.has_text:
        content.append({"type": "text", "text": text_of(result)})
    answer: JsonObject = {"content": content}
    if result.structured is not None:
        answer["structuredContent"] = result.structured
    if result.is_error:
        answer["isError"] = True
    if result.meta:
        answer["_meta"] = result.meta
    return answer


def envelope(result: ToolResult) -> str:
    """The string for the host: a `call_tool_result` envelope around the MCP `CallToolResult`.

    Raises `ResultError` for data that has no JSON form.
    """
    # The outer object holds one text: writing it by hand spares every call an encoder.
    return f'{{"type":"call_tool_result","content":{encode_basestring(dumps(call_tool_result(result)))}}}'
