"""Where each block of a result goes: inline, into a file of the call's, or, failing both, a text that says so.

Storing blocks: `Placer.add` is called on a thread where anything is to be stored.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from shared.errors import ArtifactError, JobCancelledError, ToolboxError
from shared.jobs.artifacts import artifact_path, is_mime_type
from shared.tool.content import McpResourceLinkContent
from shared.tool.context import Artifacts
from shared.tool.media import media_type_of
from shared.tool.spec import JsonObject
from shared.upstream.content import blocks
from shared.upstream.content.base64_text import size_of
from shared.upstream.content.blocks import Block, Written
from shared.upstream.content.filenames import FileNames, essence
from shared.upstream.content.model import AudioContent, BinaryContent, BinaryForm, ImageContent, TextContent
from shared.upstream.content.reading import left_out, sized

_LOG = logging.getLogger(__name__)

#: Characters of a resource's text that go out; the rest is in a file.
TEXT_CHARACTERS: Final = 12_000
MARKER: Final = "\n...[truncated]"
#: The media of one result that go inline, in caps of one item.
RESULT_ITEMS: Final = 4
#: Files of one result.
MOST_FILES: Final = 100
_UNKNOWN: Final = "application/octet-stream"
_SVG: Final = "image/svg+xml"


@dataclass(frozen=True, slots=True)
class Caps:
    """How many bytes of media go inline: of one item, and of a whole result."""

    item: int

    @property
    def result(self) -> int:
        return self.item * RESULT_ITEMS


def wants_files(content: Sequence[Block], caps: Caps) -> bool:
    """Whether anything of a result is to be stored."""
    inline = 0
    for block in content:
        if isinstance(block, TextContent):
            continue
        if isinstance(block, ImageContent):
            return True
        if isinstance(block, BinaryContent):
            if block.form is BinaryForm.LINK:
                continue
            if _kind_of(block).startswith("image/"):
                return True
            if block.form is BinaryForm.TEXT:
                if len(block.data) > TEXT_CHARACTERS and len(block.data.decode()) > TEXT_CHARACTERS:
                    return True
                continue
        size = _size(block)
        inline += size
        if size > caps.item or inline > caps.result:
            return True
    return False


class Placer:
    """Places the blocks of one result, in their order.

    `artifacts`: None where nothing can be stored, for the reason `why_not`.
    """

    def __init__(self, artifacts: Artifacts | None, caps: Caps, tool: str, why_not: str = "") -> None:
        self._artifacts = artifacts
        self._caps = caps
        self._names = FileNames(tool)
        self._inline = 0
        self._why_not = why_not
        #: Why a file could not be stored; "" as long as all could.
        self.not_stored = ""
        self.content: list[JsonObject] = []
        #: By the index of their block.
        self.beside: list[JsonObject] = []
        self.files: list[JsonObject] = []

    def add(self, block: Block) -> None:
        """Places a block. Raises `JobCancelledError` when nobody waits for the result any more."""
        if isinstance(block, TextContent):
            self._emit(blocks.written({"type": "text", "text": block.text}, block))
        elif isinstance(block, BinaryContent):
            if block.form is BinaryForm.LINK:
                self._emit(blocks.link(block))
            elif block.form is BinaryForm.TEXT:
                self._text(block)
            else:
                self._blob(block)
        else:
            self._media(block)

    def _media(self, block: ImageContent | AudioContent) -> None:
        size = _size(block)
        fits, image = self._fits(size), isinstance(block, ImageContent)
        found = None
        if image or not fits:
            found = self._store(block.type, block.mime_type, base64.b64decode(block.data))
        if fits:
            wire = {"type": block.type, "data": block.data, "mimeType": block.mime_type}
            self._emit(blocks.written(wire, block))
        else:
            what = sized("An image" if image else "An audio recording", block.mime_type, size)
            self._elsewhere(block, found, what)

    def _blob(self, block: BinaryContent) -> None:
        mime_type = _mime_of(block)
        image = essence(mime_type).startswith("image/")
        fits, found = self._fits(len(block.data)), None
        if (image and block.data) or not fits:
            found = self._store("image" if image else "resource", mime_type, block.data, block.uri)
        if not fits:
            what = sized("A resource", mime_type, len(block.data), block.uri)
            self._elsewhere(block, found, what)
            return
        data = base64.b64encode(block.data).decode("ascii")
        if image and block.data and essence(mime_type) != _SVG:
            self._emit(blocks.image_of(block, mime_type, data))
        else:
            self._emit(blocks.resource(block, mime_type, blob=data))

    def _text(self, block: BinaryContent) -> None:
        mime_type, text = block.mime_type or "text/plain", block.data.decode("utf-8", "replace")
        cut = len(text) > TEXT_CHARACTERS
        found = None
        if cut or essence(mime_type).startswith("image/"):
            found = self._store("resource", mime_type, block.data, block.uri)
        self._emit(blocks.resource(block, mime_type, text=text[:TEXT_CHARACTERS] + MARKER if cut else text))
        if cut and found is not None:
            said = f"All {len(text)} characters of {block.uri or 'the resource'}"
            self._emit((_link_to(found, said), {}))

    def _fits(self, size: int) -> bool:
        """Whether media of that size still go inline; if so they are counted."""
        fits = size <= self._caps.item and self._inline + size <= self._caps.result
        self._inline += size if fits else 0
        return fits

    def _elsewhere(self, block: Block, found: McpResourceLinkContent | None, what: str) -> None:
        """Media that do not go inline: the link to their file, or why there is none."""
        if found is None:
            cap = f"{self._caps.item} bytes an item and {self._caps.result} a result go inline"
            note = left_out(what, f"{cap}, and it could not be stored: {self.not_stored}")
            self._emit(blocks.written({"type": "text", "text": note.text}, block))
            return
        beside: JsonObject = {} if block.meta is None else {"_meta": block.meta}
        if isinstance(block, BinaryContent):
            known = {"uri": block.uri, "_meta": block.resource_meta}
            beside[blocks.RESOURCE_META] = {key: value for key, value in known.items() if value is not None}
        said = f"{what}, too large to go inline"
        self._emit(blocks.written(_link_to(found, said), block, {k: v for k, v in beside.items() if v}))

    def _emit(self, written: Written) -> None:
        wire, beside = written
        if beside:
            self.beside.append({"index": len(self.content), **beside})
        self.content.append(wire)

    def _store(
        self, label: str, mime_type: str, data: bytes, uri: str | None = None
    ) -> McpResourceLinkContent | None:
        """Stores a file of the call's. None when that cannot be; `not_stored` says why then."""
        if self._artifacts is None:
            self.not_stored = self.not_stored or self._why_not
            return None
        if len(self.files) >= MOST_FILES:
            self.not_stored = f"a result has at most {MOST_FILES} files"
            return None
        name = self._names.name(label, mime_type, uri)
        try:
            found = self._artifacts.write(name, data, _storable(mime_type))
        except JobCancelledError:
            raise
        except ArtifactError as error:
            self.not_stored = error.message  # of this file: the next one may go
            return None
        except Exception as error:
            _LOG.warning("an upstream result's file could not be stored", exc_info=True)
            self._artifacts = None  # storage is away: to wait for it once is enough
            failed = f"storage failed ({type(error).__name__})"
            self.not_stored = error.message if isinstance(error, ToolboxError) else failed
            return None
        about = {
            "name": found.name,
            "uri": found.uri,
            "mimeType": found.mime_type,
            "size": found.size,
            "path": _path(found),
            "source": uri,
        }
        self.files.append({key: value for key, value in about.items() if value is not None})
        return found


def _storable(mime_type: str) -> str:
    """The media type if a file can have it, else without its parameters, else one that says nothing."""
    return next(filter(is_mime_type, (mime_type, essence(mime_type))), _UNKNOWN)


def _mime_of(block: BinaryContent) -> str:
    """Its media type: the declared one, else what the data tell."""
    return block.mime_type or media_type_of(block.data[:1024]) or _UNKNOWN


def _kind_of(block: BinaryContent) -> str:
    return essence(block.mime_type if block.form is BinaryForm.TEXT else _mime_of(block))


def _size(block: ImageContent | AudioContent | BinaryContent) -> int:
    return len(block.data) if isinstance(block, BinaryContent) else size_of(block.data)


def _link_to(found: McpResourceLinkContent, said: str) -> JsonObject:
    return {**found.to_wire(), "description": f"{said}: read it as this resource, or with GET {_path(found)}"}


def _path(found: McpResourceLinkContent) -> str:
    job_id, _, name = found.uri.removeprefix("artifact://").partition("/")
    return artifact_path(job_id, name)
