"""Tools of other MCP servers, published beside the app's own. See docs/upstream.md.

The names for other code are loaded when first asked for: `from shared.upstream import ServerConnection`.
Loading this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shared.upstream.config.loading import Loaded as Loaded
    from shared.upstream.config.loading import effective as effective
    from shared.upstream.config.loading import load as load
    from shared.upstream.config.model import CommandType as CommandType
    from shared.upstream.config.model import ServerConfig as ServerConfig
    from shared.upstream.config.model import TransportType as TransportType
    from shared.upstream.connection.connection import ServerConnection as ServerConnection
    from shared.upstream.connection.pool import ConnectionPool as ConnectionPool
    from shared.upstream.connection.state import ServerState as ServerState
    from shared.upstream.content.model import AudioContent as AudioContent
    from shared.upstream.content.model import BinaryContent as BinaryContent
    from shared.upstream.content.model import ContentBlock as ContentBlock
    from shared.upstream.content.model import ImageContent as ImageContent
    from shared.upstream.content.model import MCPToolResult as MCPToolResult
    from shared.upstream.content.model import TextContent as TextContent
    from shared.upstream.policy import Policy as Policy
    from shared.upstream.settings import UpstreamSettings as UpstreamSettings
    from shared.upstream.settings import upstream_settings as upstream_settings

#: Module below this package -> its names.
_HOME: Final = {
    "config.loading": ("Loaded", "effective", "load"),
    "config.model": ("CommandType", "ServerConfig", "TransportType"),
    "connection.connection": ("ServerConnection",),
    "connection.pool": ("ConnectionPool",),
    "connection.state": ("ServerState",),
    "content.model": (
        "AudioContent",
        "BinaryContent",
        "ContentBlock",
        "ImageContent",
        "MCPToolResult",
        "TextContent",
    ),
    "policy": ("Policy",),
    "settings": ("UpstreamSettings", "upstream_settings"),
}
_MODULES: Final = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"shared.upstream has no '{name}'; it offers {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
