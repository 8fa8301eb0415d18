"""Runs one attempt of a job in a process of its own: for tools with `isolation: "process"`.

What it protects from: code that cannot be stopped (killed at the deadline, with what it has started), code that
takes its process down, memory that is never given back. What it is not: a sandbox. The process is the app's own
user, sees its files, its network and its environment, but for the app's own secrets (`process.OWN_SECRETS`).

The start of the process counts as part of the attempt's time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

from shared import errors
from shared.errors import JobCancelledError, ToolboxError, ToolError
from shared.jobs.isolation.desk import Desk
from shared.jobs.isolation.ending import Ending, describe_ending
from shared.jobs.isolation.process import Child
from shared.tool.context import Context, Sink
from shared.tool.execution import DeadlinePassedError
from shared.tool.result import ToolResult, Wrapped
from shared.tool.spec import JsonObject
from shared.tool.threads import run_on_new_thread

_LOG = logging.getLogger(__name__)

#: Seconds that a tool has, once it was told that its job is not wanted any more.
GRACE: Final = 2.0
#: Seconds between two looks at a sink that does not tell by itself that the job is not wanted any more.
POLL: Final = 0.25
#: Seconds that a killed process is waited for. Only a kernel that hangs makes it longer.
LAST_WAIT: Final = 10.0


@runtime_checkable
class _Telling(Protocol):
    """A sink that tells by itself. Anything else is looked at every `POLL` seconds."""

    def on_unwanted(self, callback: Callable[[], Any], /) -> Any: ...


async def run_isolated(recipe: JsonObject, context: Context, redact: Callable[[str], str]) -> ToolResult:
    """The tool's checked answer. `recipe`: see `shared.jobs.isolation.recipe`.

    Raises what a run on a thread raises: `ToolboxError` of the tool's, `ToolError` with the text for an
    unforeseen exception or a process that ended by itself, `JobCancelledError`, and `DeadlinePassedError`. When
    it returns or raises, the process is gone.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.timeout_ms / 1000
    unwanted = asyncio.Event()

    def told(*_: object) -> None:
        # From any thread; after the end of the loop it is nobody's business.
        if not loop.is_closed():
            loop.call_soon_threadsafe(unwanted.set)

    desk = Desk(context)
    child = Child(recipe, context, redact, told, desk)
    ended = asyncio.ensure_future(run_on_new_thread(f"process-{context.tool_name}", child.run))
    ended.add_done_callback(lambda task: task.cancelled() or task.exception())
    notice = asyncio.ensure_future(_unwanted(context.sink, unwanted, told))
    try:
        await asyncio.wait(
            (ended, notice), timeout=context.timeout_ms / 1000, return_when=asyncio.FIRST_COMPLETED
        )
        if ended.done():
            return _answer(ended.result(), context, redact)
        if not notice.done():
            raise DeadlinePassedError
        notice.result()
        reason = _reason(context.sink)
        threading.Thread(target=child.cancel, args=(reason,), name="cancel", daemon=True).start()
        await asyncio.wait((ended,), timeout=min(GRACE, max(deadline - loop.time(), 0)))
        if ended.done():
            return _answer(ended.result(), context, redact)
        raise JobCancelledError(reason)
    finally:
        notice.cancel()
        try:
            if not ended.done():
                await run_on_new_thread("kill", child.kill)
                await asyncio.wait((ended,), timeout=LAST_WAIT)
                if not ended.done():
                    _LOG.error("job %s: its process cannot be killed", context.job_id)
        finally:
            await desk.close()


def _answer(ending: Ending, context: Context, redact: Callable[[str], str]) -> ToolResult:
    message = ending.message
    if ending.fault:
        raise ToolError(
            f"Tool '{context.tool_name}' failed: the tool's process wrote something that is not a message to "
            f"the worker: {ending.fault}"
        )
    if message is None:
        ended = describe_ending(context.tool_name, ending.code)
        _LOG.warning("job %s: %s", context.job_id, ended)
        raise ToolError(ended)
    if message["type"] == "result":
        return ToolResult(
            tuple(message["content"]),
            message["structured"],
            is_error=message["isError"],
            meta=message["meta"],
            wrapped=Wrapped(message["wrapped"]),
        )
    kind, text = message["kind"], message.get("message")
    if kind == "OutOfMemory":
        raise ToolError(f"Tool '{context.tool_name}' failed: its process ran out of memory")
    if kind == "Unexpected":
        _LOG.warning("job %s: %s", context.job_id, redact(message.get("traceback", "")))
        raise ToolError(text)
    known = getattr(errors, kind, None)
    raise (known if isinstance(known, type) and issubclass(known, ToolboxError) else ToolError)(text)


async def _unwanted(sink: Sink, event: asyncio.Event, told: Callable[..., None]) -> None:
    """Returns when the job is not wanted any more."""
    pause: float | None = POLL
    if isinstance(sink, _Telling):
        sink.on_unwanted(told)
        pause = None
    while not sink.cancelled and not event.is_set():
        try:
            async with asyncio.timeout(pause):
                await event.wait()
        except TimeoutError:
            continue


def _reason(sink: Sink) -> str:
    try:
        sink.progress(None, None)
    except JobCancelledError as error:
        return error.message
    return JobCancelledError.default
