"""Content blocks on their way to the host, which is particular about them.

Source: the MCP extension's reader. It knows five types; an unknown type, a missing field or a nested field that
it does not know fails the whole result with a text that names nothing.
"""

from __future__ import annotations

import functools
import logging
import os
from typing import Any, Final

from shared.errors import ResultError
from shared.text import kind_of, shape_of
from shared.tool.content import McpContentBlock, field_fault
from shared.tool.json_form import dumps, to_json
from shared.tool.spec import JsonObject

_LOG = logging.getLogger(__name__)

#: Types that a newer host knows too: they pass untouched. A comma-separated list.
TYPES_SETTING: Final = "TOOLBOX_CONTENT_TYPES"
#: Type -> required fields, other fields.
KNOWN: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "text": (("text",), ()),
    "image": (("data", "mimeType"), ()),
    "audio": (("data", "mimeType"), ()),
    "resource_link": (("uri", "name"), ("title", "description", "mimeType", "size")),
    "resource": (("resource",), ()),
}
_EVERY_BLOCK: Final = ("type", "annotations", "_meta")
#: Names of envelopes: a block of such a type would be read as a whole result.
_ENVELOPES: Final = ("call_tool_result", "multi_content_result")


def wire_block(block: Any) -> JsonObject:
    """The block as the host takes it. Raises `ResultError` that names the block and the field."""
    name = type(block).__name__
    if not isinstance(block, McpContentBlock):
        # One of the MCP SDK's: a pydantic model.
        return _checked(block.model_dump(mode="json", by_alias=True, exclude_none=True), name)
    try:
        wire = block.to_wire()
    except Exception as error:
        raise ResultError(f"content block {name} has no wire form: {type(error).__name__}: {error}") from error
    if not isinstance(wire, dict):
        raise ResultError(f"content block {name}: to_wire() must give a dict, not {type(wire).__name__}")
    return _checked(to_json({"type": getattr(block, "type", None), **wire}), name)


def _checked(wire: JsonObject, name: str) -> JsonObject:
    kind = wire.get("type")
    if not isinstance(kind, str) or not kind or kind in _ENVELOPES:
        raise ResultError(
            f"content block {name}: its type must be a text that names a kind of content, not {shape_of(kind)}"
        )
    if kind in _more_types():
        return wire
    if kind not in KNOWN:
        return _translated(wire, kind, name)
    required, optional = KNOWN[kind]
    for field in required:
        if field not in wire or (field != "resource" and not isinstance(wire[field], str)):
            raise ResultError(
                f"content block {name}: a '{kind}' block needs '{field}' as a text, and has {_got(wire, field)}"
            )
    fault = field_fault(wire)
    if fault is not None:
        raise ResultError(f"content block {name}: {fault}")
    if kind == "resource":
        wire = {**wire, "resource": _checked_resource(wire["resource"], name)}
    # The host drops what it does not know, or, if that is nested, stops reading.
    return {key: value for key, value in wire.items() if key in (*_EVERY_BLOCK, *required, *optional)}


def _checked_resource(resource: Any, name: str) -> JsonObject:
    """The resource, with a media type: strict clients refuse one without."""
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        got = kind_of(resource) if not isinstance(resource, dict) else f"one with {_got(resource, 'uri')}"
        raise ResultError(f"content block {name}: its resource must be an object with a uri, not {got}")
    if isinstance(resource.get("text"), str) == isinstance(resource.get("blob"), str):
        got = f"{_got(resource, 'text')} and {_got(resource, 'blob')}"
        raise ResultError(f"content block {name}: its resource needs exactly one of text and blob, not {got}")
    if resource.get("mimeType") is None:
        fallback = "text/plain" if "text" in resource else "application/octet-stream"
        return {**resource, "mimeType": fallback}
    return dict(resource)


def _got(fields: JsonObject, name: str) -> str:
    return kind_of(fields[name]) if name in fields else f"no {name}"


def _translated(wire: JsonObject, kind: str, name: str) -> JsonObject:
    """A block of a type that the host does not know, as one that it does."""
    data, mime_type = wire.get("data"), wire.get("mimeType")
    if isinstance(data, str) and isinstance(mime_type, str) and mime_type:
        _LOG.info("content block %s: the host does not know type '%s'; sent as a resource", name, kind)
        resource = {"uri": f"toolbox://content/{kind}", "mimeType": mime_type, "blob": data}
        return {"type": "resource", "resource": resource}
    _LOG.info("content block %s: the host does not know type '%s'; sent as JSON text", name, kind)
    return {"type": "text", "text": dumps(wire)}


@functools.cache
def _more_types() -> frozenset[str]:
    return frozenset(os.environ.get(TYPES_SETTING, "").replace(",", " ").split())
