"""One attempt of a job: the tool's code from its start to an outcome, whatever happens on the way.

An attempt ends by itself, at its deadline, or because it is not wanted any more: cancelled, or lost to another
worker. Asynchronous code is cancelled then, code in a process of its own is killed; synchronous code cannot be
stopped, so it is left to run out, and nothing that it still reports or returns changes anything.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from dataclasses import dataclass
from typing import Any, Final

from shared import storage
from shared.apis.connections.environments import Environments
from shared.errors import ConnectionsError, JobCancelledError, MCPTimeoutError, ResultError, ToolboxError
from shared.jobs.artifacts import JobArtifacts
from shared.jobs.checkpoint import JobCheckpoint
from shared.jobs.isolation.recipe import ToolHomes, recipe_of
from shared.jobs.isolation.run import run_isolated
from shared.jobs.model import ErrorCode, Job
from shared.jobs.payload import Input
from shared.jobs.recorder import Recorder
from shared.jobs.store import JobStore
from shared.jobs.unforeseen import describe
from shared.redaction import Redactor
from shared.tool.call import ToolCall
from shared.tool.context import ConnectionInfo, Context, end, running
from shared.tool.execution import DeadlinePassedError, run_on_own_thread
from shared.tool.handler import Handler, ToolEntry
from shared.tool.result import ToolResult
from shared.tool.spec import Isolation, JsonObject

_LOG = logging.getLogger(__name__)

#: Seconds that a tool has to end by itself once it is not wanted any more.
GRACE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended. With a result and an error, the tool has answered with an error of its own."""

    result: ToolResult | None = None
    error: str = ""
    code: ErrorCode = ErrorCode.TOOL_ERROR


async def run_attempt(
    entry: ToolEntry | None,
    job: Job,
    given: Input,
    recorder: Recorder,
    redact: Redactor,
    store: JobStore,
    homes: ToolHomes | None,
    environments: Environments,
    checkpoint: JobCheckpoint,
) -> Outcome:
    """Runs a claimed job's tool. Never raises an `Exception`. `homes`: where isolated tools are loaded from."""
    if entry is None:
        return Outcome(error=f"Tool not found: {job.tool_name}")
    connections: tuple[ConnectionInfo, ...] = ()
    if given.connections:
        try:
            connections = await storage.run(environments.of_ids, given.connections, job.owner, job.tool_name)
        except ConnectionsError as error:
            return Outcome(error=f"Failed to resolve authentication context: {error.message}")
    context = _context(job, given, recorder, store, connections, checkpoint)
    try:
        if entry.spec.rules.isolation is Isolation.PROCESS:
            result = await run_isolated(recipe_of(entry, homes), context, redact)
        else:
            handler = await storage.run(entry.load)
            value = await _while_wanted(handler, given.arguments, context, recorder)
            result = await storage.run(handler.finish, value)
    except Exception as error:
        if recorder.unwanted is not None:
            # Whatever it says, and be it that its time is up: it was told to stop.
            return Outcome(error=recorder.unwanted.message, code=ErrorCode.CANCELLED)
        if isinstance(error, DeadlinePassedError):
            recorder.abandon("The job's deadline has passed.")
            text = f"Headless execution timed out after {job.timeout_ms} ms"
            return Outcome(error=text, code=ErrorCode.TIMEOUT)
        return _failed(job, error, redact)
    finally:
        if context.state:
            await storage.run(end, context)
    if result.is_error:
        return Outcome(result, error=result.text or f"Tool '{job.tool_name}' reported an error.")
    return Outcome(result)


def _failed(job: Job, error: Exception, redact: Redactor) -> Outcome:
    match error:
        case JobCancelledError():
            return Outcome(error=error.message, code=ErrorCode.CANCELLED)
        case ResultError():
            return Outcome(error=error.message, code=ErrorCode.INVALID_RESULT)
        case MCPTimeoutError():
            return Outcome(error=error.message, code=ErrorCode.TIMEOUT)
        case ToolboxError():
            return Outcome(error=error.message)
    _LOG.warning("job %s: %s", job.job_id, redact("".join(traceback.format_exception(error))))
    return Outcome(error=describe(job.tool_name, error))


async def _while_wanted(handler: Handler, arguments: JsonObject, context: Context, recorder: Recorder) -> Any:
    """The raw return value. Raises what the tool raises, and `JobCancelledError` when it was told to stop."""
    loop = asyncio.get_running_loop()
    unwanted = asyncio.Event()

    def told() -> None:
        # From any thread; after the end of the loop it is nobody's business.
        if not loop.is_closed():
            loop.call_soon_threadsafe(unwanted.set)

    recorder.on_unwanted(told)
    running(lambda: context)
    run = asyncio.ensure_future(run_on_own_thread(handler, arguments, context))
    notice = asyncio.ensure_future(unwanted.wait())
    try:
        await asyncio.wait((run, notice), return_when=asyncio.FIRST_COMPLETED)
        if not run.done():
            if handler.is_async:
                run.cancel()
            await asyncio.wait((run,), timeout=GRACE)
        if not run.done() or run.cancelled():
            raise recorder.unwanted or JobCancelledError()
        return run.result()
    finally:
        notice.cancel()
        run.cancel()


def _context(
    job: Job,
    given: Input,
    recorder: Recorder,
    store: JobStore,
    connections: tuple[ConnectionInfo, ...],
    checkpoint: JobCheckpoint,
) -> Context:
    return Context(
        tool_id=job.tool_id,
        tool_name=job.tool_name,
        invocation_mode=job.mode,
        execution_mode=job.execution_mode,
        correlation_id=job.correlation_id,
        job_id=job.job_id,
        attempt=job.attempt,
        timeout_ms=job.timeout_ms,
        timeout_asked=job.timeout_asked,
        owner=job.owner,
        arguments=given.arguments,
        auth_token=given.auth_token,
        connections=connections,
        depth=given.depth,
        project=given.project,
        deadline=time.monotonic() + job.timeout_ms / 1000,
        call=ToolCall.from_json(given.call),
        sink=recorder,
        artifacts=JobArtifacts(job, store, lambda: recorder.over),
        checkpoint=checkpoint,
    )
