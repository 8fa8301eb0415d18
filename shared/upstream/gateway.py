"""One call of another server's tool: scope, policy, connection, result.

Everything heavy (pydantic, the MCP SDK, the configuration) is loaded at the first call, off the event loop.
What was true when the tools were published is checked again here: the caller's project and policy, disabled
tools and servers, and whether the server still lists the tool as it did.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from shared.errors import MCPError, MCPTimeoutError, MCPToolNotFoundError, ToolError
from shared.settings import DEFAULT_OWNER
from shared.tool.call import caller
from shared.tool.content import McpContentBlock
from shared.tool.context import Context
from shared.tool.execution import home_loop
from shared.tool.prompts import PromptMessage
from shared.tool.result import META_PREFIX, ToolResult, Wrapped, text_of
from shared.tool.spec import RESULT_KEY, JsonObject
from shared.upstream.lock import GLOBAL, LockedPrompt, LockedTool, hash_of, scope_of
from shared.upstream.names import canonical, key_of
from shared.upstream.policy import Policy
from shared.upstream.settings import UpstreamSettings
from shared.upstream.telling import Span, log_to, progress_to
from shared.upstream.watching import Configurations

if TYPE_CHECKING:
    from shared.upstream.config.loading import Loaded
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.pool import ConnectionPool
    from shared.upstream.model import UpstreamTool

_LOG = logging.getLogger(__name__)

#: Seconds before a call's own end at which its server is given up, so that the error can name it.
MARGIN: Final = 0.1
#: Seconds that a prompt may take.
PROMPT_LIMIT: Final = 50.0
_SYNC: Final = "`python3 dev.py upstream sync` publishes what is there now"
_CHANGED: Final = f"(The tool has changed at its server since it was published here; {_SYNC}.)"


class Drift(StrEnum):
    """How a server's list of tools differs from what was locked of it."""

    #: The server is not connected here, or lists no tools.
    UNKNOWN = "unknown"
    NONE = "locked"
    CHANGED = "changed"
    GONE = "gone"


