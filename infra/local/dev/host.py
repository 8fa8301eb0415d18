"""The local Functions host as a child process of dev.py."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from infra.local.dev import paths, processes
from infra.local.dev.console import DevError
from infra.local.dev.ports import LOOPBACK
from infra.local.host.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The host lets running work finish for 10 s when it is told to stop.
_STOP_SECONDS = 15.0
_READY_SECONDS = 60.0
_TAIL_LINES = 40


def port_in_use(port: int) -> DevError:
    """The error for a port that another program has."""
    another = port + 1 if port < 65535 else port - 1
    return DevError(
        f"Port {port} is in use by another program.",
        f"Stop it, or choose another: `python3 dev.py run --port {another}` (`--port 0` takes any free one).",
    )


class HostProcess:
    """One run of `infra.local.host`. Its output goes to a file, and to the terminal while `echo` is set.

    `port` is the one asked for, and once the host is ready the one that it listens on.
    """

    def __init__(self, port: int, *, auth: bool, environ: Mapping[str, str], folder: Path) -> None:
        """Start it. `folder` is a private one: for its log, and for the file that says that it is ready."""
        self.port = port
        self.log_file = folder / "host.log"
        self.echo = False
        self._ready_file = folder / "ready.json"
        self._ready_file.unlink(missing_ok=True)
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        command = [str(paths.VENV_PYTHON), "-m", "infra.local.dev.with_parent", "infra.local.host", "."]
        command += ["--port", str(port), "--ready-file", str(self._ready_file)]
        command += ["--auth"] if auth else []
        # In a group of its own: Ctrl-C is for dev.py, which stops the host before the storage.
        self.process = processes.start(
            command,
            cwd=paths.REPO,
            env=dict(environ),
            stdin=subprocess.PIPE,  # never written to: its end tells the host that dev.py is gone
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, name="host-output", daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        """Where it serves, without a slash at the end."""
        return f"http://{LOOPBACK}:{self.port}"

    def wait_until_ready(self, seconds: float = _READY_SECONDS) -> None:
        """Wait until it serves. Raises `DevError`."""
        deadline = time.monotonic() + seconds
        while not self._is_ready():
            code = self.process.poll()
            if code == ExitCode.PORT_IN_USE:
                raise port_in_use(self.port)
            if code is not None:
                raise self.error(f"The app did not start: the host ended with exit code {code}.")
            if time.monotonic() > deadline:
                raise self.error(f"The app was not ready within {seconds:.0f} s.")
            time.sleep(0.02)

    def left_out(self) -> list[str]:
        """What the app said of tools that it left out, a line each."""
        lines = b"".join(self._tail).decode("utf-8", "replace").splitlines()
        return [line.partition("] ")[2] or line for line in lines if ": left out: " in line]

    def error(self, message: str, hint: str = "") -> DevError:
        """An error that shows the last lines of the host's output, unless they were on the terminal anyway."""
        if self.process.poll() is not None:
            self._reader.join(1.0)  # it reads to the end now
        tail = "" if self.echo else b"".join(self._tail).decode("utf-8", "replace")
        return DevError(message, hint or f"All of the app's output is in {paths.HOST_LOG}.", details=tail)

    def stop(self) -> None:
        """SIGTERM, time to finish, then SIGKILL for it and for anything that it started. Repeatable."""
        processes.end(self.process, _STOP_SECONDS)
        self._reader.join(1.0)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def _is_ready(self) -> bool:
        try:
            self.port = int(json.loads(self._ready_file.read_text("utf-8"))["port"])
        except (FileNotFoundError, ValueError):  # not there, or not yet complete
            return False
        return True

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.log_file.open("ab", buffering=0) as log:
            for line in self.process.stdout:
                self._tail.append(line)
                log.write(line)
                if self.echo:
                    sys.stdout.buffer.write(line)
                    sys.stdout.buffer.flush()
