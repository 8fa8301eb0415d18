"""What a tool's author uses. A tool imports from here only.

The names are loaded when first asked for: the app itself, which needs a few of the modules below at load, must
not pay for the ones that only tools need. No module here may be called like one of them: once imported, the
module would stand in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.errors import ToolError as ToolError
    from shared.tool.call import ToolCall as ToolCall
    from shared.tool.content import McpAudioContent as McpAudioContent
    from shared.tool.content import McpContentBlock as McpContentBlock
    from shared.tool.content import McpImageContent as McpImageContent
    from shared.tool.content import McpResourceContent as McpResourceContent
    from shared.tool.content import McpResourceLinkContent as McpResourceLinkContent
    from shared.tool.content import McpTextContent as McpTextContent
    from shared.tool.content import McpToolResponse as McpToolResponse
    from shared.tool.context import Context as Context
    from shared.tool.decorator import tool as tool
    from shared.tool.prompts import PromptMessage as PromptMessage
    from shared.tool.prompts import prompt as prompt
    from shared.tool.resources import resource as resource
    from shared.tool.spec import ToolAnnotations as ToolAnnotations

_HOME = {
    "Context": "shared.tool.context",
    "McpAudioContent": "shared.tool.content",
    "McpContentBlock": "shared.tool.content",
    "McpImageContent": "shared.tool.content",
    "McpResourceContent": "shared.tool.content",
    "McpResourceLinkContent": "shared.tool.content",
    "McpTextContent": "shared.tool.content",
    "McpToolResponse": "shared.tool.content",
    "PromptMessage": "shared.tool.prompts",
    "ToolAnnotations": "shared.tool.spec",
    "ToolCall": "shared.tool.call",
    "ToolError": "shared.errors",
    "prompt": "shared.tool.prompts",
    "resource": "shared.tool.resources",
    "tool": "shared.tool.decorator",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"shared.tool has no '{name}'; it offers {', '.join(__all__)}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)
