"""The virtual environment: made once, installed with hashes, never half done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dev.console import DevError
from infra.local.dev.processes import CommandError
from infra.local.dev.venv import Venv, uv_requirement

if TYPE_CHECKING:
    from tests.unit.dev.conftest import Script


@pytest.fixture
def venv(tmp_path: Path) -> Venv:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("")
    return Venv(tmp_path / "venv", [requirements])


def _environ(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder), "PYTHON": sys.executable}


def test_made_with_uv_and_then_left_alone(venv: Venv, script: Script, tmp_path: Path) -> None:
    uv = script("uv", f'echo "$@" >> "{tmp_path}/calls"')
    assert not venv.is_ready()
    venv.make(_environ(uv.parent))
    assert venv.is_ready()
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith("pip sync")
    assert "--require-hashes" in call
    assert str(venv.requirements[0]) in call


def test_changed_requirements_are_installed_again(venv: Venv, script: Script) -> None:
    environ = _environ(script("uv", "exit 0").parent)
    venv.make(environ)
    venv.requirements[0].write_text("# changed\n")
    assert not venv.is_ready()
    venv.make(environ)
    assert venv.is_ready()


def test_without_its_interpreter_it_is_made_again(venv: Venv, script: Script) -> None:
    environ = _environ(script("uv", "exit 0").parent)
    venv.make(environ)
    venv.python.unlink()
    assert not venv.is_ready()
    venv.make(environ)
    assert venv.is_ready()


def test_of_another_python_version_it_is_not_usable(venv: Venv, script: Script) -> None:
    venv.make(_environ(script("uv", "exit 0").parent))
    config = venv.folder / "pyvenv.cfg"
    config.write_text(config.read_text().replace("version = 3.13", "version = 3.12"))
    assert not venv.is_usable()


def test_pip_takes_over_when_uv_fails(
    venv: Venv, script: Script, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Venv, "_ensure_pip", lambda self: None)
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(Venv, "_pip", lambda self, *arguments: calls.append(arguments))
    venv.make(_environ(script("uv", 'echo "uv is unwell"; exit 2').parent))
    assert venv.is_ready()
    assert calls == [("install", "--require-hashes", "--requirement", str(venv.requirements[0]))]
    assert "uv is unwell" in capfd.readouterr().err


def test_failure_says_why_and_leaves_no_stamp(
    venv: Venv, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = _environ(script("uv", "exit 0").parent)
    venv.make(environ)
    script("uv", "exit 2")

    def fail(*_: object) -> None:
        raise CommandError(["pip"], 1, "line one\nError: Temporary failure in name resolution\n")

    monkeypatch.setattr(Venv, "_ensure_pip", lambda self: None)
    monkeypatch.setattr(Venv, "_pip", fail)
    with pytest.raises(DevError) as caught:
        venv.make(environ)
    assert "name resolution" in caught.value.details
    assert "network" in caught.value.hint
    assert not venv.is_ready()


def test_locked_uv_is_taken_with_its_hashes() -> None:
    text = (
        "uvicorn==1.0 \\\n    --hash=sha256:aa\n    # via x\n"
        "uv==0.1 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n    # via -r y\n"
        "uvloop==2.0 \\\n    --hash=sha256:dd\n"
    )
    assert uv_requirement(text) == "uv==0.1 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    assert uv_requirement("uvicorn==1.0\n") is None
