"""Content blocks: the parts that a tool's answer is made of besides its structured data.

Field names and rules are those of the MCP specification's `ContentBlock`. What the host needs to accept a block
is checked when the block is made: it fails the whole result otherwise, with a text that names nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import unquote, urlsplit

from shared.errors import ToolError
from shared.text import kind_of, shape_of
from shared.tool.media import media_type_of
from shared.tool.spec import JsonObject

type Binary = bytes | bytearray | memoryview

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+", re.DOTALL)
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(;.*)?", re.DOTALL)
#: Of packages whose blocks and results are understood without importing them.
_SDK_PACKAGES: Final = ("mcp_types", "mcp.types")
_SDK_BLOCKS: Final = ("TextContent", "ImageContent", "AudioContent", "ResourceLink", "EmbeddedResource")


class McpContentBlock(ABC):
    """One block. A subclass of your own states its `type` and its wire form and is used like a built-in.

    A `type` that the host does not know goes out as an embedded resource if the wire form has `data` and
    `mimeType`, else as JSON text.
    """

    type: ClassVar[str]

    @abstractmethod
    def to_wire(self) -> JsonObject:
        """The block as JSON."""


@dataclass(frozen=True, slots=True)
class McpTextContent(McpContentBlock):
    text: str
    #: `audience` and `priority`, as the MCP specification has them.
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    type: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise ToolError(f"McpTextContent: text must be a str, not {type(self.text).__name__}.")
        _check_fields(self)

    def to_wire(self) -> JsonObject:
        return _present(type=self.type, text=self.text, annotations=self.annotations)


@dataclass(frozen=True, slots=True)
class _Media(McpContentBlock):
    """`data`: bytes, which are encoded for you, or a text that already is base64."""

    data: Binary | str = field(repr=False)
    #: Found from the data's first bytes when left out.
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        name = type(self).__name__
        given = self.mime_type
        found = given if given is not None else media_type_of(_decoded(self.data, name))
        if found is None or not _MIME.fullmatch(found) or not found.lower().startswith(f"{self.type}/"):
            got = "none, and the data's first bytes tell none" if found is None else repr(found)
            raise ToolError(f"{name}: mime_type must be like '{self.type}/…', got {got}.")
        object.__setattr__(self, "data", encode_binary(self.data, name))
        object.__setattr__(self, "mime_type", found)
        _check_fields(self)

    def to_wire(self) -> JsonObject:
        return _present(type=self.type, data=self.data, mimeType=self.mime_type, annotations=self.annotations)


@dataclass(frozen=True, slots=True)
class McpImageContent(_Media):
    type: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class McpAudioContent(_Media):
    type: ClassVar[str] = "audio"


@dataclass(frozen=True, slots=True)
class McpResourceLinkContent(McpContentBlock):
    """A link to something that the client can read elsewhere."""

    uri: str
    #: The last part of the uri when left out.
    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    #: Bytes.
    size: int | None = None
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    type: ClassVar[str] = "resource_link"

    def __post_init__(self) -> None:
        _check_uri(self.uri, "McpResourceLinkContent")
        if not self.name:
            parts = urlsplit(self.uri)
            last = unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.netloc
            if not last:
                raise ToolError("McpResourceLinkContent: name is required, since the uri ends in none.")
            object.__setattr__(self, "name", last)
        _check_fields(self)

    def to_wire(self) -> JsonObject:
        return _present(
            type=self.type,
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mimeType=self.mime_type,
            size=self.size,
            annotations=self.annotations,
        )


@dataclass(frozen=True, slots=True)
class McpResourceContent(McpContentBlock):
    """Something that travels with the answer: exactly one of `text` and `blob`."""

    uri: str
    text: str | None = None
    blob: Binary | str | None = field(default=None, repr=False)
    #: Left out: text/plain for a text; what the first bytes tell, or application/octet-stream, for a blob.
    mime_type: str | None = None
    annotations: Mapping[str, Any] | None = field(default=None, kw_only=True)
    type: ClassVar[str] = "resource"

    def __post_init__(self) -> None:
        name = "McpResourceContent"
        _check_uri(self.uri, name)
        if (self.text is None) == (self.blob is None):
            raise ToolError(f"{name}: give exactly one of text and blob.")
        if not isinstance(self.text, str | None):
            raise ToolError(f"{name}: text must be a str, not {type(self.text).__name__}.")
        if self.blob is not None:
            found = self.mime_type or media_type_of(_decoded(self.blob, name)) or "application/octet-stream"
            object.__setattr__(self, "mime_type", found)
            object.__setattr__(self, "blob", encode_binary(self.blob, name))
        elif self.mime_type is None:
            object.__setattr__(self, "mime_type", "text/plain")
        if not isinstance(self.mime_type, str) or not _MIME.fullmatch(self.mime_type):
            raise ToolError(f"{name}: mime_type must be like 'text/plain', got {self.mime_type!r}.")
        _check_fields(self)

    def to_wire(self) -> JsonObject:
        resource = _present(uri=self.uri, mimeType=self.mime_type, text=self.text, blob=self.blob)
        return _present(type=self.type, resource=resource, annotations=self.annotations)


@dataclass(frozen=True, slots=True)
class McpToolResponse:
    """Everything a tool can answer: blocks, structured data (a dict or a model), and whether it failed.

    A JSON text block is added when structured data comes without a text, for clients that read only text.
    """

    content: Sequence[Any] = ()
    structured_content: Any = None
    is_error: bool = False

    def __post_init__(self) -> None:
        items = [self.content] if is_block(self.content) else self.content
        if not isinstance(items, Sequence) or not isinstance(self.is_error, bool):
            raise ToolError(
                "McpToolResponse: content must be a list of blocks, is_error True or False, "
                f"not {kind_of(items)} and {kind_of(self.is_error)}."
            )
        for number, item in enumerate(items):
            if not is_block(item):
                raise ToolError(
                    f"McpToolResponse: content[{number}] must be a content block such as McpTextContent, "
                    f"not {type(item).__name__}."
                )
        object.__setattr__(self, "content", tuple(items))


def is_block(value: object) -> bool:
    """Whether the value is a content block: ours, a user's own, or the MCP SDK's."""
    return isinstance(value, McpContentBlock) or _is_sdk(value, _SDK_BLOCKS)


def is_sdk_result(value: object) -> bool:
    """Whether the value is the MCP SDK's `CallToolResult`."""
    return _is_sdk(value, ("CallToolResult",))


