"""What a tool's author uses. A tool imports from here only.

The names are loaded when first asked for: the app itself, which needs a few of the modules below at load, must
not pay for the ones that only tools need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.errors import ToolError as ToolError
    from shared.tool.content import McpAudioContent as McpAudioContent
    from shared.tool.content import McpContentBlock as McpContentBlock
    from shared.tool.content import McpImageContent as McpImageContent
    from shared.tool.content import McpTextContent as McpTextContent
    from shared.tool.content import McpToolResponse as McpToolResponse
    from shared.tool.context import Context as Context
    from shared.tool.decorator import tool as tool
    from shared.tool.spec import ToolAnnotations as ToolAnnotations

_HOME = {
    "Context": "shared.tool.context",
    "McpAudioContent": "shared.tool.content",
    "McpContentBlock": "shared.tool.content",
    "McpImageContent": "shared.tool.content",
    "McpTextContent": "shared.tool.content",
    "McpToolResponse": "shared.tool.content",
    "ToolAnnotations": "shared.tool.spec",
    "ToolError": "shared.errors",
    "tool": "shared.tool.decorator",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"shared.tool has no '{name}'; it offers {', '.join(__all__)}")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)
