"""A tool's own process, seen from the worker: started, fed, listened to, and ended with all that it started.

One thread of the worker has one process; `Child.run` is that thread. Others may `cancel` or `kill`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from shared.errors import JobCancelledError, ToolError
from shared.jobs.isolation import frames
from shared.jobs.isolation.child import NO_LIFELINE
from shared.jobs.isolation.files import Receiver
from shared.jobs.isolation.tree import kill_descendants, kill_group
from shared.tool.context import Context
from shared.tool.spec import JsonObject

#: The app's own secrets, which no tool needs. Everything else in the environment is kept.
OWN_SECRETS: Final = frozenset(
    {"MCP_AUTH_TOKEN", "MCP_AUTH_TOKENS", "MCP_EXTENSION_KEY", "TOOLBOX_SEAL_KEY", "TOOLBOX_SEAL_KEYS"}
)
#: Seconds that a process has to end by itself when it has nothing more to say.
LINGER: Final = 1.0

_SCRIPT = Path(__file__).with_name("child.py")
_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended. `message`: the `result` or `error` it sent; None: it sent none."""

    message: JsonObject | None
    #: As `subprocess` has it: below zero for a signal. None: it was ended by us, or never started.
    code: int | None = None


class Child:
    """One process of one attempt. `redact`: for what goes to the app's log."""

    def __init__(
        self,
        recipe: JsonObject,
        context: Context,
        redact: Callable[[str], str],
        on_unwanted: Callable[[], None],
    ) -> None:
        self._recipe = recipe
        self._context = context
        self._redact = redact
        self._on_unwanted = on_unwanted
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
        lifeline = _Lifeline()
        try:
            with self._lock:
                if self._is_killed:
                    return Ending(None)
                self._process = process = self._start(lifeline)
            lifeline.drop_reading_end()
            try:
                message = self._talk(process, launch)
            finally:
                code = self._finish(process)
            return Ending(message, code)
        finally:
            lifeline.close()

    def cancel(self, reason: str) -> None:
        """Tells the tool that its result is not wanted any more. Waits for `launch` to be written."""
        with self._sending:
            process = self._process
            if process is not None and process.stdin is not None and not self._is_over:
                with contextlib.suppress(OSError, ValueError):
                    frames.write(process.stdin.fileno(), frames.packed({"type": "cancel", "reason": reason}))

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
            if field.name not in ("artifacts", "call", "connections", "sink")
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
            "logLevel": logging.getLogger().getEffectiveLevel(),
        }

    def _start(self, lifeline: _Lifeline) -> subprocess.Popen[bytes]:
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
        try:
            while (message := frames.read(process.stdout.fileno())) is not None:
                if message.get("type") == "file":
                    message = self._store(process, message)
                    if message is None:
                        continue
                if message.get("type") in ("result", "error"):
                    return message
                self._report(message)
        except (frames.FrameError, OSError) as error:
            logging.getLogger(__name__).warning(
                "job %s: its process sent what is no message: %s", self._context.job_id, error
            )
        return None

    def _store(self, process: subprocess.Popen[bytes], file: JsonObject) -> JsonObject | None:
        """Stores a file. The process's last frame, if that came before the file's end."""
        assert process.stdin is not None
        assert process.stdout is not None
        writing, reading = process.stdin.fileno(), process.stdout.fileno()

        def answer(message: JsonObject) -> None:
            with self._sending, contextlib.suppress(OSError):  # it may be gone
                frames.write(writing, frames.packed(message))

        receiver = Receiver(lambda: frames.read(reading), self._report)
        receiver.store(self._context, file, answer)
        return receiver.last

    def _report(self, message: JsonObject) -> None:
        sink, kind = self._context.sink, message.get("type")
        if kind == "progress":
            try:
                sink.progress(message.get("percent"), message.get("message"))
            except JobCancelledError:
                self._on_unwanted()
        elif kind == "log":
            sink.log(str(message.get("level")), message.get("message"))
        elif kind == "record" and isinstance(level := message.get("level"), int):
            log = logging.getLogger(str(message.get("name")))
            if log.isEnabledFor(level):
                log.log(level, "%s", self._redact(str(message.get("message"))))

    def _finish(self, process: subprocess.Popen[bytes]) -> int | None:
        """Waits a moment for the process to end by itself, then sees to it. Its exit code if it did."""
        by_itself = _ends_within(process, LINGER)
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
        _ends_within(process, LINGER)  # the watcher waits for the tool's process, and ends
        kill_group(process.pid)


class _Lifeline:
    """A pipe whose other end the process's watcher holds: it ends with this worker, and the watcher acts."""

    def __init__(self) -> None:
        self._reading = self._writing = -1
        if hasattr(os, "fork"):
            self._reading, self._writing = os.pipe()

    @property
    def passed(self) -> tuple[int, ...]:
        return () if self._reading < 0 else (self._reading,)

    @property
    def argument(self) -> str:
        return NO_LIFELINE if self._reading < 0 else str(self._reading)

    def drop_reading_end(self) -> None:
        if self._reading >= 0:
            os.close(self._reading)
            self._reading = -1

    def close(self) -> None:
        self.drop_reading_end()
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.upper() not in OWN_SECRETS}


def import_path() -> list[str]:
    """Where this process imports from, so that it means the same in a process that starts elsewhere."""
    found: list[str] = []
    for entry in sys.path:
        with contextlib.suppress(OSError):  # the working folder is gone
            found.append(os.path.abspath(entry))  # noqa: PTH100 - links stay as they are
    return list(dict.fromkeys(found))


def describe_ending(tool_name: str, code: int | None) -> str:
    """Why a process that sent no answer ended, for the caller. `code`: see `Ending`."""
    if code is None:
        what = "its process stopped answering"
    elif code >= 0:
        what = f"its process ended with exit code {code}"
    else:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = str(-code)
        what = f"its process ended with signal {name}"
        if name == "SIGKILL":
            what += "; the system does that to a process that takes too much memory"
    return f"Tool '{tool_name}' failed: {what}"


def _ends_within(process: subprocess.Popen[Any], seconds: float) -> bool:
    """Whether it ends by itself in that time. Leaves it to be waited for, so that its number stays its own."""
    if not hasattr(os, "waitid"):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        try:
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
        except ChildProcessError:
            return True  # somebody else has waited for it
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
