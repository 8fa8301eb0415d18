"""dev.py starts under any Python from 3.8 on: what runs before it has found 3.13 keeps to that grammar."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.dev.conftest import DevCommand


def _imports(tree: ast.Module) -> Iterator[str]:
    """The modules of this project that are imported when the module is, not by a function of it."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("infra"):
            assert node.module
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_before_the_venv() -> set[Path]:
    found: set[Path] = set()
    waiting = [paths.REPO / "dev.py", paths.REPO / "infra" / "local" / "dev" / "__init__.py"]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imports(ast.parse(path.read_text("utf-8"))):
            module = paths.REPO.joinpath(*name.split(".")).with_suffix(".py")
            if module.is_file():
                waiting.append(module)
    return found


def test_the_modules_are_found() -> None:
    names = {path.name for path in modules_before_the_venv()}
    assert {"dev.py", "cli.py", "setup.py", "venv.py", "node.py", "locks.py", "console.py"} <= names
    assert "run.py" not in names


@pytest.mark.parametrize("path", sorted(modules_before_the_venv()), ids=lambda path: path.name)
def test_grammar_of_3_8(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 8))


def _interpreter(minor: int) -> str | None:
    """A Python 3.minor of this machine, under pyenv or on PATH (where it may be a shim that does not work)."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [str(path) for path in root.glob(f"versions/3.{minor}.*/bin/python3.{minor}")]
    for candidate in [*found, shutil.which(f"python3.{minor}")]:
        if candidate and subprocess.run([candidate, "--version"], capture_output=True).returncode == 0:
            return candidate
    return None


@pytest.mark.parametrize("minor", [8, 9, 10, 11, 12])
def test_starts_and_goes_on_in_the_venv(minor: int, dev_command: DevCommand) -> None:
    python = _interpreter(minor)
    if python is None:
        pytest.skip(f"this machine has no Python 3.{minor}")
    shown = dev_command("--help", python=python)
    assert shown.returncode == 0, shown.stderr
    assert "run" in shown.stdout
    # A command that does nothing but fail after it has changed over to the virtual environment.
    done = dev_command("bench", "no-such-benchmark", python=python)
    assert done.returncode == 2, done.stderr
    assert "benchmark" in done.stderr
    assert "Traceback" not in done.stderr