class Gateway:
    """Carries calls to the servers. One per app; its connections belong to the app's event loop."""

    def __init__(self, settings: UpstreamSettings, policy: Policy) -> None:
        self.settings = settings
        self.policy = policy
        self._configurations = Configurations(settings, self._retire)
        self._pool: tuple[asyncio.AbstractEventLoop, ConnectionPool] | None = None
        #: (qualified name, scope) -> what was listed, and its hash.
        self._hashes: dict[tuple[str, str], tuple[UpstreamTool, str]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def call(self, tool: LockedTool, arguments: JsonObject, context: Context) -> ToolResult:
        """The server's answer. Raises `MCPError`, and `ToolError` for a call that may not be made."""
        try:
            return await _at_home(self._call(tool, arguments, context))
        except MCPError as error:
            raise _told(error, context.owner) from None

    async def prompt(self, prompt: LockedPrompt, arguments: dict[str, str | None]) -> list[PromptMessage]:
        """The messages of a server's prompt. The caller is the one of the running request. Raises as `call`."""
        try:
            return await _at_home(self._prompt(prompt, arguments, caller.get()))
        except MCPError as error:
            raise _told(error, caller.get()) from None

    async def loaded(self, project: str | None) -> Loaded:
        """The configuration of a scope (None: the global one)."""
        return await _at_home(self._configurations.of(project))

    def pool(self) -> ConnectionPool:
        """The connections. Only what does not wait may be asked on another loop than the app's own."""
        loop = _home()
        if self._pool is None or self._pool[0] is not loop:
            from shared.upstream.connection.pool import ConnectionPool

            self._pool = (loop, ConnectionPool(self.settings))
        return self._pool[1]

    def drift(self, tool: LockedTool, config: ServerConfig) -> Drift:
        """How what the connected server lists differs from what was locked."""
        listed = self.pool().listed(config)
        locked = tool.scopes.get(_scope(config))
        if listed is None or locked is None:
            return Drift.UNKNOWN
        found = listed.get(tool.tool)
        if found is None:
            return Drift.GONE
        return Drift.NONE if self._hash_of(found, tool, _scope(config)) == locked.hash else Drift.CHANGED

    def _hash_of(self, found: UpstreamTool, tool: LockedTool, scope: str) -> str:
        """Taken once of each tool that a server lists: it is asked for at every call."""
        known = self._hashes.get((tool.qualified, scope))
        if known is None or known[0] is not found:
            known = self._hashes[tool.qualified, scope] = (found, hash_of(found))
        return known[1]

    async def close(self) -> None:
        """Ends all connections."""
        if self._pool is not None:
            pool, self._pool = self._pool[1], None
            await pool.close()
        if self._closing:
            await asyncio.wait(set(self._closing))

    # A call.

    async def _call(self, tool: LockedTool, arguments: JsonObject, context: Context) -> ToolResult:
        project = self.settings.project_of(context.owner, context.project)
        config = await self._server(tool, project)
        self._check_tool(tool, config, context.owner, project)
        seconds = self._seconds(tool, config, context)
        ends = time.monotonic() + seconds
        if context.deadline is not None:
            ends = min(ends, context.deadline)
        with Span(tool, context, config.transport) as span:
            try:
                result = await self.pool().call(
                    config,
                    tool.tool,
                    arguments,
                    timeout=max(ends - time.monotonic() - MARGIN, 0.001),
                    on_progress=progress_to(context),
                    on_log=log_to(context),
                    owner=context.owner,
                    repeatable=_is_repeatable(tool),
                )
            except MCPTimeoutError as error:
                if time.monotonic() < ends - 2 * MARGIN:
                    raise  # a bound of the connection's own, which it names
                raise self._too_slow(tool, config, seconds) from error
            except asyncio.CancelledError as error:
                if time.monotonic() < ends - MARGIN:
                    raise
                # On a busy loop the call's own limit comes in the same turn as this one, and would name nobody.
                raise self._too_slow(tool, config, seconds) from error
            except MCPToolNotFoundError:
                raise MCPToolNotFoundError(tool.tool, config.name, _SYNC) from None
            span.outcome = "completed" if result.success else "failed"
        from shared.upstream.content.convert import to_tool_result

        answer = await to_tool_result(result, context, self.settings)
        if tool.scopes[_scope(config)].wraps and not answer.is_error:
            answer = _wrapped(answer, result.structured_content)
        return answer if self.drift(tool, config) is not Drift.CHANGED else _with_drift(answer)

    def _too_slow(self, tool: LockedTool, config: ServerConfig, seconds: float) -> MCPTimeoutError:
        text = f"Server '{config.name}' did not answer the call of '{tool.tool}' within {seconds:g} s"
        text += f" {_CHANGED}" if self.drift(tool, config) is Drift.CHANGED else "."
        return MCPTimeoutError(text, config.name, timeout=seconds)

    def _seconds(self, tool: LockedTool, config: ServerConfig, context: Context) -> float:
        """How long the server may take, from now on: `__pptb.timeoutMs`, else what the configuration says.

        Both up to what the call itself has, which was decided before: by its own limit, or when it was locked.
        """
        seconds = context.timeout_ms / 1000
        # More than was locked is a caller's word too: the rows of an earlier release's jobs do not say it.
        if not context.timeout_asked and context.timeout_ms <= tool.timeout_ms:
            seconds = min(seconds, config.call_timeout(self.settings))
        return seconds

    async def _server(self, of: LockedTool | LockedPrompt, project: str | None) -> ServerConfig:
        """The server that the caller's scope means. Raises `ToolError` that says why there is none."""
        loaded = await self._configurations.of(project)
        config = loaded.servers.get(of.server)
        if config is None:
            fault = next((one for one in loaded.faults if (one.key or key_of(one.name)) == of.server), None)
            if fault is not None:
                why = f"the configuration of its server '{fault.name}' is wrong: {fault.field}: {fault.message}"
            elif project is None and GLOBAL in of.scopes:
                why = f"its server '{of.server}' is not configured any more"
            else:
                why = f"its server '{of.server}' is not in your project"
            raise ToolError(f"'{of.qualified}' cannot be called: {why}.")
        if config.disabled:
            raise ToolError(f"'{of.qualified}' cannot be called: its server '{config.name}' is switched off.")
        if _scope(config) not in of.scopes:
            raise ToolError(
                f"'{of.qualified}' cannot be called: it is not in your project, "
                f"or was not when its server '{config.name}' was last asked; {_SYNC}."
            )
        return config

    def _check_tool(self, tool: LockedTool, config: ServerConfig, owner: str, project: str | None) -> None:
        if not config.load_tools:
            raise ToolError(f"'{tool.qualified}' cannot be called: its server is used without its tools.")
        if tool.tool in config.disabled_tools:
            raise ToolError(f"Tool {tool.tool} is disabled for server {config.name}.")
        if not self.policy.allows(owner, project, canonical(tool.server, tool.tool)):
            raise ToolError(f"Tool '{tool.qualified}' is blocked for you by this app's policy.")

    # A prompt.

    async def _prompt(
        self, prompt: LockedPrompt, arguments: dict[str, str | None], owner: str
    ) -> list[PromptMessage]:
        project = self.settings.project_of(owner, None)
        config = await self._server(prompt, project)
        if not config.load_prompts:
            raise ToolError(f"'{prompt.qualified}' cannot be read: its server is used without its prompts.")
        if not self.policy.allows(owner, project, canonical(prompt.server, prompt.prompt)):
            raise ToolError(f"The prompt '{prompt.qualified}' is blocked for you by this app's policy.")
        given = {name: value for name, value in arguments.items() if value is not None}
        found = await self.pool().prompt(config, prompt.prompt, given, timeout=PROMPT_LIMIT, owner=owner)
        messages = found.get("messages")
        if not isinstance(messages, list):
            raise ToolError(f"Server '{config.name}' sent a prompt without messages.")
        return [made for one in messages for made in await self._messages(one, prompt, config)]

    async def _messages(self, one: object, prompt: LockedPrompt, config: ServerConfig) -> list[PromptMessage]:
        """One message as ours: a block that is read the way a tool's is, so that the host can take it."""
        from shared.upstream.content.convert import read_result, to_tool_result

        role = one.get("role") if isinstance(one, Mapping) else None
        if not isinstance(one, Mapping) or (role != "user" and role != "assistant"):
            raise ToolError(f"Server '{config.name}' sent a prompt's message of neither user nor assistant.")
        wire = {"content": [one.get("content")]}
        read = await read_result(wire, server=config.name, tool=prompt.prompt, duration_ms=0)
        answer = await to_tool_result(read, None, self.settings)
        return [PromptMessage(role, _Block(block)) for block in answer.content]

    # Configuration that has changed.

    def _retire(self, configs: list[ServerConfig]) -> None:
        """Closes the connections of servers that no known configuration names any more, beside all else."""
        if self._pool is None:
            return
        task = asyncio.create_task(self._pool[1].keep(configs))
        self._closing.add(task)
        task.add_done_callback(self._retired)

    def _retired(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("connections of servers that are not configured any more: %s", type(error).__name__)


def _told(error: MCPError, owner: str) -> MCPError:
    """The error for an owner's eyes: the operator also sees what the server itself said of its failure."""
    if owner != DEFAULT_OWNER or not error.log:
        return error
    # Another one: all who wait for a connection are told by one error, whoever they are.
    told = type(error).__new__(type(error))
    told.__dict__ |= error.__dict__
    told.args = (error.full_message,)
    return told


def _scope(config: ServerConfig) -> str:
    return scope_of(config.project)


def _is_repeatable(tool: LockedTool) -> bool:
    return any(tool.annotations.get(hint) is True for hint in ("readOnlyHint", "idempotentHint"))


def _wrapped(answer: ToolResult, data: Any) -> ToolResult:
    """The answer of a tool whose published schema has everything under `result`, objects too."""
    if not isinstance(data, dict):
        return answer  # put there already, or nothing at all
    return replace(answer, structured={RESULT_KEY: answer.structured}, wrapped=Wrapped.JSON)


def _with_drift(answer: ToolResult) -> ToolResult:
    """The answer, with a block at its end for agents and a mark for programs. Its data stay as they are."""
    data_alone = answer.structured is not None and not answer.has_text
    texts = [text_of(answer)] if data_alone else []
    return replace(
        answer,
        content=(*answer.content, *({"type": "text", "text": text} for text in (*texts, _CHANGED))),
        meta={**answer.meta, f"{META_PREFIX}upstreamChanged": True},
    )


def _home() -> asyncio.AbstractEventLoop:
    """The app's event loop; the running one where the app's does not run (any more)."""
    home = home_loop()
    return home if home.is_running() else asyncio.get_running_loop()


async def _at_home[T](work: Coroutine[Any, Any, T]) -> T:
    """Done on the app's event loop, whose connections are kept, whichever loop asks."""
    home = _home()
    if home is asyncio.get_running_loop():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, home))


class _Block(McpContentBlock):
    """A content block in the form of the wire."""

    type: ClassVar[str] = "upstream"

    def __init__(self, wire: JsonObject) -> None:
        self._wire = wire

    def to_wire(self) -> JsonObject:
        return self._wire
