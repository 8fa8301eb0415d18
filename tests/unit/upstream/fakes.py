"""What unit tests here stand on: settings with a configuration, and servers that are only told of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import MCPConnectionError, MCPError
from shared.tool.context import Context, NullSink, Sink
from shared.tool.spec import ExecutionMode, Mode
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.pool import ServerStatus
from shared.upstream.connection.state import ServerState
from shared.upstream.content.convert import from_wire
from shared.upstream.content.model import MCPToolResult
from shared.upstream.model import UpstreamPrompt, UpstreamTool
from shared.upstream.settings import UpstreamSettings

SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}


def configured(
    root: Path,
    servers: Mapping[str, Any],
    projects: Mapping[str, Mapping[str, Any]] | None = None,
    **settings: Any,
) -> UpstreamSettings:
    """`servers`: those of mcp_servers.json; an entry that says nothing is a server over HTTP."""
    write(root, servers)
    for project, own in (projects or {}).items():
        write(root / "projects" / project, own)
    granted = settings.pop("granted", {"ana": tuple(projects or {})})
    return UpstreamSettings(root=root, servers_file=root / "mcp_servers.json", projects=granted, **settings)


def write(folder: Path, servers: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    entries = {name: entry or {"url": f"https://{name}.example.com/mcp"} for name, entry in servers.items()}
    (folder / "mcp_servers.json").write_text(json.dumps({"mcpServers": entries}))


def listed(name: str, **fields: Any) -> UpstreamTool:
    return UpstreamTool(name, **{"description": f"Does {name}.", "input_schema": SCHEMA, **fields})


@dataclass
class World:
    """What the servers have: (name, project) or name -> tools; an error: it cannot be reached."""

    tools: dict[Any, Sequence[UpstreamTool] | Exception]
    #: Name -> prompts; an error: they cannot be listed.
    prompts: dict[Any, Sequence[UpstreamPrompt] | MCPError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    #: Raised by closing.
    stuck: Exception | None = None

    def connect(self, config: ServerConfig, settings: UpstreamSettings) -> Any:
        return Connection(config, self)


class Connection:
    """As much of `ServerConnection` as `sync` uses."""

    def __init__(self, config: ServerConfig, world: World) -> None:
        self._config = config
        self._world = world
        self.tools: tuple[UpstreamTool, ...] = ()
        self.prompts: tuple[UpstreamPrompt, ...] = ()
        self.prompts_error: MCPError | None = None

    async def connect(self) -> None:
        config, world = self._config, self._world
        world.asked.append(config.name)
        found = world.tools.get((config.name, config.project), world.tools.get(config.name, ()))
        if isinstance(found, Exception):
            raise found
        self.tools = tuple(found) if config.load_tools else ()
        prompts = world.prompts.get(config.name, ())
        if config.load_prompts and isinstance(prompts, MCPError):
            self.prompts_error = prompts
        elif config.load_prompts and not isinstance(prompts, MCPError):
            self.prompts = tuple(prompts)

    async def disconnect(self) -> None:
        self._world.closed.append(self._config.name)
        if self._world.stuck is not None:
            raise self._world.stuck


def unreachable(name: str = "down") -> MCPConnectionError:
    return MCPConnectionError(f"Server '{name}' cannot be reached.", name)


@dataclass
class Pool:
    """As much of `ConnectionPool` as the gateway uses. `answer`: the wire form of a result, or an error."""

    answer: Mapping[str, Any] | MCPError = field(
        default_factory=lambda: {"content": [{"type": "text", "text": "done"}]}
    )
    listing: Mapping[str, UpstreamTool] | None = None
    state: ServerState = ServerState.CREATED
    error: str | None = None
    log: str = ""
    session_id: str | None = None
    prompt_answer: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    kept: list[set[str]] = field(default_factory=list)

    async def call(
        self, config: ServerConfig, tool: str, arguments: Any, *, on_progress: Any, on_log: Any, **how: Any
    ) -> MCPToolResult:
        self.calls.append(
            {"server": config.name, "scope": config.scope, "tool": tool, "arguments": arguments, **how}
        )
        on_progress(1, 4, "a quarter")
        on_progress(5, None, None)
        on_log("warn", "careful")
        if isinstance(self.answer, MCPError):
            raise self.answer
        return from_wire(self.answer, server=config.name, tool=tool, duration_ms=1.0, request_id="r1")

    async def prompt(
        self, config: ServerConfig, name: str, arguments: Any, *, timeout: float, owner: str
    ) -> Any:
        self.calls.append({"server": config.name, "prompt": name, "arguments": arguments})
        return self.prompt_answer

    def listed(self, config: ServerConfig) -> Mapping[str, UpstreamTool] | None:
        return self.listing

    def status(self, config: ServerConfig) -> ServerStatus:
        return ServerStatus(self.state, self.error, self.session_id, 0, self.log)

    async def keep(self, configs: Sequence[ServerConfig]) -> None:
        self.kept.append({config.key for config in configs})

    async def close(self) -> None:
        return None


class Heard(NullSink):
    """What a job would have heard."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def progress(self, percent: object, message: object) -> None:
        self.told.append(("progress", percent, message))

    def log(self, level: str, message: object) -> None:
        self.told.append((level, message))


def context(
    owner: str = "default",
    project: str | None = None,
    timeout_ms: int = 60_000,
    sink: Sink | None = None,
    timeout_asked: bool = False,
) -> Context:
    return Context(
        tool_id="mcp:docs:read",
        tool_name="docs_read",
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.INLINE,
        correlation_id="mcp-1",
        timeout_ms=timeout_ms,
        timeout_asked=timeout_asked,
        owner=owner,
        project=project,
        sink=sink or NullSink(),
    )
