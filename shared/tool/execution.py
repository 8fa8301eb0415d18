"""Runs a tool's code: asynchronous code on the event loop, synchronous code on a thread.

The Functions worker's own pool has five or six threads; tools have theirs, so that a slow one does not keep the
app's other functions waiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from shared.tool.context import Context
from shared.tool.handler import Handler
from shared.tool.spec import JsonObject

INLINE_THREADS: Final = 16

_inline_pool = ThreadPoolExecutor(INLINE_THREADS, thread_name_prefix="tool")


class DeadlinePassedError(Exception):
    """The call's own time is up; not to be mistaken for a TimeoutError that the tool raised."""


async def run_inline(handler: Handler, arguments: JsonObject, context: Context) -> Any:
    """The raw return value. Raises what the tool raises, and `DeadlinePassedError` after its `timeout_ms`."""
    if handler.is_async:
        return await _in_time(handler.run(arguments, context), context)
    loop = asyncio.get_running_loop()
    scope = contextvars.copy_context()
    call = loop.run_in_executor(_inline_pool, scope.run, handler.run, arguments, context)
    return await _in_time(_settled(call), context)


async def run_on_own_thread(handler: Handler, arguments: JsonObject, context: Context) -> Any:
    """Like `run_inline`, with a thread of its own for synchronous code: it may have to be abandoned."""
    if handler.is_async:
        return await _in_time(handler.run(arguments, context), context)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    scope = contextvars.copy_context()

    def work() -> None:
        try:
            outcome, failed = scope.run(handler.run, arguments, context), None
        except BaseException as error:  # SystemExit of a tool must not end silently with its thread
            outcome, failed = None, error
        # The loop may be closed when an abandoned tool comes back at last.
        if not loop.is_closed():
            loop.call_soon_threadsafe(_report, done, outcome, failed)

    threading.Thread(target=work, name=f"tool-{context.tool_name}", daemon=True).start()
    return await _in_time(_settled(done), context)


async def _in_time(work: Awaitable[Any], context: Context) -> Any:
    try:
        async with asyncio.timeout(context.timeout_ms / 1000) as deadline:
            return await work
    except TimeoutError:
        if deadline.expired():
            raise DeadlinePassedError from None
        raise


def _report(done: asyncio.Future[Any], outcome: Any, failed: BaseException | None) -> None:
    if done.done():
        return  # abandoned
    if failed is None:
        done.set_result(outcome)
    elif isinstance(failed, Exception):
        done.set_exception(failed)
    else:
        done.set_exception(RuntimeError(f"the tool raised {type(failed).__name__}: {failed}"))


async def _settled(call: Awaitable[Any]) -> Any:
    """A synchronous function may still have returned an awaitable."""
    value = await call
    return await value if inspect.isawaitable(value) else value
