"""What the process shows of itself: lines on stdout, the log on stderr, the ready file, and its end."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from typing import TYPE_CHECKING

from infra.local.host.errors import HostError

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from infra.local.host.errors import ExitCode


def write_ready_file(path: Path | None, sock: socket.socket | None) -> None:
    """Write {"port", "pid"} in one step, so that a reader never sees half of it. ``port`` may be null.

    Raises HostError when the file cannot be written.
    """
    if path is None:
        return
    port = None if sock is None else sock.getsockname()[1]
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps({"port": port, "pid": os.getpid()}))
        temporary.replace(path)
    except OSError as error:
        raise HostError(f"The ready file {path} cannot be written: {error.strerror}.") from None


def say(text: str) -> None:
    """A line for the person at the terminal; a closed pipe must not stop the host."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def end(code: ExitCode) -> None:
    """End the process now, whatever threads are doing."""
    logging.shutdown()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)


def configure_logging(level: str) -> None:
    """Log lines on stderr in UTC; the libraries' own chatter only from WARNING on."""
    names = {"trace": "DEBUG", "debug": "DEBUG", "information": "INFO", "warning": "WARNING", "error": "ERROR"}
    handler = logging.StreamHandler()
    formatter = logging.Formatter("[%(asctime)s.%(msecs)03dZ] %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(names.get(level.lower(), "CRITICAL"))
    for name in ("azure", "uvicorn", "asyncio", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)
