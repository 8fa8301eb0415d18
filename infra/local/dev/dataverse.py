"""The stand-in for Dataverse as a child process of dev.py, and what it says of itself."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.local.dev import paths, processes
from infra.local.dev.console import DevError, last_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Accounts to begin with: with `dataverse_demo.PAGE` rows on a page, several pages.
COMPANIES: Final = 260
_ENVIRONMENT: Final = "dev"
_READY_SECONDS = 60.0
_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stand-in is, and how one signs in to it. New in each run."""

    url: str
    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)
    authority: str
    power_platform_url: str
    #: The authority that its certificate is from.
    ca_file: Path


class DataverseProcess:
    """One run of `infra.local.dataverse`. It ends with dev.py, however that ends (see `with_parent`)."""

    def __init__(self, *, environ: Mapping[str, str], folder: Path) -> None:
        """Start it. `folder` is a private one, for all files of it, also those that it makes itself."""
        self._ready_file = folder / "dataverse.json"
        self._log_file = folder / "dataverse.log"
        command = [str(paths.VENV_PYTHON), "-m", "infra.local.dev.with_parent", "infra.local.dataverse"]
        command += ["--environments", _ENVIRONMENT, "--accounts", "0", "--companies", str(COMPANIES)]
        command += ["--ready-file", str(self._ready_file)]
        with self._log_file.open("wb") as log:
            # In a group of its own: Ctrl-C is for dev.py, which stops the app before what it uses.
            self.process = processes.start(
                command,
                cwd=paths.REPO,
                env={**environ, "TMPDIR": str(folder)},
                stdin=subprocess.PIPE,  # never written to: its end tells the stand-in that dev.py is gone
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self, seconds: float = _READY_SECONDS) -> Place:
        """Wait until it serves, take over what it says, and remove the file with that. Raises `DevError`."""
        deadline = time.monotonic() + seconds
        while (place := self._read()) is None:
            code = self.process.poll()
            if code is not None:
                raise self._error(f"The Dataverse stand-in did not start: it ended with exit code {code}.")
            if time.monotonic() > deadline:
                raise self._error(f"The Dataverse stand-in was not ready within {seconds:.0f} s.")
            time.sleep(0.02)
        self._ready_file.unlink()
        return place

    def stop(self) -> None:
        """SIGTERM, time to remove its certificate, then SIGKILL. Repeatable."""
        processes.end(self.process, _STOP_SECONDS)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _read(self) -> Place | None:
        try:
            text = self._ready_file.read_text("utf-8")  # it appears in one step, complete
        except FileNotFoundError:
            return None
        given: dict[str, Any] = json.loads(text)["environments"][_ENVIRONMENT]
        return Place(
            url=given["url"],
            tenant_id=given["tenantId"],
            client_id=given["clientId"],
            client_secret=given["clientSecret"],
            authority=given["authority"],
            power_platform_url=given["powerPlatformUrl"],
            ca_file=Path(given["caFile"]),
        )

    def _error(self, message: str) -> DevError:
        return DevError(message, details=last_lines(self._log_file.read_text("utf-8", "replace")))
