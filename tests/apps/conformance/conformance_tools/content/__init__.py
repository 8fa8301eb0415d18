"""A tool for each kind of content block, with the names and the texts that the conformance suite asks for."""

from shared.tool import (
    McpAudioContent,
    McpContentBlock,
    McpImageContent,
    McpResourceContent,
    McpResourceLinkContent,
    McpTextContent,
    McpToolResponse,
    tool,
)
from tests.apps.conformance.samples import PNG, WAV


@tool
def test_simple_text() -> McpTextContent:
    """One text block."""
    return McpTextContent("This is a simple text response for testing.")


@tool
def test_image_content() -> McpImageContent:
    """One image block: a PNG of one red pixel."""
    return McpImageContent(PNG, "image/png")


@tool
def test_audio_content() -> McpAudioContent:
    """One audio block: a WAV of silence."""
    return McpAudioContent(WAV, "audio/wav")


@tool
def test_embedded_resource() -> McpResourceContent:
    """One embedded text resource."""
    return McpResourceContent(
        uri="test://embedded-resource",
        mime_type="text/plain",
        text="This is an embedded resource content.",
    )


@tool
def test_multiple_content_types() -> list[McpContentBlock]:
    """A text, an image and an embedded resource."""
    return [
        McpTextContent("Multiple content types test:"),
        McpImageContent(PNG, "image/png"),
        McpResourceContent(
            uri="test://mixed-content-resource",
            mime_type="application/json",
            text='{"test":"data","value":123}',
        ),
    ]


@tool
def every_content_type() -> McpToolResponse:
    """All five kinds of blocks, a binary resource among them, and structured data beside them."""
    return McpToolResponse(
        content=(
            McpTextContent("text"),
            McpImageContent(PNG, "image/png"),
            McpAudioContent(WAV, "audio/wav"),
            McpResourceContent(uri="test://blob", mime_type="image/png", blob=PNG),
            McpResourceLinkContent(uri="test://static-text", name="static-text"),
        ),
        structured_content={"blocks": 5},
    )
