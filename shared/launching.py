"""Calls of other tools from a running one: `toolboxAPI.invocation.launchTool`.

The child is a call like any other, for the same owner, checked and recorded; as a job it outlives neither its
parent's deadline nor its patience. It takes a place of its own: a parent that waits for a child keeps its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Final

from shared.errors import ToolError
from shared.invoke import Invoker
from shared.tool.context import Context
from shared.tool.handler import Catalogue, ToolEntry
from shared.tool.resolving import Resolver, resolver
from shared.tool.spec import JsonObject, ToolSpec

#: Calls within calls.
DEPTH_LIMIT: Final = 5


class ToolLauncher:
    """Launches the catalogue's tools."""

    def __init__(self, catalogue: Catalogue, invoker: Invoker, find: Resolver | None = None) -> None:
        """`find`: by which names; None: by those that need no other server."""
        self._catalogue = catalogue
        self._invoker = invoker
        self._resolve = find or resolver(catalogue)

    async def launch(self, context: Context, tool: str, arguments: JsonObject) -> JsonObject:
        """The structured result. Raises `ToolError` with the child's own text."""
        entry = self._find(tool)
        if context.depth + 1 > DEPTH_LIMIT:
            raise ToolError(f"Failed to launch tool: calls of tools are nested more than {DEPTH_LIMIT} deep.")
        left = None if context.deadline is None else max(context.deadline - time.monotonic(), 0)
        payload = json.dumps({"name": entry.spec.name, "arguments": arguments})
        result = await self._invoker.launched(
            entry,
            payload,
            owner=context.owner,
            depth=context.depth + 1,
            project=context.project,
            wait_ms=None if left is None else int(left * 1000),
        )
        if result.is_error:
            raise ToolError(f"Failed to launch tool: {result.text}")
        return result.structured or {"content": list(result.content)}

    def find(self, capabilities: Sequence[str]) -> list[JsonObject]:
        wanted = set(capabilities)
        return [
            _shown(entry.spec) for entry in self._catalogue.values() if wanted & set(entry.spec.capabilities)
        ]

    def capabilities(self) -> list[str]:
        return sorted({tag for entry in self._catalogue.values() for tag in entry.spec.capabilities})

    def _find(self, tool: str) -> ToolEntry:
        entry = self._resolve(tool)
        if entry is None:
            raise ToolError(f"Failed to launch tool: there is no tool '{tool[:80]}'.")
        return entry


def _shown(spec: ToolSpec) -> JsonObject:
    return {
        "toolId": spec.tool_id,
        "toolName": spec.name,
        "title": spec.title,
        "description": spec.description,
        "capabilities": list(spec.capabilities),
    }