def encode_binary(data: Binary | str, what: str) -> str:
    """Base64 of bytes; a text must be base64 already. Raises `ToolError`."""
    if isinstance(data, str):
        _decoded(data, what)
        return data
    return base64.b64encode(_decoded(data, what)).decode("ascii")


def _decoded(data: object, what: str) -> bytes:
    if isinstance(data, str):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ToolError(
                f"{what}: data that is a text must be base64; pass bytes to have them encoded."
            ) from None
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise ToolError(f"{what}: data must be bytes or a base64 text, not {type(data).__name__}.")


def field_fault(wire: Mapping[str, Any]) -> str | None:
    """What the host, or a client, refuses of a block's optional fields; None when they are right."""
    for name in ("title", "description", "mimeType", "name"):
        if name in wire and not isinstance(wire[name], str):
            return f"{name} must be a text, not {type(wire[name]).__name__}"
    size = wire.get("size", 0)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        return f"size must be a whole number of bytes, got {shape_of(size)}"
    notes = wire.get("annotations")
    if notes is None:
        return None
    if not isinstance(notes, Mapping):
        return f"annotations must be an object, not {type(notes).__name__}"
    audience, priority = notes.get("audience", ()), notes.get("priority", 0)
    if not isinstance(audience, list | tuple) or any(role not in ("user", "assistant") for role in audience):
        return f"annotations.audience must be a list of 'user' and 'assistant', got {shape_of(audience)}"
    if isinstance(priority, bool) or not isinstance(priority, int | float) or not 0 <= priority <= 1:
        return f"annotations.priority must be a number from 0 to 1, got {shape_of(priority)}"
    return None


def _check_fields(block: McpContentBlock) -> None:
    fault = field_fault(block.to_wire())
    if fault is not None:
        raise ToolError(f"{type(block).__name__}: {fault}.")


def _check_uri(uri: object, what: str) -> None:
    if not isinstance(uri, str) or not _URI.fullmatch(uri):
        raise ToolError(f"{what}: uri must be absolute, like 'https://…' or 'file:///…', not {shape_of(uri)}.")


def _is_sdk(value: object, names: tuple[str, ...]) -> bool:
    kind = type(value)
    return kind.__module__.startswith(_SDK_PACKAGES) and kind.__name__ in names


def _present(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
