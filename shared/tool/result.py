"""From what a tool returned to what the host is given.

Every result leaves through `envelope`, as the one envelope form that carries `isError` (`call_tool_result`,
source: the MCP extension's return binder). It is always valid JSON and always valid UTF-8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, Final

from shared.errors import ResultError
from shared.tool.content import McpContentBlock, McpTextContent, McpToolResponse
from shared.tool.spec import RESULT_KEY, JsonObject

#: Prefix of our own keys in a result's `_meta`.
META_PREFIX: Final = "toolbox/"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """One answer, in wire form."""

    content: tuple[JsonObject, ...] = ()
    structured: JsonObject | None = None
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)

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


def from_value(value: Any) -> ToolResult:
    """The answer that a decorated function's return value stands for. Raises `ResultError`."""
    if isinstance(value, str):
        text = clean_text(value)
        return ToolResult(({"type": "text", "text": text},), {RESULT_KEY: text})
    if isinstance(value, dict):
        return ToolResult((), _as_object(value))
    if isinstance(value, McpToolResponse):
        structured = None if value.structured_content is None else _as_object(value.structured_content)
        content = tuple(wire_block(block) for block in value.content)
        return ToolResult(content, structured, value.is_error)
    if isinstance(value, McpContentBlock):
        return ToolResult((wire_block(value),))
    if isinstance(value, list | tuple) and value and all(isinstance(item, McpContentBlock) for item in value):
        return ToolResult(tuple(wire_block(block) for block in value))
    if value is None:
        return ToolResult((), {RESULT_KEY: None})
    return ToolResult((), _as_object(value))


def wire_block(block: McpContentBlock) -> JsonObject:
    if not isinstance(block, McpContentBlock):
        raise ResultError(f"content must be content blocks such as McpTextContent, not {type(block).__name__}")
    return block.to_wire()


def to_json(value: Any) -> Any:
    """The value as JSON data. Raises `ResultError` when it has no JSON form."""
    from pydantic_core import to_jsonable_python

    try:
        return to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="null")
    except UnicodeEncodeError:
        return to_json(_cleaned(value))
    except Exception as error:
        raise ResultError(f"the result cannot be written as JSON: {str(error).splitlines()[0]}") from error


def _as_object(value: Any) -> JsonObject:
    data = to_json(value)
    return data if isinstance(data, dict) else {RESULT_KEY: data}


def _cleaned(value: Any) -> Any:
    """Texts that no encoding can carry (lone surrogates) with those characters replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_cleaned(item) for item in value]
    raise ResultError("the result holds text that is not valid Unicode")


def clean_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


#: Compact JSON text. NaN never gets here: `to_json` has made it null.
dumps: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def envelope(result: ToolResult) -> str:
    """The string for the host: a `call_tool_result` envelope around the MCP `CallToolResult`.

    A JSON text block is added where structured data has no text beside it: many clients read only text.
    """
    content = list(result.content)
    if result.structured is not None and not result.has_text:
        content.append(McpTextContent(dumps(result.structured)).to_wire())
    answer: JsonObject = {"content": content}
    if result.structured is not None:
        answer["structuredContent"] = result.structured
    if result.is_error:
        answer["isError"] = True
    if result.meta:
        answer["_meta"] = result.meta
    # The outer object holds one text: writing it by hand spares every call an encoder.
    return f'{{"type":"call_tool_result","content":{encode_basestring(dumps(answer))}}}'
