"""Exit codes of the host process and the errors that stop its start."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process ends with; documented in README.md and relied on by whoever supervises the host."""

    OK = 0  # stopped by SIGTERM or SIGINT
    START_FAILED = 1  # settings, host.json, or the app itself; the message is on stderr
    USAGE = 2  # wrong command line (argparse)
    PORT_IN_USE = 3
    FORCED = 4  # a second signal arrived while the first was still being honoured
    FUNCTION_TIMEOUT = 75  # functionTimeout expired: start the host again


class HostError(Exception):
    """The host cannot start. ``str(error)`` is a message for the developer; no traceback is shown."""

    exit_code: ExitCode = ExitCode.START_FAILED


class PortInUseError(HostError):
    """Another process listens on the wanted port."""

    exit_code = ExitCode.PORT_IN_USE


class AppError(HostError):
    """The app does not import or index; the message carries the worker's text and the app's own frames."""
