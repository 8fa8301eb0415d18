"""The tools `server_status` and `tool_list`: upstream servers and callable tools, for agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final

from pydantic import Field

from shared.errors import ToolError
from shared.tool import Context, ToolAnnotations, tool
from shared.tool.handler import ToolEntry
from shared.tool.spec import JsonObject
from shared.upstream.publish import ORIGIN
from shared.upstream.status import Servers

_SERVER: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "scope": {"type": "string", "enum": ["global", "project"]},
        "type": {"type": "string", "description": "stdio, sse, websocket or http; empty for a faulty entry."},
        "description": {"type": "string"},
        "connected": {"type": "boolean"},
        "tool_count": {"type": "integer"},
        "has_log": {"type": "boolean"},
        "error": {"type": "string"},
        "state": {"type": "string"},
        "instance": {"type": "string", "description": "Of the app: each has its own connections."},
        "session_id": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "object"}},
        "log": {"type": "string"},
    },
    "required": ["name", "scope", "connected", "tool_count", "error", "state"],
}
_SERVERS: Final[JsonObject] = {
    "type": "object",
    "properties": {"servers": {"type": "array", "items": _SERVER}},
    "required": ["servers"],
}
_TOOLS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "modes": {"type": "array", "items": {"type": "string"}},
                    "executionModes": {"type": "array", "items": {"type": "string"}},
                    "capabilities": {"type": "array", "items": {"type": "string"}},
                    "server": {"type": "string", "description": "The upstream server it is from, if any."},
                    "qualifiedName": {
                        "type": "string",
                        "description": "server.tool, as policies, launchTool and the page know it.",
                    },
                },
                "required": ["name", "title", "description"],
            },
        }
    },
    "required": ["tools"],
}
_READS: Final = ToolAnnotations(read_only=True, open_world=False)


def server_tools(
    servers: Callable[[], Servers], tools: Callable[[], Iterable[ToolEntry]]
) -> list[Callable[..., Any]]:
    """The two tools. Both arguments are asked at each call: they are known later than this."""

    @tool(title="Upstream servers", result_schema=_SERVERS, annotations=_READS)
    async def server_status(
        context: Context,
        name: Annotated[str | None, Field(description="Only this server, with its tools and log.")] = None,
    ) -> dict[str, Any]:
        """Lists the other MCP servers whose tools this one publishes: their state, tools and last error.

        A server is contacted at the first call of one of its tools, so one that is not connected yet is fine.
        """
        if name is None:
            return {"servers": await servers().all(context.owner, context.project)}
        found = await servers().one(name, context.owner, context.project)
        if found is None:
            raise ToolError(f"There is no server '{name[:80]}'.")
        return {"servers": [found]}

    @tool(title="List tools", result_schema=_TOOLS, annotations=_READS)
    async def tool_list(
        context: Context,
        capability: Annotated[str | None, Field(description="Only tools that have this capability.")] = None,
    ) -> dict[str, Any]:
        """Lists the tools that you may call, with how each can be run.

        tools/list shows every tool of the server; this one leaves out what your project and policy refuse.
        """
        known = servers()
        return {
            "tools": [
                _shown(entry)
                for entry in sorted(tools(), key=lambda one: one.spec.name.lower())
                if (capability is None or capability in entry.spec.capabilities)
                and await known.may_call(entry, context.owner, context.project)
            ]
        }

    return [server_status, tool_list]


def _shown(entry: ToolEntry) -> JsonObject:
    spec = entry.spec
    shown: JsonObject = {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "modes": [str(mode) for mode in spec.rules.modes],
        "executionModes": [str(mode) for mode in spec.rules.execution_modes],
    }
    if spec.capabilities:
        shown["capabilities"] = list(spec.capabilities)
    origin = spec.metadata.get(ORIGIN)
    if isinstance(origin, dict):
        shown |= {"server": origin["server"], "qualifiedName": origin["qualifiedName"]}
    return shown
