"""One connection to one upstream server, from its opening to its end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mcp.shared.exceptions import MCPError as WireError

from shared.errors import MCPConnectionError, MCPError, MCPProtocolError, MCPToolNotFoundError
from shared.upstream.connection.calls import Call, Calls
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.faults import Failure, NotSentError
from shared.upstream.connection.levels import WANTED, level_of, text_of
from shared.upstream.connection.lifecycle import Lifecycle
from shared.upstream.connection.limits import SESSION_ID_SHOWN
from shared.upstream.connection.link import ListKind
from shared.upstream.connection.lists import Lists
from shared.upstream.connection.opening import open_link
from shared.upstream.connection.secrets import redactor
from shared.upstream.connection.state import ServerState
from shared.upstream.connection.tail import Tail
from shared.upstream.connection.translate import request_error

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.link import LogFn, Opener, ProgressFn
    from shared.upstream.content.model import MCPToolResult
    from shared.upstream.model import UpstreamPrompt, UpstreamTool
    from shared.upstream.settings import UpstreamSettings

LOG = logging.getLogger("toolbox.upstream")


class ServerConnection:
    """A kept session with a server. Opened by the first use; calls run side by side; ends once and for good.

    Belongs to the event loop that first uses it. `opener`: how a session is opened; tests put fakes there.
    """

    def __init__(self, config: ServerConfig, settings: UpstreamSettings, *, opener: Opener = open_link) -> None:
        self.config = config
        self.name: str = config.name
        self._settings = settings
        self._redact = redactor(config)
        self._tail = Tail(self._redact)
        self._calls = Calls(settings.grace, idle=lambda: self._life.release(), overdue=self._stuck)
        self._lists = Lists(config, settings, self._tail, self._fetch)
        self._life = Lifecycle(
            config,
            settings,
            self._tail,
            self._redact,
            open_link=lambda: opener(config, settings, self._tail, self),
            read_lists=self._lists.read_first,
            ended=self._lists.cancel,
        )

    # What is known of it; nothing here waits.

    @property
    def state(self) -> ServerState:
        return self._life.state

    @property
    def closed(self) -> bool:
        """Whether nothing of it is open any more, or ever was."""
        return self._life.closed

    @property
    def error(self) -> str | None:
        """Why it is in state `error`: safe to show."""
        return self._life.error.message if self._life.error is not None else None

    @property
    def session_id(self) -> str | None:
        """The start of the session's id: the whole of it would open the session."""
        found = self._life.link.session_id if self._life.link is not None else None
        return f"{found[:SESSION_ID_SHOWN]}…" if found else None

    @property
    def tools(self) -> tuple[UpstreamTool, ...]:
        return self._lists.tools

    @property
    def prompts(self) -> tuple[UpstreamPrompt, ...]:
        return self._lists.prompts

    @property
    def prompts_error(self) -> MCPError | None:
        """Why the prompts could not be listed the last time: `prompts` are then those known before, or none."""
        return self._lists.prompts_error

    @property
    def tools_by_name(self) -> Mapping[str, UpstreamTool]:
        return self._lists.tools_by_name

    @property
    def revision(self) -> int:
        """Goes up when the lists have really changed."""
        return self._lists.revision

    def log(self) -> str:
        """The end of what the server wrote to stderr, its log notifications and our remarks; redacted."""
        return self._tail.text()

    # Opening and closing.

    async def connect(self) -> None:
        """Open it; no-op on an open one. Callers at the same time share one opening.

        `MCPConnectionError` (an ended connection, a server that cannot be reached), `MCPTimeoutError`,
        `MCPProtocolError`.
        """
        await self._life.connect()

    async def retire(self) -> None:
        """Nobody is to call it any more. Ended at once when nothing runs on it, else by the last call's end:
        each has a time of its own. Returns without waiting for those."""
        if self.state is ServerState.CONNECTING:
            # Its time is bounded too, and who waits for it is about to call.
            with contextlib.suppress(MCPError):
                await self.connect()
        if not self._calls:
            await self.disconnect()
            return
        text = f"Server '{self.name}' is no longer available: its configuration was changed or removed."
        self._life.give_up(DeadConnectionError(text, self.name, self._life.command, sent=False))

    async def disconnect(self) -> None:
        """End it, in bounded time. Never raises for the server's sake: a close that fails ends in `error`."""
        await self._lists.stop()
        await self._life.disconnect()
        await self._calls.wind_up(self._settings.cleanup_timeout)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnect()

    # What it can be asked.

    async def list_tools(self) -> tuple[UpstreamTool, ...]:
        """Ask again. When that fails the old list stays, and the error is raised."""
        await self.connect()
        await self._lists.read(ListKind.TOOLS)
        return self.tools

    async def list_prompts(self) -> tuple[UpstreamPrompt, ...]:
        """Ask again. When that fails the old list stays, and the error is raised."""
        await self.connect()
        await self._lists.read(ListKind.PROMPTS)
        return self.prompts

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the settled order of timeouts is applied here
        on_progress: ProgressFn | None = None,
        on_log: LogFn | None = None,
        owner: str = "",
    ) -> MCPToolResult:
        """`timeout`: seconds; None: what is configured. The callbacks are called on the event loop.

        `owner`: for whom it is; where the server's log lines tell of no call, owners are kept apart.

        `MCPToolNotFoundError`, `MCPTimeoutError`, `MCPConnectionError`, `MCPProtocolError`. A tool that fails
        is no error here but a result.
        """
        from shared.upstream.content.convert import read_result

        if self.state is not ServerState.CONNECTED:
            await self.connect()
        if self.config.load_tools and name not in self._lists.tools_by_name:
            await self._look_again(name)
        seconds = self.config.call_timeout(self._settings, None) if timeout is None else timeout
        call = self._calls.new(on_log, owner)
        started = time.perf_counter()
        raw = await self._request(
            "tools/call",
            {"name": name, "arguments": dict(arguments or {})},
            f"the call of '{name}'",
            seconds,
            tool=name,
            call=call,
            on_progress=on_progress,
        )
        return await read_result(
            raw,
            server=self.name,
            tool=name,
            duration_ms=(time.perf_counter() - started) * 1000,
            request_id=call.id,
        )

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        owner: str = "",
    ) -> dict[str, Any]:
        """The result as the server sent it: `{"messages": [{"role", "content"}…], "description"?}`."""
        if self.state is not ServerState.CONNECTED:
            await self.connect()
        seconds = self.config.call_timeout(self._settings, None) if timeout is None else timeout
        params = {"name": name, "arguments": dict(arguments or {})}
        call = self._calls.new(owner=owner)
        return await self._request("prompts/get", params, f"the prompt '{name}'", seconds, call=call)

    async def _look_again(self, name: str) -> None:
        """A server need not tell of new tools: one that is not known is asked for before it is missing."""
        await self._lists.read(ListKind.TOOLS)
        if name not in self._lists.tools_by_name:
            raise MCPToolNotFoundError(name, self.name)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        what: str,
        seconds: float,
        *,
        call: Call,
        tool: str | None = None,
        on_progress: ProgressFn | None = None,
    ) -> dict[str, Any]:
        link = self._life.open_link()
        request = link.request(
            method,
            params,
            request_id=call.id,
            on_progress=None if on_progress is None else self._clean(on_progress),
            log_level=WANTED if call.on_log is not None else None,
        )
        try:
            raw = await self._calls.run(call, request, seconds)
        except TimeoutError:
            raise self._life.timed_out(f"did not answer {what}", seconds) from None
        except (WireError, NotSentError, OSError, RuntimeError, ValueError) as error:
            if link.lost.is_set() and not _was_not_sent(error):
                raise await self._life.lost(what) from None
            raise self._noted(
                request_error(error, self.name, self._life.command, what, tool, self._redact)
            ) from None
        if raw.get("resultType") == "input_required":
            text = f"Server '{self.name}': {what} asks for a person's input, which this app does not pass on."
            raise MCPProtocolError(text, self.name)
        return raw

    def _noted[E: MCPConnectionError | Exception](self, error: E) -> E:
        """A connection that is of no use is not used again: the next call opens another one.

        A broken answer is no reason: over HTTP only that request was hit.
        """
        if isinstance(error, DeadConnectionError) and not error.sent:
            self._give_up(error)
        return error

    def _give_up(self, error: MCPError) -> None:
        self._life.give_up(error)
        if not self._calls:
            self._life.release()

    def _clean(self, on_progress: ProgressFn) -> ProgressFn:
        def told(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message if message is None else self._redact(message))

        return told

    def _stuck(self) -> None:
        text = f"Server '{self.name}' is no longer available: a cancelled request did not end within "
        grace = self._settings.grace
        self._give_up(DeadConnectionError(f"{text}{grace:g} s.", self.name, self._life.command, sent=True))

    # Lists.

    async def _fetch(self, kind: ListKind, params: Mapping[str, Any]) -> dict[str, Any]:
        link = self._life.serving_link()
        try:
            return await link.request(f"{kind}/list", params)
        except (WireError, NotSentError, OSError, RuntimeError, ValueError) as error:
            if link.lost.is_set():
                raise await self._life.lost(f"{kind}/list") from None
            raise request_error(
                error, self.name, self._life.command, f"{kind}/list", None, self._redact
            ) from None

    # What the session tells of by itself (`Events`).

    def logged(self, level: str, logger: str | None, data: object) -> None:
        """A log notification goes to its call; where that cannot be told, to the server's log only."""
        text = text_of(level, logger, data)
        call = self._calls.owner_of_log()
        if call is None or call.on_log is None:
            self._tail.add(f"[{level}] {text}")
            return
        try:
            call.on_log(level_of(level), self._redact(text))
        except Exception:
            LOG.exception("The log of a call to server '%s' could not be kept.", self.name)

    def changed(self, kind: ListKind) -> None:
        self._lists.changed(kind)

    def answered_late(self, request_id: int | str) -> None:
        self._calls.answered_late(request_id)


def _was_not_sent(error: Exception) -> bool:
    """Whether the transport knows that the server has not begun with the request."""
    failure = Failure.of(error.error.data) if isinstance(error, WireError) else None
    return isinstance(error, NotSentError) or (failure is not None and not failure.sent)
