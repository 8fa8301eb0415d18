"""What dev.py says: progress and results on stdout, errors on stderr, colour only on a terminal."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import Iterator, Optional, TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class DevError(Exception):
    """Something that the person at the terminal can put right: `message` says what, `hint` what to do."""

    def __init__(self, message: str, hint: str = "", details: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        self.exit_code = exit_code


def paint(text: str, style: str, stream: Optional[TextIO] = None) -> str:
    """`text` in a style, if the stream is a terminal that wants colour (https://no-color.org)."""
    stream = stream or sys.stdout
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{_CODES[style]}m{text}\033[0m"


def say(text: str = "", end: str = "\n") -> None:
    """A line of progress or result, shown at once even when stdout is a pipe."""
    print(text, end=end, flush=True)


def headline(text: str) -> None:
    """A line that starts a new part of the output."""
    say()
    say(paint(text, "bold"))


def warn(text: str) -> None:
    """Something that does not stop the command."""
    print(paint("note: ", "yellow", sys.stderr) + text, file=sys.stderr, flush=True)


def show_error(error: DevError) -> None:
    """The error as a person reads it: what a program said, then what is wrong, then what to do."""
    if error.details:
        print(paint(error.details.rstrip(), "dim", sys.stderr), file=sys.stderr)
    print(paint("error: ", "red", sys.stderr) + error.message, file=sys.stderr)
    if error.hint:
        print(error.hint, file=sys.stderr)
    sys.stderr.flush()


@contextmanager
def step(text: str) -> Iterator[None]:
    """Names what takes a while, and says how long it took."""
    say(f"{text} … ", end="")
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say(paint("failed", "red"))
        raise
    say(paint(f"done ({time.monotonic() - started:.1f} s)", "green"))


def last_lines(output: str, count: int = 25) -> str:
    """The end of a program's output, which is where it says what went wrong."""
    return "\n".join(output.rstrip().splitlines()[-count:])
