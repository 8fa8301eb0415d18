"""One way to call the APIs from asynchronous and from synchronous code.

All requests run on one event loop of their own, on a daemon thread that starts with the first call: so one pool
of connections serves every invocation of the process, whichever loop or thread a tool runs on, and a tool that
blocks its loop does not stall the others' requests.

`call` starts the work at once, as a promise of the original does. With a running loop in the calling thread it
returns a `Pending`, which is awaited, gathered or made a task; cancelling that cancels the request. Without one
it waits and returns the value. The work sees the context variables of the calling code.

The other functions are for what is no request: `settled` for a value that is there, `blocking` for a function
that waits for a disk or for storage, `on_own_loop` for work that may run another tool's code.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Final

from shared.storage import run

_LOG = logging.getLogger(__name__)

#: Seconds after which a caller that waits without a loop looks up, so that an interrupt gets through.
_LOOK_UP: Final = 1.0
#: Seconds that tasks have to end which another tool's code has left on a loop of its own.
_GRACE: Final = 2.0


class Pending[T](Coroutine[Any, Any, T]):
    """A call that is under way. Its error, if any, is raised where it is awaited.

    To asyncio it is a coroutine, so that `create_task` and `TaskGroup` take it as well as `gather` does; unlike
    one it has begun already, and may be awaited more than once.
    """

    def __init__(self, future: asyncio.Future[T]) -> None:
        self._future = future
        self._steps: Generator[Any, None, T] | None = None

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self._future.__await__()
        return self._steps.send(value)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        error = (
            kind if isinstance(kind, BaseException) else value if isinstance(value, BaseException) else kind()
        )
        if self._steps is None:
            self._steps = self._future.__await__()
        return self._steps.throw(error)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()

    def cancel(self) -> bool:
        """Gives the call up. False when it has ended already."""
        return self._future.cancel()


class Background:
    """An event loop on a daemon thread, started at first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="apis", daemon=True).start()
                self._loop = loop
            return self._loop

    def forget(self) -> None:
        """In a forked child, which has the loop but not its thread."""
        self._lock = threading.Lock()
        self._loop = None


_background: Final = Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.forget)


def call[T](make: Callable[[], Coroutine[Any, Any, T]]) -> Any:
    """Runs the coroutine that `make` makes on the APIs' loop: a `Pending[T]`, or in synchronous code a T."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _wait(make)
    return Pending(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), _background.loop())))


def settled[T](value: T) -> Any:
    """For a value that is there: a `Pending[T]` that is done, or in synchronous code the value."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return value
    future: asyncio.Future[T] = loop.create_future()
    future.set_result(value)
    return Pending(future)


def blocking[T](function: Callable[[], T]) -> Any:
    """For a function that blocks: a `Pending[T]` while a thread runs it, or in synchronous code its value."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return function()
    return Pending(loop.create_task(run(contextvars.copy_context().run, function)))


def on_own_loop[T](make: Callable[[], Coroutine[Any, Any, T]]) -> Any:
    """As `call`, on the loop of the calling code, or in synchronous code on one in its thread."""
    try:
        return Pending(asyncio.get_running_loop().create_task(make()))
    except RuntimeError:
        loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(make())
    finally:
        _end(loop)


def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Closes a loop that has run another tool's code, which may have left tasks behind: they end first."""

    async def end_all() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            ended, stubborn = await asyncio.wait(left, timeout=_GRACE)
            for task in ended:
                if not task.cancelled() and task.exception() is not None:
                    _LOG.warning("a task that was left behind has failed", exc_info=task.exception())
            if stubborn:
                _LOG.warning("tasks that were left behind do not end: %d", len(stubborn))
        await loop.shutdown_asyncgens()

    try:
        loop.run_until_complete(end_all())
    finally:
        loop.close()


def _wait[T](make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    future = asyncio.run_coroutine_threadsafe(make(), _background.loop())
    try:
        while True:
            try:
                return future.result(_LOOK_UP)
            except TimeoutError:
                if future.done():  # its own TimeoutError, not ours
                    raise
    except BaseException:
        future.cancel()
        raise
