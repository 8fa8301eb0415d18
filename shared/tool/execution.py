"""Runs a tool's code: asynchronous code on the event loop, synchronous code on a thread.

The Functions worker's own pool has five or six threads; tools have theirs, so that a slow one does not keep the
app's other functions waiting.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any, Final

from shared.tool.context import Context
from shared.tool.handler import Handler
from shared.tool.spec import JsonObject
from shared.tool.threads import ThreadPool, run_on_new_thread

INLINE_THREADS: Final = 16

#: The app's event loop, for synchronous code's calls of other tools, which run on a loop of their own.
_home: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("toolbox_home_loop", default=None)

_inline_pool = ThreadPool(INLINE_THREADS, "inline-tool")


class DeadlinePassedError(Exception):
    """The call's own time is up; not to be mistaken for a TimeoutError that the tool raised."""


async def run_inline(handler: Handler, arguments: JsonObject, context: Context | None, timeout_ms: int) -> Any:
    """The raw return value. Raises what the tool raises, and `DeadlinePassedError` after `timeout_ms`."""
    if handler.is_async:
        return await _in_time(handler.run(arguments, context), timeout_ms)
    _remember_home()
    return await _in_time(_inline_pool.run(handler.run, arguments, context), timeout_ms)


async def run_on_own_thread(handler: Handler, arguments: JsonObject, context: Context) -> Any:
    """Like `run_inline`, with a thread of its own for synchronous code: it may take long, or be abandoned."""
    if handler.is_async:
        return await _in_time(handler.run(arguments, context), context.timeout_ms)
    _remember_home()
    name = f"tool-{context.tool_name}"
    return await _in_time(run_on_new_thread(name, handler.run, arguments, context), context.timeout_ms)


def home_loop() -> asyncio.AbstractEventLoop:
    """The loop that the running call came in on: what is kept between calls belongs to it."""
    return _home.get() or asyncio.get_running_loop()


def _remember_home() -> None:
    if _home.get() is None:
        _home.set(asyncio.get_running_loop())


async def _in_time(work: Awaitable[Any], timeout_ms: int) -> Any:
    try:
        async with asyncio.timeout(timeout_ms / 1000) as deadline:
            value = await work
            # A synchronous function may still have returned an awaitable.
            return await value if inspect.isawaitable(value) else value
    except TimeoutError:
        if deadline.expired():
            raise DeadlinePassedError from None
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # it is the call that was cancelled, not something inside the tool
        raise RuntimeError("the tool raised CancelledError") from None
    except (SystemExit, KeyboardInterrupt) as error:
        # Left alone, it would end the event loop, and with it every other call of this worker.
        raise RuntimeError(f"the tool raised {type(error).__name__}: {error}") from None
