"""One call of another server's tool: scope, policy, connection, result.

Everything heavy (pydantic, the MCP SDK, the configuration) is loaded at the first call, off the event loop.
What was true when the tools were published is checked again here: the caller's project and policy, disabled
tools and servers, and whether the server still lists the tool as it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shared import storage
from shared.errors import (
    ConfigError,
    JobCancelledError,
    MCPConfigError,
    MCPTimeoutError,
    MCPToolNotFoundError,
    ToolError,
)
from shared.invocations.log import LINES
from shared.tool.call import caller
from shared.tool.content import McpContentBlock
from shared.tool.context import Context
from shared.tool.json_form import dumps
from shared.tool.prompts import PromptMessage
from shared.tool.result import META_PREFIX, ToolResult, Wrapped
from shared.tool.spec import RESULT_KEY, JsonObject
from shared.upstream.lock import LockedPrompt, LockedTool, hash_of, scope_of
from shared.upstream.names import canonical, normalize
from shared.upstream.policy import Policy
from shared.upstream.settings import UpstreamSettings

if TYPE_CHECKING:
    from shared.upstream.config.loading import Loaded
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.pool import ConnectionPool

#: Seconds before a call's own end at which its server is given up, so that the error can name it.
MARGIN: Final = 0.1
#: Seconds for which a configuration that was read is taken as it was.
FRESH: Final = 1.0
#: Seconds that a prompt may take.
PROMPT_LIMIT: Final = 50.0
_SYNC: Final = "`python3 dev.py upstream sync` publishes what is there now"


class Drift(StrEnum):
    """How a server's list of tools differs from what was locked of it."""

    #: The server is not connected here, or lists no tools.
    UNKNOWN = "unknown"
    NONE = "locked"
    CHANGED = "changed"
    GONE = "gone"


class Gateway:
    """Carries calls to the servers. One per app; its connections belong to the event loop that calls it."""

    def __init__(self, settings: UpstreamSettings, policy: Policy) -> None:
        self.settings = settings
        self.policy = policy
        self._loaded: dict[str | None, tuple[float, Loaded]] = {}
        self._pool: tuple[asyncio.AbstractEventLoop, ConnectionPool] | None = None

    async def call(self, tool: LockedTool, arguments: JsonObject, context: Context) -> ToolResult:
        """The server's answer. Raises `MCPError`, and `ToolError` for a call that may not be made."""
        project = self.settings.project_of(context.owner, context.project)
        config = await self._server(tool.server, tool.qualified, project)
        self._check_tool(tool, config, context.owner, project)
        ends = time.monotonic() + context.timeout_ms / 1000
        if context.deadline is not None:
            ends = min(ends, context.deadline)
        seconds = context.timeout_ms / 1000
        started = time.monotonic()
        _told("start", tool, context)
        outcome = "failed"
        try:
            result = await self.pool().call(
                config,
                tool.tool,
                arguments,
                timeout=max(ends - time.monotonic() - MARGIN, 0.001),
                on_progress=_progress_to(context),
                on_log=_log_to(context),
                repeatable=tool.annotations.get("readOnlyHint") is True
                or tool.annotations.get("idempotentHint") is True,
            )
            outcome = "completed" if result.success else "failed"
        except MCPTimeoutError as error:
            text = f"Server '{config.name}' did not answer the call of '{tool.tool}' within {seconds:g} s"
            raise MCPTimeoutError(self._or_drift(text, tool, config), config.name, timeout=seconds) from error
        except MCPToolNotFoundError:
            raise MCPToolNotFoundError(tool.tool, config.name, _SYNC) from None
        finally:
            _told("end", tool, context, outcome=outcome, durationMs=_since(started))
        from shared.upstream.content.convert import to_tool_result

        answer = await to_tool_result(result, context, self.settings)
        if tool.scopes[_scope(config)].wraps and not answer.is_error:
            answer = _wrapped(answer, result.structured_content)
        return self._with_drift(answer, tool, config)

    async def prompt(self, prompt: LockedPrompt, arguments: dict[str, str | None]) -> list[Any]:
        """The messages of a server's prompt. The caller is the one of the running request."""
        owner = caller.get()
        project = self.settings.project_of(owner, None)
        config = await self._server(prompt.server, prompt.qualified, project)
        if _scope(config) not in prompt.scopes:
            raise ToolError(f"The prompt '{prompt.qualified}' is not in your project.")
        if not self.policy.allows(owner, project, canonical(prompt.server, prompt.prompt)):
            raise ToolError(f"The prompt '{prompt.qualified}' is blocked for you.")
        given = {name: value for name, value in arguments.items() if value is not None}
        found = await self.pool().prompt(config, prompt.prompt, given, timeout=PROMPT_LIMIT)
        return [PromptMessage(one["role"], _Block(one["content"])) for one in found.get("messages", ())]

    async def loaded(self, project: str | None) -> Loaded:
        """The configuration of a scope, read again after `FRESH` seconds. Off the event loop. Never raises."""
        known = self._loaded.get(project)
        if known is not None and time.monotonic() - known[0] < FRESH:
            return known[1]
        from_text = await storage.run(_load, self.settings, project)
        if known is not None and known[1] is not from_text:
            await self._retire()
        self._loaded[project] = (time.monotonic(), from_text)
        return from_text

    def pool(self) -> ConnectionPool:
        """The connections of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool[0] is not loop:
            from shared.upstream.connection.pool import ConnectionPool

            self._pool = (loop, ConnectionPool(self.settings))
        return self._pool[1]

    async def close(self) -> None:
        """Ends all connections."""
        if self._pool is not None:
            pool, self._pool = self._pool[1], None
            await pool.close()

    async def _server(self, key: str, qualified: str, project: str | None) -> ServerConfig:
        """The server that the caller's scope means. Raises `ToolError` that says why there is none."""
        loaded = await self.loaded(project)
        config = loaded.servers.get(key)
        if config is None:
            fault = next((one for one in loaded.faults if key_of(one.name) == key), None)
            if fault is not None:
                raise ConfigError(f"{fault.name}.{fault.field}", fault.message)
            where = "in your project" if project is not None else "configured any more"
            raise ToolError(f"'{qualified}' cannot be called: its server '{key}' is not {where}.")
        if config.disabled:
            raise ToolError(f"'{qualified}' cannot be called: its server '{config.name}' is switched off.")
        return config

    def _check_tool(self, tool: LockedTool, config: ServerConfig, owner: str, project: str | None) -> None:
        if _scope(config) not in tool.scopes:
            where = "in your project" if config.project is not None else "one of the server's tools"
            raise ToolError(f"'{tool.qualified}' is not {where}; {_SYNC}.")
        if tool.tool in config.disabled_tools:
            raise ToolError(f"Tool {tool.tool} is disabled for server {config.name}.")
        if not self.policy.allows(owner, project, canonical(tool.server, tool.tool)):
            raise ToolError(f"Tool '{tool.qualified}' is blocked for you by this app's policy.")

    def drift(self, tool: LockedTool, config: ServerConfig) -> Drift:
        """How what the connected server lists differs from what was locked."""
        listed = self.pool().listed(config)
        if listed is None:
            return Drift.UNKNOWN
        found = listed.get(tool.tool)
        if found is None:
            return Drift.GONE
        return Drift.NONE if hash_of(found) == tool.scopes[_scope(config)].hash else Drift.CHANGED

    def _or_drift(self, text: str, tool: LockedTool, config: ServerConfig) -> str:
        return f"{text} {_CHANGED}" if self.drift(tool, config) is Drift.CHANGED else text

    def _with_drift(self, answer: ToolResult, tool: LockedTool, config: ServerConfig) -> ToolResult:
        if self.drift(tool, config) is not Drift.CHANGED:
            return answer
        meta = {**answer.meta, f"{META_PREFIX}upstreamChanged": True}
        if not answer.is_error:
            return replace(answer, meta=meta)
        return replace(answer, meta=meta, content=(*answer.content, {"type": "text", "text": _CHANGED}))

    async def _retire(self) -> None:
        """Closes the connections of servers that no known configuration names any more."""
        configs = [config for _, one in self._loaded.values() for config in one.servers.values()]
        if self._pool is not None:
            await self._pool[1].keep(configs)


