"""From what a block holds to its wire form, and to what the host's reader has no place for.

Source: the MCP extension's reader (see `shared.tool.wire`): an unknown nested field fails the whole result,
unknown plain ones are dropped, and so are `title` and `_meta` of a link.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from shared.errors import ResultError
from shared.tool.json_form import to_json
from shared.tool.result import META_PREFIX
from shared.tool.spec import JsonObject
from shared.upstream.content.model import AudioContent, BinaryContent, ImageContent, TextContent
from shared.upstream.content.reading import is_absolute, is_size

type Block = TextContent | ImageContent | AudioContent | BinaryContent
#: A wire block, and what goes beside it.
type Written = tuple[JsonObject, JsonObject]

_ROLES: Final = ("user", "assistant")
#: Key, in a block's `_meta`, of what the resource was that became an image block.
RESOURCE_META: Final = f"{META_PREFIX}resource"


def written(wire: JsonObject, source: Block, beside: JsonObject | None = None) -> Written:
    """The wire block with the annotations and `_meta` of its source."""
    kept: JsonObject = {**(source.extra or {}), **(beside or {})}
    if source.annotations is not None:
        legal, rest = _annotations(source.annotations)
        if legal:
            wire["annotations"] = legal
        if rest:
            kept["annotations"] = rest
    if source.meta is not None:
        wire["_meta"] = {**source.meta, **wire.get("_meta", {})}
    if "_meta" in wire:
        wire["_meta"] = clean(wire["_meta"], {})
    if kept:
        kept = clean(kept, {})
    return wire, kept


def resource(block: BinaryContent, mime_type: str, **data: str) -> Written:
    """An embedded resource. `data`: exactly one of text and blob."""
    uri, beside = block.uri, {}
    if uri is None or not is_absolute(uri):
        uri, beside = f"toolbox://content/{'text' if 'text' in data else 'resource'}", {"uri": block.uri}
    inner: JsonObject = {"uri": uri, "mimeType": mime_type, **data}
    if block.resource_meta is not None:
        inner["_meta"] = clean(block.resource_meta, {})
    return written({"type": "resource", "resource": inner}, block, {k: v for k, v in beside.items() if v})


def image_of(block: BinaryContent, mime_type: str, data: str) -> Written:
    """An image block of an image that came as a resource, which its `_meta` tells of."""
    about = {"uri": block.uri, "_meta": block.resource_meta}
    wire = {"type": "image", "data": data, "mimeType": mime_type}
    known = {key: value for key, value in about.items() if value is not None}
    return written({**wire, "_meta": {RESOURCE_META: known}} if known else wire, block)


def link(block: BinaryContent) -> Written:
    """A link as it came. `title`, `icons` and `_meta` go beside it too, since the host drops them."""
    wire: JsonObject = {"type": "resource_link", "uri": block.uri, "name": block.name or block.uri}
    optional: JsonObject = {
        "title": block.title,
        "description": block.description,
        "mimeType": block.mime_type,
        "size": block.size if is_size(block.size) else None,
    }
    wire |= {key: value for key, value in optional.items() if value is not None}
    dropped = {"title": block.title, "icons": block.icons, "_meta": block.meta}
    return written(wire, block, {key: value for key, value in dropped.items() if value is not None})


def clean[D](value: Any, default: D) -> Any | D:
    """The value as JSON that can be written anywhere (NaN, which JSON has not, is null)."""
    try:
        return to_json(value)
    except ResultError:
        return default


def _annotations(notes: Mapping[str, Any]) -> tuple[JsonObject, JsonObject]:
    """What the host and strict clients take of annotations, and the rest."""
    legal: JsonObject = {}
    rest: JsonObject = {}
    for key, value in notes.items():
        if value is not None:
            (legal if _is_legal(key, value) else rest)[key] = value
    return legal, rest


def _is_legal(key: str, value: Any) -> bool:
    match key:
        case "audience":
            return isinstance(value, list) and all(isinstance(role, str) and role in _ROLES for role in value)
        case "priority":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and math.isfinite(value) and 0 <= value <= 1
        case "lastModified":
            return isinstance(value, str)
    return False
