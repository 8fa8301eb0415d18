"""What is known of the servers, as a caller may see it; their configuration, read anew for the operator.

Nothing here waits for a server.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from shared import storage
from shared.settings import DEFAULT_OWNER
from shared.tool.handler import ToolEntry
from shared.tool.spec import JsonObject
from shared.upstream.findings import findings_of
from shared.upstream.gateway import Gateway
from shared.upstream.lock import Lock, LockedTool, scope_of
from shared.upstream.names import canonical, key_of
from shared.upstream.publish import UpstreamEntry
from shared.upstream.settings import UpstreamSettings

if TYPE_CHECKING:
    from shared.upstream.config.faults import ConfigFault
    from shared.upstream.config.loading import Loaded
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.pool import ServerStatus

#: Tells apart whose connections are shown: each instance of the app has its own.
INSTANCE: Final = (os.environ.get("WEBSITE_INSTANCE_ID") or uuid.uuid4().hex)[:8]


class Servers:
    """The servers of one app. `entries`: what the app has registered, asked at each call."""

    def __init__(self, gateway: Gateway, lock: Lock) -> None:
        self._gateway = gateway
        self._lock = lock

    async def all(self, owner: str, project: str | None) -> list[JsonObject]:
        """One entry for each server of the caller's scope, and for each that cannot be used."""
        loaded = await self._gateway.loaded(project)
        known = [self._entry(config, owner, project) for config in loaded.servers.values()]
        broken = [_broken(name, faults) for name, faults in _by_name(loaded).items()]
        return [*known, *broken]

    async def one(self, name: str, owner: str, project: str | None) -> JsonObject | None:
        """A server with its tools and log, by any spelling of its name; None when the caller has none such."""
        loaded = await self._gateway.loaded(project)
        key = key_of(name)
        config = loaded.servers.get(key)
        if config is None:
            faults = {key_of(other): (other, found) for other, found in _by_name(loaded).items()}
            return _broken(*faults[key]) | {"tools": [], "log": ""} if key in faults else None
        status = self._gateway.pool().status(config)
        entry = self._entry(config, owner, project)
        if status.session_id:
            entry["session_id"] = status.session_id
        entry["tools"] = [self._tool(tool, config, owner, project) for tool in self._tools(config)]
        entry["log"] = _log(status, owner)
        return entry

    async def refresh(self) -> JsonObject:
        """Reads and builds the configuration of every scope anew, though none of its files has changed.

        Connections of servers that are configured otherwise now are closed, once their calls have ended; the
        others stay. What it says of all projects is the operator's to see:
        `{"servers": how many, "faults": [{"scope", "server", "reason"}], "warnings": [...], "instance"}`.
        """
        settings = self._gateway.settings
        everything = await storage.run(_load_all, settings)
        for project in everything:
            await self._gateway.loaded(project)  # takes what is current, and retires what is not
        found = findings_of(everything)
        servers = {(one.project, one.key) for loaded in everything.values() for one in loaded.servers.values()}
        return {
            "servers": len(servers),
            "faults": [one._asdict() for one in found.faults],
            "warnings": [one._asdict() for one in found.warnings],
            "instance": INSTANCE,
        }

    def _entry(self, config: ServerConfig, owner: str, project: str | None) -> JsonObject:
        status = self._gateway.pool().status(config)
        tools = [tool for tool in self._tools(config) if self._is_usable(tool, config, owner, project)]
        error = "Disabled in config" if config.disabled else status.error or ""
        return {
            "name": config.name,
            "scope": str(config.scope),
            "type": str(config.transport),
            "description": config.description,
            "connected": bool(status.connected and not error),
            "tool_count": 0 if config.disabled else len(tools),
            "has_log": bool(_log(status, owner)),
            "error": error,
            "state": str(status.state),
            "instance": INSTANCE,
        }

    def _tools(self, config: ServerConfig) -> Iterable[LockedTool]:
        scope = scope_of(config.project)
        if not config.load_tools:
            return []
        return [tool for tool in self._lock.tools if tool.server == config.key and scope in tool.scopes]

    def _is_usable(self, tool: LockedTool, config: ServerConfig, owner: str, project: str | None) -> bool:
        return not self._is_disabled(tool, config) and self._is_allowed(tool, owner, project)

    def _is_disabled(self, tool: LockedTool, config: ServerConfig) -> bool:
        return tool.disabled or tool.tool in config.disabled_tools

    def _is_allowed(self, tool: LockedTool, owner: str, project: str | None) -> bool:
        return self._gateway.policy.allows(owner, project, canonical(tool.server, tool.tool))

    def _tool(self, tool: LockedTool, config: ServerConfig, owner: str, project: str | None) -> JsonObject:
        return {
            "name": tool.tool,
            "published_name": tool.name,
            "description": tool.description,
            "input_schema": tool.scopes[scope_of(config.project)].input_schema,
            "disabled": self._is_disabled(tool, config),
            "allowed": self._is_allowed(tool, owner, project),
            "state": self._gateway.drift(tool, config),
            "notes": list(tool.notes),
        }

    async def may_call(self, entry: ToolEntry, owner: str, project: str | None) -> bool:
        """Whether a call of the tool by that owner would be let through. True for the app's own tools."""
        if not isinstance(entry, UpstreamEntry):
            return True
        tool = entry.locked
        config = (await self._gateway.loaded(project)).servers.get(tool.server)
        return (
            config is not None
            and not config.disabled
            and config.load_tools
            and scope_of(config.project) in tool.scopes
            and self._is_usable(tool, config, owner, project)
        )


def _load_all(settings: UpstreamSettings) -> dict[str | None, Loaded]:
    from shared.upstream.config.loading import load_all

    return load_all(settings, refresh=True)


def _log(status: ServerStatus, owner: str) -> str:
    """What a server writes may speak of any caller's data: it is the operator's to read."""
    return status.log if owner == DEFAULT_OWNER else ""


def _by_name(loaded: Loaded) -> dict[str, list[ConfigFault]]:
    """The faults of servers that are not there because of them."""
    found: dict[str, list[ConfigFault]] = {}
    for fault in loaded.faults:
        if (fault.key or key_of(fault.name)) not in loaded.servers:
            found.setdefault(fault.name or "configuration", []).append(fault)
    return found


def _broken(name: str, faults: list[ConfigFault]) -> JsonObject:
    return {
        "name": name,
        "scope": str(faults[0].scope),
        "type": "",
        "description": "",
        "connected": False,
        "tool_count": 0,
        "has_log": False,
        "error": "; ".join(f"{fault.field}: {fault.message}" for fault in faults),
        "state": "error",
        "instance": INSTANCE,
    }
