"""The connections of one event loop: at most one kept for each server and configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shared.errors import MCPTimeoutError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.state import ServerState

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.link import LogFn, ProgressFn
    from shared.upstream.content.model import MCPToolResult
    from shared.upstream.model import UpstreamTool
    from shared.upstream.settings import UpstreamSettings


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known of a server without asking it. `error`: safe to show; `log`: redacted, bounded."""

    state: ServerState
    error: str | None = None
    session_id: str | None = None
    tool_count: int = 0
    log: str = ""

    @property
    def connected(self) -> bool:
        return self.state is ServerState.CONNECTED

    @property
    def has_log(self) -> bool:
        return bool(self.log)


class ConnectionPool:
    """`connect`: makes a connection object; tests put fakes there."""

    def __init__(
        self,
        settings: UpstreamSettings,
        *,
        connect: Callable[[ServerConfig, UpstreamSettings], ServerConnection] = ServerConnection,
    ) -> None:
        self._settings = settings
        self._new = connect
        self._kept: dict[str, ServerConnection] = {}
        self._old: set[ServerConnection] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def call(
        self,
        config: ServerConfig,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - bounds the call at the server as well
        on_progress: ProgressFn | None = None,
        on_log: LogFn | None = None,
        owner: str = "",
        repeatable: bool = False,
    ) -> MCPToolResult:
        """One call; the connection is opened if need be. `timeout`: seconds for all of it; None: as configured.
        `owner`: for whom it is.

        When the connection turns out dead before the server can have begun with the call, another one is opened
        and the call is sent once more. When the server died during the call, only with `repeatable`.
        """

        async def send(connection: ServerConnection, left: float | None) -> MCPToolResult:
            return await connection.call_tool(
                tool, arguments, timeout=left, on_progress=on_progress, on_log=on_log, owner=owner
            )

        return await self._with_one_reconnect(config, send, timeout, repeatable)

    async def prompt(
        self,
        config: ServerConfig,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        owner: str = "",
    ) -> dict[str, Any]:
        """A prompt, as the server sent it. Reading it twice changes nothing."""

        async def send(connection: ServerConnection, left: float | None) -> dict[str, Any]:
            return await connection.get_prompt(name, arguments, timeout=left, owner=owner)

        return await self._with_one_reconnect(config, send, timeout, repeatable=True)

    async def _with_one_reconnect[T](
        self,
        config: ServerConfig,
        send: Callable[[ServerConnection, float | None], Awaitable[T]],
        seconds: float | None,
        repeatable: bool,
    ) -> T:
        clock = _Clock(seconds)
        first = await self._connected(config, clock)
        try:
            return await send(first, clock.left())
        except DeadConnectionError as error:
            if error.sent and not repeatable:
                raise
        # The same one, when only its answer broke: then it is still connected.
        second = await self._connected(config, clock)
        return await send(second, clock.left())

    async def _connected(self, config: ServerConfig, clock: _Clock) -> ServerConnection:
        connection = self._kept.get(config.fingerprint)
        if connection is not None and connection.state is ServerState.CONNECTED:
            return connection
        if connection is not None and connection.state.ended:
            self._let_go(connection)
            connection = None
        if connection is None:
            connection = self._kept[config.fingerprint] = self._new(config, self._settings)
        try:
            async with asyncio.timeout(clock.left()) as bound:
                await connection.connect()
        except TimeoutError:
            if not bound.expired():
                raise
            text = f"Server '{config.name}' was not ready within the {clock.seconds:g} s that the call has."
            raise MCPTimeoutError(text, config.name, timeout=clock.seconds) from None
        return connection

    def _let_go(self, *connections: ServerConnection) -> None:
        """They close by themselves, once the calls that still run on them have ended; `close` sees to it."""
        self._old = {one for one in (*self._old, *connections) if not one.closed}

    def _later(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(ending)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    # What is known; nothing here waits.

    def status(self, config: ServerConfig) -> ServerStatus:
        connection = self._kept.get(config.fingerprint)
        if connection is None:
            return ServerStatus(ServerState.CREATED)
        return ServerStatus(
            connection.state,
            connection.error,
            connection.session_id,
            len(connection.tools),
            connection.log(),
        )

    def listed(self, config: ServerConfig) -> Mapping[str, UpstreamTool] | None:
        """The tools of the connected server by name; None when it is not connected, or not asked for its
        tools."""
        connection = self._kept.get(config.fingerprint)
        if connection is None or connection.state is not ServerState.CONNECTED or not config.load_tools:
            return None
        return connection.tools_by_name

    # Closing.

    async def keep(self, configs: Iterable[ServerConfig]) -> None:
        """Close the connections of all other configurations: those in use once their calls have ended, which
        is not waited for."""
        wanted = {config.fingerprint for config in configs if not config.disabled}
        gone = [self._kept.pop(key) for key in [*self._kept] if key not in wanted]
        self._let_go(*gone)
        if gone:
            await asyncio.wait([self._later(connection.retire()) for connection in gone])

    async def close(self) -> None:
        """Close all of them at once, each in bounded time."""
        for connection in (*self._kept.values(), *self._old):
            self._later(connection.disconnect())
        self._kept.clear()
        self._old.clear()
        if self._closing:
            await asyncio.wait(set(self._closing))


class _Clock:
    """The time that one call has, from now on; None: each step has its own."""

    def __init__(self, seconds: float | None) -> None:
        self._until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self.seconds = seconds or 0.0

    def left(self) -> float | None:
        return None if self._until is None else max(0.001, self._until - asyncio.get_running_loop().time())
