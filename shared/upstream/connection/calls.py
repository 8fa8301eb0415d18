"""The requests that run on one connection: whose a log notification is, and what becomes of an abandoned
one."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from shared.upstream.connection.link import LogFn

#: Abandoned calls whose late answers are looked out for.
_MOST_OPEN: Final = 1_000


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
        #: Owner -> how many calls of his were abandoned here and not answered since. A server may go on to
        #: speak of those; nothing else tells when it has stopped.
        self._left: Counter[str] = Counter()
        #: Id -> owner of those whose answer may still come.
        self._open: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._running)

    def new(self, on_log: LogFn | None = None, owner: str = "") -> Call:
        """The id is unique on its connection, and no number: the SDK's own requests are numbered."""
        return Call(f"call-{next(self._ids)}", on_log, owner)

    def owner_of_log(self) -> Call | None:
        """Whose the log notification is that is being handled.

        On a shared stream that can be told of a lone call only, and not while a call of another owner that was
        abandoned there has no answer: the line may be of that one, and speak of that owner's data.
        """
        if (sending := _sending.get()) is not None:
            return sending if sending in self._running else None
        if len(self._running) != 1:
            return None
        (lone,) = self._running
        return lone if self._left.keys() <= {lone.owner} else None

    def answered_late(self, request_id: int | str) -> None:
        """An answer has come that nobody waits for. Of a call that was abandoned it is the last word."""
        owner = self._open.pop(str(request_id), None)
        if owner is None:
            return
        self._left[owner] -= 1
        if not self._left[owner]:
            del self._left[owner]

    async def run[T](self, call: Call, request: Coroutine[Any, Any, T], seconds: float) -> T:
        """`TimeoutError` after `seconds`; `ConnectionError` when the transport cancels the request by itself.

        The request has a task of its own. When its time is over, or the caller is cancelled, the caller goes on
        at once; telling the server (`notifications/cancelled`) may take the SDK seconds on a connection that is
        stuck.
        """
        self._running.add(call)
        loop = asyncio.get_running_loop()
        # What the task ends with, a moment before it has ended.
        answer: asyncio.Future[T] = loop.create_future()
        try:
            # Begins at once, not in its turn.
            task = asyncio.Task(_told(call, request, answer), loop=loop, eager_start=True)
            try:
                async with asyncio.timeout(seconds):
                    return await answer
            finally:
                if not answer.done() or answer.cancelled():
                    self._leave(call)
                    self._abandon(task)
        finally:
            self._running.discard(call)
            if not self._running:
                self._idle()

    def _leave(self, call: Call) -> None:
        self._left[call.owner] += 1
        self._open[call.id] = call.owner
        if len(self._open) > _MOST_OPEN:
            # It is not waited for any more: its owner counts as spoken of for as long as the connection lasts.
            del self._open[next(iter(self._open))]

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


async def _told[T](call: Call, request: Coroutine[Any, Any, T], answer: asyncio.Future[T]) -> None:
    """Runs the request, and says what came of it unless nobody waits any more."""
    _sending.set(call)
    try:
        result = await request
    except BaseException as error:
        if not answer.done():
            # Cancelled, but not by us: a cancel scope of the transport has gone, and took what ran in it along.
            told = error if isinstance(error, Exception) else ConnectionError("the transport broke off")
            answer.set_exception(told)
        if not isinstance(error, Exception):
            raise
    else:
        if not answer.done():
            answer.set_result(result)
