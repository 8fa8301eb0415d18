"""What an upstream tool has answered: content blocks and the result around them, all immutable.

Source: the HoloDeck data model (ContentBlock, MCPToolResult). Fields beyond it keep what an MCP block carries
besides, so that nothing is lost on the way through.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import MCPError


class BinaryForm(StrEnum):
    """What a binary block was on the wire."""

    #: An embedded resource with base64 data.
    BLOB = "blob"
    #: An embedded resource with a text: `data` is its UTF-8.
    TEXT = "text"
    #: A link to a resource: `data` is empty. Nobody fetches it here.
    LINK = "link"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class _Block(_Frozen):
    #: `audience`, `priority`, `lastModified`, as the MCP specification has them.
    annotations: dict[str, Any] | None = None
    #: The block's `_meta`.
    meta: dict[str, Any] | None = None
    #: Fields of the wire block that have no attribute here, under their wire names.
    extra: dict[str, Any] | None = None


class TextContent(_Block):
    type: Literal["text"] = "text"
    text: str


class ImageContent(_Block):
    """`data`: standard base64, checked when it came over the wire."""

    type: Literal["image"] = "image"
    data: str = Field(repr=False)
    mime_type: str


class AudioContent(_Block):
    """`data`: standard base64, checked when it came over the wire."""

    type: Literal["audio"] = "audio"
    data: str = Field(repr=False)
    mime_type: str


class BinaryContent(_Block):
    """A resource: embedded, with its data, or linked, without."""

    type: Literal["binary"] = "binary"
    data: bytes = Field(repr=False)
    mime_type: str | None = None
    uri: str | None = None
    form: BinaryForm = BinaryForm.BLOB
    name: str | None = None
    title: str | None = None
    description: str | None = None
    #: Bytes, as a link states them.
    size: int | None = None
    icons: list[Any] | None = None
    #: The `_meta` of an embedded resource itself, beside the block's.
    resource_meta: dict[str, Any] | None = None


type ContentBlock = Annotated[
    TextContent | ImageContent | AudioContent | BinaryContent, Field(discriminator="type")
]


class MCPToolResult(_Frozen):
    """The answer to one call. Exactly one of success and `error`."""

    success: bool
    content: tuple[ContentBlock, ...] = ()
    error: MCPError | None = None
    #: `server`, `tool`, `durationMs` and `requestId` where known.
    metadata: dict[str, Any] = Field(default_factory=dict)
    #: `structuredContent`, any JSON; None: there is none.
    structured_content: Any = None
    #: Whether the tool itself has answered with an error; false where the call did not come to an answer.
    is_error: bool = False
    #: The result's `_meta`.
    meta: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.success == (self.error is not None):
            raise ValueError("error: must be given for a failed result, and for no other")
        return self

    @classmethod
    def success_result(
        cls,
        content: Sequence[ContentBlock] = (),
        metadata: dict[str, Any] | None = None,
        *,
        structured_content: Any = None,
        meta: dict[str, Any] | None = None,
    ) -> MCPToolResult:
        return cls(
            success=True,
            content=tuple(content),
            metadata=metadata or {},
            structured_content=structured_content,
            meta=meta,
        )

    @classmethod
    def error_result(cls, error: MCPError | str, metadata: dict[str, Any] | None = None) -> MCPToolResult:
        """For a call that came to no answer. A text becomes an `MCPError` of the server in `metadata`."""
        if isinstance(error, str):
            error = MCPError(error, (metadata or {}).get("server"))
        return cls(success=False, error=error, metadata=metadata or {})

    @property
    def text(self) -> str:
        """All text blocks, a line each."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))
