"""The virtual environment `.venv` and the Python packages in it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Mapping, Optional, Sequence

from infra.local.dev import stamps
from infra.local.dev.console import DevError, last_lines, step, warn
from infra.local.dev.hints import command_error
from infra.local.dev.processes import CommandError, capture
from infra.local.dev.python_finder import WANTED, find_python

_VERSION = ".".join(map(str, WANTED))
_CFG_VERSION = re.compile(r"^version(?:_info)?\s*=\s*(\d+\.\d+)", re.MULTILINE)
_UV_BLOCK = re.compile(r"^uv==(?:.*\\\n)*.*$", re.MULTILINE)


class Venv:
    """`folder` as a virtual environment with the packages of `requirements` (files with hashes)."""

    def __init__(self, folder: Path, requirements: Sequence[Path]) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.requirements = requirements
        self._stamp = stamps.Stamp(folder / ".dev-stamp")

    def is_usable(self) -> bool:
        """Whether it is there, of the right version, and its interpreter has not been uninstalled."""
        try:
            config = (self.folder / "pyvenv.cfg").read_text("utf-8")
        except OSError:
            return False
        version = _CFG_VERSION.search(config)
        return version is not None and version[1] == _VERSION and os.access(self.python, os.X_OK)

    def is_ready(self) -> bool:
        """Whether there is nothing to do. Starts no process."""
        return self.is_usable() and self._stamp.matches(self._digest())

    def make(self, environ: Mapping[str, str]) -> None:
        """Create it if need be and install the packages. Raises `DevError`."""
        self._stamp.remove()
        if not self.is_usable():
            self._create(environ)
        with step("Installing Python packages"):
            self._install(environ)
        self._stamp.set(self._digest())

    def _digest(self) -> str:
        return stamps.digest(self.requirements, _VERSION)

    def _create(self, environ: Mapping[str, str]) -> None:
        python = find_python(environ, Path.home())
        with step(f"Making {self.folder.name} with {python}"):
            command = [python, "-m", "venv", "--clear", str(self.folder)]
            if _which_uv(environ):
                command.append("--without-pip")
            try:
                self._run(command)
            except CommandError as failure:
                raise command_error(
                    f"The virtual environment {self.folder} could not be made.",
                    failure,
                    "If it says that ensurepip is missing, install your system's python3.13-venv package.\n"
                    f"If something else uses the folder {self.folder}, remove it. Then run the command again.",
                ) from failure

    def _install(self, environ: Mapping[str, str]) -> None:
        files = [str(file) for file in self.requirements]
        if environ.get("DEV_INSTALLER") != "pip":
            uv = _which_uv(environ) or self._own_uv()
            if uv:
                try:
                    self._run([uv, "pip", "sync", "--python", str(self.python), "--require-hashes", *files])
                    return
                except CommandError as failure:
                    warn(f"uv failed, trying pip. It said: {last_lines(failure.output, 1)}")
        options = [option for file in files for option in ("--requirement", file)]
        try:
            self._ensure_pip()
            self._pip("install", "--require-hashes", *options)
        except CommandError as failure:
            raise command_error(
                "The Python packages could not be installed.",
                failure,
                "Remove .venv and run the command again; if that does not help, the lines above say why.",
            ) from failure

    def _own_uv(self) -> Optional[str]:
        """uv inside the environment, as locked in the requirements; None if it is not to be had."""
        uv = self.folder / "bin" / "uv"
        if not uv.exists():
            locked = uv_requirement("\n".join(file.read_text("utf-8") for file in self.requirements))
            if locked is None:
                return None
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "uv.txt"
                file.write_text(locked, "utf-8")
                try:
                    self._ensure_pip()
                    self._pip("install", "--require-hashes", "--requirement", str(file))
                except CommandError:
                    return None  # pip will say why, if it fails too
        return str(uv)

    def _ensure_pip(self) -> None:
        try:
            self._pip("--version")
        except CommandError:
            self._run([str(self.python), "-m", "ensurepip", "--upgrade"])

    def _pip(self, *arguments: str) -> None:
        self._run([str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments])

    def _run(self, command: Sequence[str]) -> None:
        capture(command, cwd=str(self.folder.parent))


def uv_requirement(requirements: str) -> Optional[str]:
    """The entry of uv, with its hashes, out of the text of requirement files."""
    found = _UV_BLOCK.search(requirements)
    return found[0] + "\n" if found else None


def _which_uv(environ: Mapping[str, str]) -> Optional[str]:
    return shutil.which("uv", path=environ.get("PATH"))


def require_uv(venv: Venv, environ: Mapping[str, str]) -> str:
    """uv, for a command that cannot do without. Raises `DevError`."""
    uv = _which_uv(environ) or str(venv.folder / "bin" / "uv")
    if not os.access(uv, os.X_OK):
        raise DevError("This command needs uv.", "Install it: `.venv/bin/python -m pip install uv`.")
    return uv
