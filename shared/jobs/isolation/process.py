"""A tool's own process, seen from the worker: started, fed, listened to, and ended with all that it started.

One thread of the worker has one process; `Child.run` is that thread. Others may `cancel` or `kill`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final, Protocol

from shared import telemetry
from shared.apis.environment import PowerPlatform
from shared.errors import JobCancelledError, ToolError
from shared.jobs.isolation import frames, grammar
from shared.jobs.isolation.ending import Ending, ends_within
from shared.jobs.isolation.files import Receiver
from shared.jobs.isolation.lifeline import Lifeline
from shared.jobs.isolation.tree import kill_descendants, kill_group
from shared.tool.context import Context
from shared.tool.spec import JsonObject

_LOG = logging.getLogger(__name__)

#: The app's own secrets, which no tool needs. Everything else in the environment is kept.
OWN_SECRETS: Final = frozenset(
    {
        "APPLICATIONINSIGHTS_CONNECTION_STRING",
        "MCP_AUTH_TOKEN",
        "MCP_AUTH_TOKENS",
        "MCP_EXTENSION_KEY",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "TOOLBOX_SEAL_KEY",
        "TOOLBOX_SEAL_KEYS",
    }
)
#: Seconds that a process has to end by itself when it has nothing more to say.
LINGER: Final = 1.0

_SCRIPT = Path(__file__).with_name("child.py")
_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


class Asked(Protocol):
    """Answers what a process asks for. See `shared.jobs.isolation.desk`."""

    def asked(self, message: JsonObject, answer: Callable[[JsonObject], None]) -> None: ...

    def drop(self, number: int) -> None: ...


class Child:
    """One process of one attempt. `redact`: for what goes to the app's log."""

    def __init__(
        self,
        recipe: JsonObject,
        context: Context,
        redact: Callable[[str], str],
        on_unwanted: Callable[[], None],
        desk: Asked,
    ) -> None:
        self._recipe = recipe
        self._context = context
        self._redact = redact
        self._on_unwanted = on_unwanted
        self._desk = desk
        self._trace = telemetry.Taker(_addresses(context))
        # Guards what follows: nobody may be signalled after it was waited for.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False
        self._is_over = False
        # `launch` is written by its own thread, `cancel` by another one.
        self._sending = threading.Lock()

    def run(self) -> Ending:
        """Starts the process and stays with it until it is gone. Raises `ToolError` when it cannot start."""
        launch = frames.packed(self._launch())
        lifeline = Lifeline()
        try:
            with self._lock:
                if self._is_killed:
                    return Ending(None)
                self._process = process = self._start(lifeline)
            lifeline.drop_reading_end()
            message, fault = None, ""
            try:
                message = self._talk(process, launch)
            except frames.FrameError as error:
                fault = str(error)
                self.kill()
            finally:
                code = self._finish(process)
            return Ending(message, fault, code)
        finally:
            lifeline.close()

    def cancel(self, reason: str) -> None:
        """Tells the tool that its result is not wanted any more. Waits for `launch` to be written."""
        self._tell({"type": "cancel", "reason": reason})

    def kill(self) -> None:
        """Ends the process and everything that it has started, or keeps it from starting."""
        with self._lock:
            self._is_killed = True
            if self._process is not None and not self._is_over:
                self._kill(self._process)

    def _launch(self) -> JsonObject:
        context = {
            field.name: value
            for field in fields(Context)
            if field.name not in ("artifacts", "call", "checkpoint", "connections", "sink")
            and isinstance(value := getattr(self._context, field.name), _PLAIN)
        }
        return {
            "type": "launch",
            "path": import_path(),
            "tool": self._recipe,
            "context": context,
            # Ids alone: how to sign in is in the settings, which the process has too.
            "connections": self._context.connectionIds,
            "call": self._context.call.to_json(),
            "checkpoint": self._context.checkpoint.value,
            "logLevel": logging.getLogger().getEffectiveLevel(),
            "trace": self._trace.handed_over,
        }

    def _start(self, lifeline: Lifeline) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [sys.executable or "python3", "-P", str(_SCRIPT), lifeline.argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=child_environment(os.environ),
                pass_fds=lifeline.passed,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ToolError(
                f"Tool '{self._context.tool_name}' failed: its process could not be started: {reason}"
            ) from error

    def _talk(self, process: subprocess.Popen[bytes], launch: bytes) -> JsonObject | None:
        assert process.stdin is not None
        assert process.stdout is not None
        with self._sending, contextlib.suppress(OSError):  # it may be gone already
            frames.write(process.stdin.fileno(), launch)
        reading = process.stdout.fileno()
        try:
            while (message := _read(reading)) is not None:
                if message["type"] == "file":
                    message = self._store(process, message)
                    if message is None:
                        continue
                if message["type"] in ("result", "error"):
                    return message
                self._report(message)
        except (frames.CutOffError, OSError) as error:
            _LOG.warning("job %s: its process ended in a message: %s", self._context.job_id, error)
        return None

    def _store(self, process: subprocess.Popen[bytes], file: JsonObject) -> JsonObject | None:
        """Stores a file. The process's last frame, if that came before the file's end."""
        assert process.stdout is not None
        reading = process.stdout.fileno()
        receiver = Receiver(lambda: _read(reading), self._report)
        receiver.store(self._context, file, self._tell)
        return receiver.last

    def _tell(self, message: JsonObject) -> None:
        """Sends an answer. From any thread; a process that is gone does not want it any more.

        Raises `FrameError` for one that the process would not take, and what `frames.packed` raises.
        """
        frame = frames.packed(message)
        if len(frame) > frames.FRAME_LIMIT:
            raise frames.FrameError(f"the answer has {len(frame)} bytes, more than a tool's own process takes")
        with self._sending:
            process = self._process
            if process is not None and process.stdin is not None and not self._is_over:
                with contextlib.suppress(OSError, ValueError):
                    frames.write(process.stdin.fileno(), frame)

    def _report(self, message: JsonObject) -> None:
        """Acts on a message that ends nothing. Raises `FrameError` for one that is out of its place."""
        sink = self._context.sink
        match message["type"]:
            case "progress":
                try:
                    sink.progress(message["percent"], message["message"])
                except JobCancelledError:
                    self._on_unwanted()
            case "log":
                sink.log(message["level"], message["message"])
            case "record":
                log = logging.getLogger(message["name"])
                if log.isEnabledFor(message["level"]):
                    log.log(message["level"], "%s", self._redact(message["message"]))
            case "ask":
                self._desk.asked(message, self._tell)
            case "drop":
                self._desk.drop(message["number"])
            case "span":
                self._trace.span(message)
            case "request":
                self._trace.request(message)
            case kind:
                raise frames.FrameError(f"a message '{kind}' where none is expected")

    def _finish(self, process: subprocess.Popen[bytes]) -> int | None:
        """Waits a moment for the process to end by itself, then sees to it. Its exit code if it did."""
        by_itself = ends_within(process, LINGER)
        with self._lock:
            was_killed = self._is_killed
            if by_itself:
                kill_group(process.pid)  # the rest was seen to before it ended
            else:
                self._kill(process)
            code = process.wait()
            self._is_over = True
        with self._sending:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()
        return code if by_itself and not was_killed else None

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        kill_descendants(process.pid)
        ends_within(process, LINGER)  # the watcher waits for the tool's process, and ends
        kill_group(process.pid)


def _read(descriptor: int) -> JsonObject | None:
    """The next message, whose fields are what they must be; None at the end. Raises `FrameError`, `OSError`."""
    message = frames.read(descriptor)
    return None if message is None else grammar.checked(message)


def _addresses(context: Context) -> list[str]:
    """Of the services that the job's connections lead to."""
    found = [PowerPlatform().url]
    for info in context.connections:
        found += [info.url, str(getattr(info.origin, "power_platform_url", ""))]
    return found


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.upper() not in OWN_SECRETS}


def import_path() -> list[str]:
    """Where this process imports from, so that it means the same in a process that starts elsewhere."""
    found: list[str] = []
    for entry in sys.path:
        with contextlib.suppress(OSError):  # the working folder is gone
            found.append(os.path.abspath(entry))  # noqa: PTH100 - links stay as they are
    return list(dict.fromkeys(found))
