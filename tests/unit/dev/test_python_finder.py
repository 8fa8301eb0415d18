"""Which interpreter becomes the one of .venv."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import python_finder
from infra.local.dev.console import DevError
from infra.local.dev.python_finder import candidates, find_python, probe

if TYPE_CHECKING:
    from tests.unit.dev.conftest import Script

# What a pyenv shim does when its version is not selected.
_FAILING_SHIM = 'echo "pyenv: python3.13: command not found" >&2; exit 127'
_REAL = os.path.realpath(sys.executable)


@pytest.fixture(autouse=True)
def _started_by_an_older_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_finder, "WANTED", (3, 13, "never this one"))
    monkeypatch.setattr(python_finder, "_USUAL_FOLDERS", ())


def test_shim_that_fails_is_passed_over(script: Script, tmp_path: Path) -> None:
    shim = script("python3.13", _FAILING_SHIM)
    script("python3", f'exec "{_REAL}" "$@"')
    assert probe(str(shim)) is None
    found = find_python({"PATH": str(shim.parent)}, home=tmp_path)
    assert os.path.realpath(found) == _REAL


def test_another_version_is_passed_over(script: Script) -> None:
    # It runs and answers, and says by its exit code that it is not 3.13.
    assert probe(str(script("python3", "exit 1"))) is None


def test_the_one_asked_for_comes_first(script: Script, tmp_path: Path) -> None:
    on_path = script("python3.13", "exit 1")
    asked = script("mine", "exit 1")
    environ = {"PATH": str(on_path.parent), "PYTHON": str(asked)}
    assert list(candidates(environ, tmp_path))[:2] == [str(asked), str(on_path)]


def test_pyenv_versions_newest_first_and_free_threaded_last(tmp_path: Path) -> None:
    for version in ("3.13.9", "3.13.10", "3.13.10t", "3.12.1"):
        python = tmp_path / ".pyenv" / "versions" / version / "bin" / "python3.13"
        python.parent.mkdir(parents=True)
        python.touch(mode=0o755)
    found = [Path(path).parts[-3] for path in candidates({"PATH": ""}, tmp_path)]
    assert found == ["3.13.10", "3.13.9", "3.13.10t"]


def test_pyenv_root_wins_over_home(tmp_path: Path) -> None:
    python = tmp_path / "elsewhere" / "versions" / "3.13.0" / "bin" / "python3.13"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    environ = {"PATH": "", "PYENV_ROOT": str(tmp_path / "elsewhere")}
    assert list(candidates(environ, tmp_path / "home")) == [str(python)]


def test_without_any_the_error_says_what_to_do(script: Script, tmp_path: Path) -> None:
    folder = script("python3", "exit 1").parent
    with pytest.raises(DevError) as caught:
        find_python({"PATH": str(folder)}, tmp_path)
    assert str(folder / "python3") in caught.value.message
    assert "PYTHON=" in caught.value.hint


def test_uv_may_have_one(script: Script, tmp_path: Path) -> None:
    folder = script("uv", f'[ "$2" = find ] && echo "{_REAL}"').parent
    assert os.path.realpath(find_python({"PATH": str(folder)}, tmp_path)) == _REAL


def test_uv_fetches_one_when_it_has_none(script: Script, tmp_path: Path) -> None:
    fetched = tmp_path / "fetched"
    body = f'if [ "$2" = install ]; then : > "{fetched}"; exit 0; fi; [ -e "{fetched}" ] && echo "{_REAL}"'
    folder = script("uv", body).parent
    assert os.path.realpath(find_python({"PATH": str(folder)}, tmp_path)) == _REAL
