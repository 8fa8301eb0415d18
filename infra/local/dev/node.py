"""Node.js, and the npm packages that local runs and tests need (Azurite; Inspector and conformance suite)."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Mapping, Optional, Sequence

from infra.local.dev import stamps
from infra.local.dev.console import DevError, step
from infra.local.dev.hints import command_error
from infra.local.dev.processes import Command, CommandError, capture

if TYPE_CHECKING:
    from pathlib import Path

MINIMUM = 20
_GET_NODE = (
    f"Install Node.js {MINIMUM} or newer (nodejs.org, your system's packages, nvm, `brew install node`) and\n"
    "see that `node` and `npm` are on PATH. Azurite, the storage emulator, runs on it."
)


class NodePackages:
    """`folder/node_modules` as the lock file says."""

    def __init__(self, folder: Path, files: Sequence[Path], expected: Path) -> None:
        self.folder = folder
        self.files = files
        self.expected = expected
        self._stamp = stamps.Stamp(folder / "node_modules" / ".dev-stamp")

    def is_ready(self) -> bool:
        """Whether there is nothing to do. Starts no process."""
        return self._stamp.matches(stamps.digest(self.files)) and self.expected.is_file()

    def start_install(self, environ: Mapping[str, str]) -> Command:
        """Start `npm ci`, for `finish_install` to wait for. Raises `DevError`."""
        npm = require_npm(environ, self.folder)
        self._stamp.remove()
        try:
            return Command(
                [npm, "ci", "--ignore-scripts", "--prefer-offline", "--loglevel=error"], cwd=str(self.folder)
            )
        except CommandError as failure:
            raise _npm_error(failure) from failure

    def finish_install(self, command: Command) -> None:
        """Wait for the end of the installation. Raises `DevError`."""
        with step("Installing npm packages (Azurite)"):
            try:
                command.finish()
            except CommandError as failure:
                raise _npm_error(failure) from failure
            self._stamp.set(stamps.digest(self.files))


def require_node(environ: Mapping[str, str]) -> str:
    """The path of node. Raises `DevError`."""
    node = shutil.which("node", path=environ.get("PATH"))
    if node is None:
        raise DevError("Node.js was not found: there is no `node` on PATH.", _GET_NODE)
    return node


def require_npm(environ: Mapping[str, str], folder: Path) -> str:
    """The path of npm, after a look at node's version. Raises `DevError`."""
    node = require_node(environ)
    try:
        answer = capture([node, "--version"], cwd=str(folder))
    except CommandError as failure:
        raise DevError(f"{node} does not run.", _GET_NODE, details=failure.output) from failure
    version = major_version(answer)
    if version is None or version < MINIMUM:
        raise DevError(f"Node.js is too old: {node} is {answer.strip()}, and {MINIMUM} is needed.", _GET_NODE)
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise DevError("npm was not found: there is a `node` on PATH but no `npm`.", _GET_NODE)
    return npm


def major_version(text: str) -> Optional[int]:
    """20 for "v20.20.2"."""
    found = re.match(r"v(\d+)\.", text.strip())
    return int(found[1]) if found else None


def _npm_error(failure: CommandError) -> DevError:
    return command_error(
        "The npm packages could not be installed.",
        failure,
        "The lines above say why. If package.json was changed, run `python3 dev.py lock`.",
    )
