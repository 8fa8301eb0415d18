"""A whole result: from the wire to `MCPToolResult`, and on to the answer of a call here."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from shared import storage
from shared.errors import MCPError, ResultError
from shared.tool.context import Artifacts, Context
from shared.tool.json_form import dumps
from shared.tool.result import META_PREFIX, ToolResult, Wrapped
from shared.tool.spec import RESULT_KEY, JsonObject
from shared.upstream.content import blocks
from shared.upstream.content.base64_text import size_of
from shared.upstream.content.media import Caps, Placer, wants_files
from shared.upstream.content.model import AudioContent, ImageContent, MCPToolResult, TextContent
from shared.upstream.content.reading import blocks_of

#: Key of what is known of an upstream result, in the answer's `_meta`.
UPSTREAM_META: Final = f"{META_PREFIX}upstream"
#: `_meta` keys that speak of the upstream's own session, jobs and protocol: they stay with its facts.
_FOREIGN_META: Final = (META_PREFIX, "io.modelcontextprotocol/", "progressToken")
#: Characters of base64 that are decoded on a thread: less is quicker than a thread.
_LARGE: Final = 1 << 20
#: Seconds that storing may take, and bytes of media for which it may take one more.
STORE_SECONDS: Final = 20.0
STORE_PACE: Final = 4 << 20


class MediaSettings(Protocol):
    """What this module reads of `UpstreamSettings`."""

    @property
    def media_bytes(self) -> int: ...


def from_wire(
    result: Mapping[str, Any],
    *,
    server: str,
    tool: str,
    duration_ms: float,
    request_id: str | int | None = None,
) -> MCPToolResult:
    """An upstream's answer to tools/call, as JSON. Never raises for what the answer holds.

    It takes as long as its base64 data take to be checked, about a second for 300 MB: see `read_result`.
    """
    content = tuple(blocks_of(result.get("content")))
    metadata: dict[str, Any] = {"server": server, "tool": tool, "durationMs": round(duration_ms, 3)}
    if request_id is not None:
        metadata["requestId"] = request_id
    meta = result.get("_meta")
    is_error = bool(result.get("isError"))
    error = None
    if is_error:
        text = "\n".join(block.text for block in content if isinstance(block, TextContent))
        said = (
            text or f"The tool '{tool}' of the server '{server}' reported an error and said nothing about it."
        )
        error = MCPError(said, server)
    return MCPToolResult(
        success=not is_error,
        content=content,
        error=error,
        metadata=metadata,
        structured_content=result.get("structuredContent"),
        is_error=is_error,
        meta=meta if isinstance(meta, dict) else None,
    )


async def read_result(
    result: Mapping[str, Any],
    *,
    server: str,
    tool: str,
    duration_ms: float,
    request_id: str | int | None = None,
) -> MCPToolResult:
    """`from_wire`, on a thread where it would keep the event loop from its other work."""
    read = functools.partial(
        from_wire, result, server=server, tool=tool, duration_ms=duration_ms, request_id=request_id
    )
    return await storage.run(read) if _is_large(result.get("content")) else read()


async def to_tool_result(result: MCPToolResult, context: Context | None, settings: MediaSettings) -> ToolResult:
    """The answer that the host is given. Media go into files of the call as the table in this package says.

    A result without images and large media costs no storage request and no thread. Storage that is not set up,
    fails or takes too long costs the files, never the result. Raises `JobCancelledError` only.
    """
    caps = Caps(settings.media_bytes)
    artifacts = None if context is None else context.artifacts
    why_not = "this call keeps no files"
    if context is not None and wants_files(result.content, caps):
        seconds = _store_seconds(result, context)
        try:
            async with asyncio.timeout(seconds):
                placer = await storage.run(_placed, result, artifacts, caps)
            return _answer(result, placer)
        except TimeoutError:
            why_not = f"storage did not answer within {seconds:.0f} seconds"
    return _answer(result, _placed(result, None, caps, why_not))


def _placed(result: MCPToolResult, artifacts: Artifacts | None, caps: Caps, why_not: str = "") -> Placer:
    placer = Placer(artifacts, caps, str(result.metadata.get("tool", "tool")), why_not)
    for block in result.content:
        placer.add(block)
    return placer


def _answer(result: MCPToolResult, placer: Placer) -> ToolResult:
    content = placer.content
    if result.error is not None and not any(block["type"] == "text" for block in content):
        content.append({"type": "text", "text": result.error.message})
    own, foreign = _metas(result.meta)
    about: JsonObject = dict(result.metadata)
    if placer.files:
        about["attachments"] = placer.files
        about["media_paths"] = [file["path"] for file in placer.files]
    if placer.beside:
        about["blocks"] = placer.beside
    if placer.not_stored:
        about["notStored"] = placer.not_stored
    if foreign:
        about["_meta"] = foreign
    meta = {**own, UPSTREAM_META: blocks.clean(about, {})}
    if result.error is not None:
        meta[f"{META_PREFIX}errorCode"] = "tool_error" if result.is_error else result.error.code
    structured, wrapped = _structured(result.structured_content)
    return ToolResult(tuple(content), structured, not result.success, meta, wrapped)


def _metas(meta: dict[str, Any] | None) -> tuple[JsonObject, JsonObject]:
    """What of an upstream's `_meta` holds for our answer too, and what speaks of its own affairs."""
    own: JsonObject = {}
    foreign: JsonObject = {}
    for key, value in (blocks.clean(meta, {}) if meta else {}).items():
        (foreign if key.startswith(_FOREIGN_META) else own)[key] = value
    return own, foreign


def _structured(data: Any) -> tuple[JsonObject | None, Wrapped]:
    if data is None:
        return None, Wrapped.NOTHING
    try:
        dumps(data)  # in C, where the JSON form of each part is not
    except (ResultError, RecursionError):
        data = blocks.clean(data, None)
    if isinstance(data, dict):
        return data, Wrapped.NOTHING
    return {RESULT_KEY: data}, Wrapped.TEXT if isinstance(data, str) else Wrapped.JSON


def _store_seconds(result: MCPToolResult, context: Context) -> float:
    """How long storing may take: its share of what is left of the call, so that its answer still arrives."""
    media = (block for block in result.content if not isinstance(block, TextContent))
    size = sum(size_of(b.data) if isinstance(b, ImageContent | AudioContent) else len(b.data) for b in media)
    seconds = STORE_SECONDS + size / STORE_PACE
    if context.deadline is None:
        return seconds
    return min(seconds, max((context.deadline - time.monotonic()) * 0.8, 0.5))


def _is_large(content: object) -> bool:
    size = 0
    for item in content if isinstance(content, list) else ():
        if isinstance(item, Mapping):
            inner = item.get("resource")
            for text in (item.get("data"), inner.get("blob") if isinstance(inner, Mapping) else None):
                size += len(text) if isinstance(text, str) else 0
    return size > _LARGE
