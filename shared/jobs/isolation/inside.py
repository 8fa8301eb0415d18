"""Runs one tool inside a process of its own: the counterpart of what a worker does on a thread.

The tool sees the same `Context`, and each way of failing gives the text that it gives on a thread. Synchronous
code runs on the main thread, asynchronous code on an event loop there.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import logging
import math
import os
import sys
import threading
import traceback
from typing import Any, Final, NoReturn

from shared.apis.ports import use_launcher, use_store
from shared.errors import JobCancelledError, ResultError, ToolboxError
from shared.jobs.isolation import frames, recipe
from shared.jobs.isolation.asking import Asker, AskingCheckpoint, AskingLauncher, AskingSettings
from shared.jobs.isolation.channel import Channel, end
from shared.jobs.isolation.files import ChannelArtifacts, known_kind
from shared.jobs.unforeseen import describe
from shared.redaction import Redactor
from shared.tool.call import ToolCall
from shared.tool.context import ConnectionInfo, Context, running
from shared.tool.context import end as end_invocation
from shared.tool.handler import Handler
from shared.tool.json_form import dumps
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, JsonObject, Mode

#: Characters of one report: far more than is kept of it, far less than a frame may have.
TEXT_LIMIT: Final = 64 * 1024

#: For tokens that this process got for connections: the worker knows its own only.
_redact: Final = Redactor()

# Made beforehand: there may be no memory for it later.
_OUT_OF_MEMORY: Final = frames.packed({"type": "error", "kind": "OutOfMemory"})


def run(channel: Channel, launch: JsonObject) -> NoReturn:
    """Runs the tool that `launch` describes, sends how it ended, and ends the process."""
    sink = ChannelSink(channel)
    artifacts = ChannelArtifacts(channel, launch, lambda: sink.unwanted)
    asker = Asker(channel)
    listening = (channel, sink, artifacts, asker)
    threading.Thread(target=_listen, args=listening, name="worker", daemon=True).start()
    use_store(lambda: AskingSettings(asker))
    use_launcher(AskingLauncher(asker))
    if launch["trace"] is not None:
        from shared.telemetry import apart

        apart.begin(launch["trace"], channel.send)
    root = logging.getLogger()
    root.setLevel(launch["logLevel"])
    root.addHandler(_ToWorker(channel))
    try:
        channel.send_frame(_run(launch, sink, artifacts, asker))
    except MemoryError:
        channel.send_frame(_OUT_OF_MEMORY)
    # What the tool asked for at the end still happens; threads that it left behind are not waited for.
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


class ChannelSink:
    """The `Sink` of a tool in a process of its own."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        #: Why later reports raise.
        self.unwanted: JobCancelledError | None = None

    @property
    def cancelled(self) -> bool:
        return self.unwanted is not None

    def cancel(self, reason: str) -> None:
        self.unwanted = JobCancelledError(reason)

    def progress(self, percent: object, message: object) -> None:
        if self.unwanted is not None:
            raise self.unwanted
        text = None if message is None else _text(message)
        self._channel.send({"type": "progress", "percent": _percent(percent), "message": text})

    def log(self, level: str, message: object) -> None:
        self._channel.send({"type": "log", "level": str(level), "message": _text(message)})


