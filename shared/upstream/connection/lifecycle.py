"""The owner of a connection: one task opens it, keeps it and closes it; everybody else sends messages.

The SDK's sessions and transports are made of cancel scopes that must be left by the task that entered them, in
order. A task that does nothing else cannot get that wrong, and what breaks inside it cancels no caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from shared.errors import MCPConnectionError, MCPError, MCPTimeoutError
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.faults import leaf, one_line
from shared.upstream.connection.limits import ERROR_TEXT
from shared.upstream.connection.state import ServerState, moved
from shared.upstream.connection.translate import opening_error
from shared.upstream.connection.transport import ended

if TYPE_CHECKING:
    from shared.redaction import Redactor
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.link import Link
    from shared.upstream.connection.tail import Tail
    from shared.upstream.settings import UpstreamSettings

LOG = logging.getLogger("toolbox.upstream")
#: Seconds that a call waits to learn how its lost connection ended.
_LAST_WORDS = 0.3
#: Owners that were told to end and have not yet: the loop itself holds tasks only weakly.
_ending: set[asyncio.Task[None]] = set()


class Lifecycle:
    def __init__(
        self,
        config: ServerConfig,
        settings: UpstreamSettings,
        tail: Tail,
        redact: Redactor,
        *,
        open_link: Callable[[], AbstractAsyncContextManager[Link]],
        read_lists: Callable[[Link], Awaitable[None]],
        ended: Callable[[], None],
    ) -> None:
        """`ended`: called once nothing can be asked of the session any more."""
        self.state = ServerState.CREATED
        self.error: MCPError | None = None
        self.link: Link | None = None
        self.command = str(config.command) if config.command else None
        self._config = config
        self._seconds = config.connect_timeout(settings)
        self._settings = settings
        self._tail = tail
        self._redact = redact
        self._open = open_link
        self._read_lists = read_lists
        self._on_end = ended
        self._stop = asyncio.Event()
        self._ended = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._overdue: asyncio.TimerHandle | None = None

    # For callers.

    async def connect(self) -> None:
        if self.state is ServerState.CONNECTED:
            return
        if self.state is ServerState.CREATED:
            self._start()
        if self.state is not ServerState.CONNECTING:
            raise self._refusal()
        assert self._ready is not None
        await asyncio.shield(self._ready)

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self.state = moved(self.state, ServerState.CONNECTING)
        self._ready = loop.create_future()
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._owner = asyncio.create_task(self._own(), name=f"upstream {self._config.name}")
        self._overdue = loop.call_later(self._seconds, self._too_slow)

    def open_link(self) -> Link:
        """The session to send a call on. `MCPConnectionError` that names the state when there is none."""
        if self.state is not ServerState.CONNECTED or self.link is None:
            raise self._refusal()
        return self.link

    def serving_link(self) -> Link:
        """The same, also while the lists are read for the first time."""
        if self.link is None or self.state.ended:
            raise self._refusal()
        return self.link

    def _refusal(self) -> MCPConnectionError:
        why = f" ({self.error.message})" if self.error is not None else ""
        text = (
            f"Server '{self._config.name}': this connection is in state '{self.state}' and cannot be used{why}"
        )
        return DeadConnectionError(text, self._config.name, self.command, sent=False)

    def timed_out(self, what: str, seconds: float) -> MCPTimeoutError:
        text = f"Server '{self._config.name}' {what} within {seconds:g} s."
        return MCPTimeoutError(text, self._config.name, self.command, seconds)

    async def lost(self, what: str) -> MCPError:
        """What to tell a caller whose connection was lost during `what`."""
        if not self._ended.is_set():
            waiting = asyncio.ensure_future(self._ended.wait())
            await asyncio.wait({waiting}, timeout=_LAST_WORDS)
            waiting.cancel()
        if self.state is ServerState.DISCONNECTED:
            text = f"Server '{self._config.name}': the connection was closed during {what}."
        elif self.error is not None:
            text = f"{self.error.message} It was lost during {what}; what came of it is unknown."
        else:
            text = (
                f"Server '{self._config.name}' is no longer available: the connection was lost during {what}."
            )
        return DeadConnectionError(text, self._config.name, self.command, sent=True)

    def give_up(self, error: MCPError) -> None:
        """The connection is of no use for new calls. Those that run may still get their answers: see
        `release`."""
        if self.state is ServerState.CONNECTED:
            self._fail(error)

    def release(self) -> None:
        """No call runs any more: a connection that was given up is closed, without waiting for it."""
        if self.state is ServerState.ERROR and not self._stop.is_set():
            self._stop.set()
            self._bound_closing()

    @property
    def closed(self) -> bool:
        """Whether nothing is open any more."""
        return self._owner is None or self._owner.done()

    async def disconnect(self) -> None:
        if self.state is ServerState.CREATED:
            self.state = moved(self.state, ServerState.DISCONNECTED)
            return
        was = self.state
        if not was.ended:
            self.state = moved(was, ServerState.DISCONNECTED)
        if self._owner is None or self._owner.done():
            return
        self._stop.set()
        if was is ServerState.CONNECTING:
            self._not_ready(self._refusal())
            self._owner.cancel()
        self._bound_closing()
        # The owner ends in bounded time: `_abandon` sees to it.
        await asyncio.wait({self._owner}, timeout=self._settings.cleanup_timeout + 1)

    # The owner.

    async def _own(self) -> None:
        try:
            async with self._open() as link:
                self.link = link
                self._restart_clock()
                await self._read_lists(link)
                self._opened()
                await self._serve(link)
                # Callers learn at once how it ended; closing takes its time.
                self._ended.set()
        except asyncio.CancelledError:
            # Told to end while it was opening, or when closing took too long.
            pass
        except BaseException as error:
            self._broke(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._ended.set()
            self._on_end()
            if self._overdue is not None:
                self._overdue.cancel()
            self._not_ready(self._refusal())

    def _opened(self) -> None:
        if self.state is ServerState.CONNECTING:
            self.state = moved(self.state, ServerState.CONNECTED)
        if self._overdue is not None:
            self._overdue.cancel()
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    async def _serve(self, link: Link) -> None:
        waits = {asyncio.create_task(one) for one in (self._stop.wait(), link.lost.wait(), self._watch(link))}
        try:
            while not self._stop.is_set() and not link.lost.is_set():
                running = {task for task in waits if not task.done()}
                await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        if link.lost.is_set() and self.state is ServerState.CONNECTED:
            self._fail(await self._loss(link))

    async def _watch(self, link: Link) -> None:
        try:
            await link.watch()
        except Exception as error:
            self._tail.add(f"[list] changes cannot be watched: {one_line(str(leaf(error)), 200)}")

    async def _loss(self, link: Link) -> MCPError:
        how = await ended(link.ending)
        text = f"Server '{self._config.name}' is no longer available"
        text += f": {self._redact(how)}." if how else ": it closed the connection."
        return self._dead(text)

    def _dead(self, text: str) -> DeadConnectionError:
        """Of a connection that has served. Its log may speak of any caller's data, and the error is shown to
        whoever calls or asks for the server: so the end of the log goes to the app's own log only.
        """
        noted = DeadConnectionError(text, self._config.name, self.command, sent=True)
        noted.log = self._end_of_log()
        LOG.warning("%s", noted.full_message)
        return DeadConnectionError(text, self._config.name, self.command, sent=True)

    def _end_of_log(self) -> str:
        """What a child has said of its end. Of paths on this machine too, so it is not for every caller."""
        if self.command is None or not self._tail:
            return ""
        return one_line(self._tail.text(5), ERROR_TEXT)

    # Failures.

    def _broke(self, error: BaseException) -> None:
        """An error that came out of opening, serving or closing."""
        if self.state is ServerState.CONNECTING:
            told = opening_error(error, self._config.name, self.command, self._redact)
            told.log = self._end_of_log()
            self._fail(told)
        elif self.state is ServerState.CONNECTED:
            why = self._redact(one_line(str(leaf(error)), 200)) or type(leaf(error)).__name__
            text = f"Server '{self._config.name}' is no longer available: {why}."
            self._fail(self._dead(text))
        elif self.state is ServerState.DISCONNECTED:
            kind = type(leaf(error)).__name__
            self._fail(
                MCPConnectionError(f"Closing server '{self._config.name}' failed ({kind}).", self._config.name)
            )
            LOG.warning("Closing upstream server '%s' failed: %s", self._config.name, kind)

    def _fail(self, error: MCPError) -> None:
        self.error = error
        self.state = moved(self.state, ServerState.ERROR)
        self._not_ready(error)

    def _not_ready(self, error: MCPError) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)

    # Time.

    def _restart_clock(self) -> None:
        """The handshake is through; each list has a time of its own, and keeps it itself."""
        if self._overdue is not None:
            self._overdue.cancel()

    def _too_slow(self) -> None:
        if self.state is not ServerState.CONNECTING or self._owner is None:
            return
        text = (
            f"Server '{self._config.name}' was not ready within {self._seconds:g} s (init_timeout; a call has "
            f"{self._config.call_timeout(self._settings, None):g} s, tool_timeout)."
        )
        error = MCPTimeoutError(text, self._config.name, self.command, self._seconds)
        error.log = self._end_of_log()
        self._fail(error)
        self._owner.cancel()
        self._bound_closing()

    def _bound_closing(self) -> None:
        owner = self._owner
        if owner is None or owner.done() or owner in _ending:
            return
        _ending.add(owner)
        timer = asyncio.get_running_loop().call_later(self._settings.cleanup_timeout, self._abandon, owner)

        def gone(owner: asyncio.Task[None]) -> None:
            timer.cancel()
            _ending.discard(owner)

        owner.add_done_callback(gone)

    def _abandon(self, owner: asyncio.Task[None]) -> None:
        """Closing takes too long: let go of what can be let go of, and wait for it no more."""
        seconds = self._settings.cleanup_timeout
        LOG.warning(
            "Closing upstream server '%s' took more than %g s: it is let go.", self._config.name, seconds
        )
        if self.state is ServerState.DISCONNECTED:
            text = f"Server '{self._config.name}' did not close within {seconds:g} s."
            self._fail(MCPConnectionError(text, self._config.name, self.command))
        if self.link is not None:
            self.link.kill()
        owner.cancel()
