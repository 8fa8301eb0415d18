"""The requests that run on one connection: whose a log notification is, and what becomes of an abandoned
one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from shared.upstream.connection.link import LogFn


@dataclass(slots=True, eq=False)
class Call:
    """One request under way. `owner`: whose it is, and with it what the server logs of it."""

    id: str
    on_log: LogFn | None = None
    owner: str = ""


#: The call whose request is being sent. The SDK's streamable HTTP transport handles what comes on a request's
#: own stream in the context that sent the request, which is how a log notification there finds its call.
_sending: ContextVar[Call | None] = ContextVar("upstream_call", default=None)


class Calls:
    """`idle`: called when the last call has ended. `overdue`: called when an abandoned request is still not
    gone after `grace` seconds: nothing moves any more."""

    def __init__(self, grace: float, *, idle: Callable[[], None], overdue: Callable[[], None]) -> None:
        self._grace = grace
        self._idle = idle
        self._overdue = overdue
        self._ids = itertools.count(1)
        self._running: set[Call] = set()
        # Strong references: the loop itself holds a task only weakly.
        self._abandoned: set[asyncio.Task[Any]] = set()
        #: Whose calls were abandoned. Nothing tells when a server has stopped to speak of one.
        self._left: set[str] = set()

    def __len__(self) -> int:
        return len(self._running)

    def new(self, on_log: LogFn | None = None, owner: str = "") -> Call:
        """The id is unique on its connection, and no number: the SDK's own requests are numbered."""
        return Call(f"call-{next(self._ids)}", on_log, owner)

    def owner_of_log(self) -> Call | None:
        """Whose the log notification is that is being handled.

        On a shared stream that can be told of a lone call only, and not once a call of another owner was
        abandoned there: the line may be of that one, and speak of that owner's data.
        """
        if (sending := _sending.get()) is not None:
            return sending if sending in self._running else None
        if len(self._running) != 1:
            return None
        (lone,) = self._running
        return lone if self._left <= {lone.owner} else None

    async def run[T](self, call: Call, request: Coroutine[Any, Any, T], seconds: float) -> T:
        """`TimeoutError` after `seconds`; `ConnectionError` when the transport cancels the request by itself.

        The request has a task of its own. When its time is over, or the caller is cancelled, the caller goes on
        at once; telling the server (`notifications/cancelled`) may take the SDK seconds on a connection that is
        stuck.
        """
        self._running.add(call)
        try:
            task = asyncio.create_task(_tagged(call, request))
            try:
                await asyncio.wait((task,), timeout=seconds)
            finally:
                if not task.done():
                    self._left.add(call.owner)
                    self._abandon(task)
            if not task.done():
                raise TimeoutError
            if task.cancelled():
                # Not by us: a cancel scope of the transport has gone, and took what ran in it along.
                raise ConnectionError("the transport broke off")
            return task.result()
        finally:
            self._running.discard(call)
            if not self._running:
                self._idle()

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._abandoned.add(task)
        watch = asyncio.get_running_loop().call_later(self._grace, self._overdue)

        def gone(task: asyncio.Task[Any]) -> None:
            watch.cancel()
            self._abandoned.discard(task)
            if not task.cancelled():
                # Read, so that nobody is told of an answer that nobody waits for.
                task.exception()

        task.add_done_callback(gone)

    async def wind_up(self, seconds: float) -> None:
        """Wait for abandoned requests to be gone."""
        if self._abandoned:
            await asyncio.wait(set(self._abandoned), timeout=seconds)


async def _tagged[T](call: Call, request: Coroutine[Any, Any, T]) -> T:
    _sending.set(call)
    return await request