class _ToWorker(logging.Handler):
    """Records of Python's `logging`, for the app's log."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = _hidden(self.format(record)[:TEXT_LIMIT])
        except Exception:
            self.handleError(record)
            return
        self._channel.send({"type": "record", "name": record.name, "level": record.levelno, "message": text})


def _listen(channel: Channel, sink: ChannelSink, artifacts: ChannelArtifacts, asker: Asker) -> None:
    """Until the worker is gone, which nothing here outlives."""
    with contextlib.suppress(frames.FrameError, OSError):
        while (message := channel.read()) is not None:
            if message["type"] == "cancel":
                sink.cancel(message["reason"])
            elif message["type"] == "stored":
                artifacts.answered(message)
            elif message["type"] == "answer":
                asker.answered(message)
    end()


def _run(launch: JsonObject, sink: ChannelSink, artifacts: ChannelArtifacts, asker: Asker) -> bytes:
    """How the tool ended, as a frame."""
    with contextlib.ExitStack() as at_end:
        try:
            context = _context(launch, sink, artifacts, asker)
            at_end.callback(end_invocation, context)
            handler = recipe.load(launch["tool"])
            running(lambda: context)
            return _result(handler.finish(_value(handler, context)))
        except MemoryError:
            return _OUT_OF_MEMORY
        except ToolboxError as error:
            return _failure(known_kind(error), error.message)
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
            return _failure("Unexpected", describe(launch["tool"]["name"], error), text[-TEXT_LIMIT:])


def _context(launch: JsonObject, sink: ChannelSink, artifacts: ChannelArtifacts, asker: Asker) -> Context:
    given = dict(launch["context"])
    given["invocation_mode"] = Mode(given["invocation_mode"])
    given["execution_mode"] = ExecutionMode(given["execution_mode"])
    connections = _connections(launch["connections"], given["owner"], given["tool_name"])
    call = ToolCall.from_json(launch["call"])
    checkpoint = AskingCheckpoint(asker, launch["checkpoint"], lambda: sink.unwanted)
    told: JsonObject = {"call": call, "sink": sink, "artifacts": artifacts, "checkpoint": checkpoint}
    return Context(**given, connections=connections, **told)


def _connections(ids: list[str], owner: str, tool: str) -> tuple[ConnectionInfo, ...]:
    if not ids:
        return ()
    from shared.apis.connections.environments import from_settings
    from shared.apis.environment import use_resolver
    from shared.settings import connection_settings

    environments = from_settings(*connection_settings())
    use_resolver(environments.resolve)
    return environments.of_ids(ids, owner, tool)


def _value(handler: Handler, context: Context) -> Any:
    """What the tool returned. Raises what it raised, what would end a thread as `RuntimeError`."""
    if handler.is_async:
        return _awaited(handler, context, None)
    try:
        value = handler.run(context.arguments, context)
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise
        raise RuntimeError(f"the tool raised {type(error).__name__}: {error}") from error
    # A synchronous function may still have returned an awaitable.
    return _awaited(handler, context, value) if inspect.isawaitable(value) else value


def _awaited(handler: Handler, context: Context, value: Any) -> Any:
    import asyncio

    async def work() -> Any:
        found = value if value is not None else handler.run(context.arguments, context)
        for _ in range(2):
            found = await found if inspect.isawaitable(found) else found
        return found

    try:
        # Not `asyncio.run`: it would wait for threads that the tool has abandoned.
        return asyncio.new_event_loop().run_until_complete(work())
    except asyncio.CancelledError as error:
        raise RuntimeError("the tool raised CancelledError") from error
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"the tool raised {type(error).__name__}: {error}") from error


def _result(result: ToolResult) -> bytes:
    body = dumps(
        {
            "type": "result",
            "content": _redact.data(list(result.content)),
            "structured": _redact.data(result.structured),
            "isError": result.is_error,
            "meta": result.meta,
            "wrapped": str(result.wrapped),
        }
    ).encode()
    if len(body) > frames.FRAME_LIMIT:
        raise ResultError(f"The result has {len(body)} bytes as JSON; a job keeps at most 64 MiB.")
    return frames.framed(body)


def _failure(kind: str, message: str, trace: str = "") -> bytes:
    told: JsonObject = {"type": "error", "kind": kind, "message": _hidden(message[: 16 * TEXT_LIMIT])}
    if trace:
        told["traceback"] = _hidden(trace)
    return frames.packed(told)


def _percent(value: object) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return math.floor(min(max(value, 0), 100))


def _text(value: object) -> str:
    try:
        return _hidden(str(value)[:TEXT_LIMIT])
    except Exception:
        return f"<{type(value).__name__}>"


def _hidden(text: str) -> str:
    return _redact(text) if _redact.knows_tokens else text
