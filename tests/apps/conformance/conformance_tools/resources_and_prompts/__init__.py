"""The resources and prompts that the conformance suite asks for by name."""

from typing import Annotated

from shared.tool import McpImageContent, McpResourceContent, PromptMessage, prompt, resource
from tests.apps.conformance.samples import PNG


@resource(uri="test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@resource(uri="test://static-binary", name="static-binary")
def static_binary() -> bytes:
    """An image that never changes."""
    return PNG


@resource(uri="test://template/{id}/data", name="template")
def template(id: str) -> dict[str, object]:  # noqa: A002 - the suite's name
    """Data of an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second test argument"]
) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],
) -> list[PromptMessage]:
    """A prompt that carries a resource."""
    embedded = McpResourceContent(resourceUri, text="Embedded resource content for testing.")
    return [
        PromptMessage("user", embedded),
        PromptMessage("user", "Please process the embedded resource above."),
    ]


@prompt
def test_prompt_with_image() -> list[PromptMessage]:
    """A prompt that carries an image."""
    return [
        PromptMessage("user", McpImageContent(PNG)),
        PromptMessage("user", "Please analyze the image above."),
    ]
