"""From what a tool function returned to the result of tools/call: functions-host's return table, row by row.

Anything that the real host's readers would refuse raises ResultError, which the endpoint turns into the
same generic ``isError`` result as an exception in the function. Blocks are rebuilt field by field: unknown
plain fields are dropped, unknown nested ones fail, as in the C# reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.host import wire
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Callable

type Block = dict[str, Any]

_BLOCK_FIELDS = {
    "type": str,
    "text": str,
    "data": str,
    "mimeType": str,
    "uri": str,
    "name": str,
    "description": str,
    "size": int,
    "resource": dict,
    "annotations": dict,
    "_meta": dict,
}
_ROLES = ("user", "assistant")


class ResultError(Exception):
    """The real host could not have made a result of this; ``str(error)`` is for the log."""


def tool_result(value: Value | None, *, use_result_schema: bool) -> dict[str, Any]:
    """The ``result`` object of tools/call."""
    if value is None:
        return {"content": []}
    if not use_result_schema:
        return {"content": [{"type": "text", "text": _plain_text(value)}]}
    match value.kind:
        case Kind.STRING | Kind.JSON:
            return _envelope(_json(value.data, "the returned envelope"))
        case other:
            raise ResultError(f"a {other} value is not an envelope")


def error_result(tool: str) -> dict[str, Any]:
    """What a failed call shows: the exception's own text is hidden, as the C# SDK does."""
    return {"content": [{"type": "text", "text": f"An error occurred invoking '{tool}'."}], "isError": True}


def _plain_text(value: Value) -> str:
    match value.kind:
        case Kind.BYTES:
            return "System.Byte[]"
        case Kind.JSON:
            return wire.dotnet_text(_json(value.data, "the returned JSON"))
        case _:
            return str(value.data)


def _envelope(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ResultError("the returned envelope is not an object")
    fields = {key.lower(): item for key, item in data.items()}
    kind, content, structured = (fields.get(key) for key in ("type", "content", "structuredcontent"))
    if not isinstance(kind, str) or not isinstance(content, str):
        raise ResultError("the returned envelope needs the strings type and content")
    if structured is not None and not isinstance(structured, str):
        raise ResultError("structuredContent of the envelope must be a string of JSON")
    inner = _json(content, "content of the envelope")
    if kind == "call_tool_result":
        return _call_tool_result(inner)
    if kind == "multi_content_result":
        blocks = _blocks(inner)
        if not blocks:
            raise ResultError("No content items were produced from the McpToolResult.")
    else:
        blocks = [content_block(inner)]
    result: dict[str, Any] = {"content": blocks}
    if structured is not None:
        result["structuredContent"] = _json(structured, "structuredContent")
        if result["structuredContent"] is None:
            raise ResultError("structuredContent is null")
    return result


def _call_tool_result(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ResultError("call_tool_result is not an object")
    result: dict[str, Any] = {"content": _blocks(data.get("content", []))}
    if data.get("structuredContent") is not None:
        result["structuredContent"] = data["structuredContent"]
    if (is_error := data.get("isError")) is not None:
        if not isinstance(is_error, bool):
            raise ResultError("isError is not a boolean")
        result["isError"] = is_error
    if (meta := data.get("_meta")) is not None:
        if not isinstance(meta, dict):
            raise ResultError("_meta is not an object")
        result["_meta"] = meta
    return result


def _blocks(data: Any) -> list[Block]:
    if not isinstance(data, list):
        raise ResultError("content is not a list of blocks")
    return [content_block(item) for item in data]


def content_block(data: Any) -> Block:
    """One content block with the fields its ``type`` has, checked and in the order they are written."""
    if not isinstance(data, dict):
        raise ResultError("a content block is not an object")
    fields: dict[str, Any] = {}
    for key, item in data.items():
        wanted = _BLOCK_FIELDS.get(key)
        if wanted is None:
            if isinstance(item, dict | list):
                raise ResultError(f"unknown nested field {key!r} in a content block")
        elif item is not None:
            if not isinstance(item, wanted) or isinstance(item, bool):
                raise ResultError(f"{key} of a content block is not of the right type")
            fields[key] = item
    build = _BUILDERS.get(fields.get("type", ""))
    if build is None:
        raise ResultError(f"unknown content block type {data.get('type')!r}")
    block = build(fields)
    if "annotations" in fields:
        block["annotations"] = _annotations(fields["annotations"])
    return block


def _text(fields: Block) -> Block:
    return _with_meta(_pick(fields, "type", "text"), fields)


def _media(fields: Block) -> Block:
    return _with_meta(_pick(fields, "type", "data", "mimeType"), fields)


def _resource(fields: Block) -> Block:
    block = _pick(fields, "type", "resource")
    block["resource"] = resource_contents(block["resource"])
    return _with_meta(block, fields)


def _resource_link(fields: Block) -> Block:
    optional: Block = {key: fields[key] for key in ("description", "mimeType", "size") if key in fields}
    return {**_pick(fields, "type", "uri", "name"), **optional}


_BUILDERS: dict[str, Callable[[Block], Block]] = {
    "text": _text,
    "image": _media,
    "audio": _media,
    "resource": _resource,
    "resource_link": _resource_link,
}


def resource_contents(data: Any) -> Block:
    """The contents of a resource: uri, mimeType (null when absent), and blob or, without one, text."""
    if not isinstance(data, dict):
        raise ResultError("a resource is not an object")
    kind = "blob" if data.get("blob") is not None else "text"
    mime_type, meta = data.get("mimeType"), data.get("_meta")
    if not isinstance(data.get("uri"), str) or not isinstance(data.get(kind), str):
        raise ResultError("a resource needs uri, and text or blob")
    if not isinstance(mime_type, str | None) or not isinstance(meta, dict | None):
        raise ResultError("mimeType or _meta of a resource is not of the right type")
    contents = {"uri": data["uri"], "mimeType": mime_type, kind: data[kind]}
    return contents if meta is None else {**contents, "_meta": meta}


def _pick(fields: Block, *required: str) -> Block:
    missing = [key for key in required if key not in fields]
    if missing:
        raise ResultError(f"a {fields['type']} block needs {', '.join(missing)}")
    return {key: fields[key] for key in required}


def _with_meta(block: Block, fields: Block) -> Block:
    return {**block, "_meta": fields["_meta"]} if "_meta" in fields else block


def _annotations(data: Block) -> Block:
    audience, priority, modified = (data.get(key) for key in ("audience", "priority", "lastModified"))
    if not isinstance(audience, list | None) or any(role not in _ROLES for role in audience or ()):
        raise ResultError("audience of annotations must list user or assistant")
    if not isinstance(priority, int | float | None) or isinstance(priority, bool):
        raise ResultError("priority of annotations must be a number")
    if not isinstance(modified, str | None):
        raise ResultError("lastModified of annotations must be a string")
    known = {"audience": audience, "priority": priority, "lastModified": modified}
    return {key: item for key, item in known.items() if item is not None}


def _json(text: Any, what: str) -> Any:
    try:
        return wire.loads(text, finite=True)
    except (ValueError, TypeError) as error:
        raise ResultError(f"{what} is not JSON: {error}") from None