_CHANGED: Final = f"(The tool has changed at its server since it was published here; {_SYNC}.)"


def key_of(name: str) -> str:
    """The server's key; the text itself where it cannot be a server's name."""
    try:
        return normalize(name)
    except MCPConfigError:
        return name


def _wrapped(answer: ToolResult, data: Any) -> ToolResult:
    """The answer of a tool whose published schema has everything under `result`, objects too."""
    if not isinstance(data, dict):
        return answer  # put there already, or nothing at all
    return replace(answer, structured={RESULT_KEY: answer.structured}, wrapped=Wrapped.JSON)


def _scope(config: ServerConfig) -> str:
    return scope_of(config.project)


def _load(settings: UpstreamSettings, project: str | None) -> Loaded:
    # With the SDK, so that the event loop does not wait for its import at the first call.
    import shared.upstream.connection.pool
    import shared.upstream.content.convert  # noqa: F401
    from shared.upstream.config.loading import load

    return load(settings, project)


class _Block(McpContentBlock):
    """A server's content block, as it came."""

    type: ClassVar[str] = "upstream"

    def __init__(self, wire: JsonObject) -> None:
        self._wire = wire

    def to_wire(self) -> JsonObject:
        return self._wire


def _progress_to(context: Context) -> Callable[[float, float | None, str | None], None]:
    """Passes a server's progress on: a part of a total as percent, anything else as text only."""

    def report(progress: float, total: float | None, message: str | None) -> None:
        percent = None if not total or total <= 0 else progress / total * 100
        if percent is None and message is None:
            message = f"{progress:g}"
        # A cancelled attempt is ended by its worker; what the server still says is nobody's business.
        with contextlib.suppress(JobCancelledError):
            context.update_progress(percent, message)

    return report


def _log_to(context: Context) -> Callable[[str, str], None]:
    return context.sink.log


def _since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)


def _told(event: str, tool: LockedTool, context: Context, **more: object) -> None:
    """A line of the invocation log: a call's start and end at the server have the call's own correlation id."""
    if LINES.isEnabledFor(20):
        line = {
            "event": f"upstream.{event}",
            "correlationId": context.correlation_id,
            "server": tool.server,
            "tool": tool.tool,
            **more,
        }
        LINES.info("%s", dumps(line))
