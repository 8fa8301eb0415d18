"""A `dev.py run` under test."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final

from infra.local.dev import paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.acceptance.dev.conftest import Family

_SECONDS: Final = 120.0


class Run:
    """A `dev.py run` on free ports with temporary data, and its output up to now."""

    def __init__(
        self,
        family: Family,
        *options: str,
        environ: Mapping[str, str] | None = None,
        root: Path = paths.REPO,
    ) -> None:
        """`root`: the checkout whose dev.py is run, or a copy of it."""
        self.family = family
        self.process = subprocess.Popen(
            [sys.executable, str(root / "dev.py"), "run", "--port", "0", "--temp-data", *options],
            env={**family.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.output = ""
        # A run that hangs ends the test with what it printed, not with the time limit of CI.
        self._limit = threading.Timer(_SECONDS, self.process.kill)
        self._limit.start()

    def read_until(self, text: str) -> None:
        """Read output up to the text, also in the middle of a line."""
        assert self.process.stdout is not None
        while text not in self.output:
            character = self.process.stdout.read(1)
            assert character, f"it ended without saying {text!r}:\n{self.output}\n{self._errors()}"
            self.output += character

    def finish(self, *, left_after: float = 1.0) -> tuple[int, str]:
        """Wait for the end; exit code and stderr. Nothing that it started may be left."""
        assert self.process.stdout is not None
        self.output += self.process.stdout.read()
        errors = self._errors()
        code = self.process.wait()
        self._limit.cancel()
        assert not self.family.wait_until_gone(left_after)
        assert "Traceback" not in errors
        return code, errors

    def child(self, name: str) -> int:
        """The process id of the child whose command line holds the name."""
        (found,) = [pid for pid, command in self.family.members().items() if name in command]
        return found

    def _errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
