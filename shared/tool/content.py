"""Content blocks: the parts that a tool's answer is made of besides its structured data.

Field names and rules are those of the MCP specification's `ContentBlock`; what the host needs to accept a block
(it fails the whole result otherwise) is checked when the block is made.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from shared.errors import ToolError
from shared.tool.spec import JsonObject

type Binary = bytes | bytearray | memoryview


class McpContentBlock(ABC):
    """One block. A subclass of your own states its `type` and its wire form and is used like a built-in."""

    type: ClassVar[str]

    @abstractmethod
    def to_wire(self) -> JsonObject:
        """The block as JSON, `type` included."""


@dataclass(frozen=True, slots=True)
class McpTextContent(McpContentBlock):
    text: str
    type: ClassVar[str] = "text"

    def to_wire(self) -> JsonObject:
        return {"type": self.type, "text": self.text}


@dataclass(frozen=True, slots=True)
class _Media(McpContentBlock):
    """`data`: bytes, which are base64-encoded for you, or a text that already is base64."""

    data: Binary | str = field(repr=False)
    mime_type: str

    def __post_init__(self) -> None:
        if not self.mime_type:
            raise ToolError(f"{self.type} content: mime_type is required, like '{self.type}/…'.")

    def to_wire(self) -> JsonObject:
        return {"type": self.type, "data": encode_binary(self.data), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class McpImageContent(_Media):
    type: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class McpAudioContent(_Media):
    type: ClassVar[str] = "audio"


@dataclass(frozen=True, slots=True)
class McpToolResponse:
    """Everything a tool can answer: blocks, structured data (a dict or a model), and whether it failed.

    A JSON text block is added when structured data comes without a text, for clients that read only text.
    """

    content: Sequence[McpContentBlock] = ()
    structured_content: Any = None
    is_error: bool = False


def encode_binary(data: Binary | str) -> str:
    """Base64 of bytes; a text is taken to be base64 already."""
    return data if isinstance(data, str) else base64.b64encode(data).decode("ascii")
