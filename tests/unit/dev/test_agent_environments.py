"""The environments of tests/agents: made when asked for, and again only when their lock has changed."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import checks, paths, setup
from infra.local.dev.venv import Venv

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two clients, and the names of the environments made for them, which nothing is installed into."""
    agents, made = tmp_path / "agents", []
    for name in ("one", "two"):
        (agents / name).mkdir(parents=True)
        (agents / name / "requirements.txt").write_text(f"{name}==1\n")
    monkeypatch.setattr(paths, "AGENTS", agents)
    monkeypatch.setattr(paths, "AGENT_VENVS", tmp_path / "venvs")
    monkeypatch.setattr(paths, "STATE", tmp_path / "state")

    def install(self: Venv, environ: Mapping[str, str]) -> None:
        assert environ["PATH"].split(os.pathsep)[0] == str(paths.VENV_PYTHON.parent)
        made.append(self.folder.name)

    def create(self: Venv, environ: Mapping[str, str]) -> None:
        self.python.parent.mkdir(parents=True)
        self.python.symlink_to(paths.VENV_PYTHON)
        (self.folder / "pyvenv.cfg").write_text("version = 3.13.0\n")

    monkeypatch.setattr(Venv, "_create", create)
    monkeypatch.setattr(Venv, "_install", install)
    return made


def test_made_once_and_again_when_a_lock_changes(made: list[str]) -> None:
    setup.ensure_agents()
    setup.ensure_agents()
    assert made == ["one", "two"]
    (paths.AGENTS / "two" / "requirements.txt").write_text("two==2\n")
    setup.ensure_agents()
    assert made == ["one", "two", "two"]


def test_only_the_option_makes_them(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(paths, "AGENTS", paths.REPO / "tests" / "agents")
    monkeypatch.setattr(setup, "ensure_agents", lambda: made.append("asked"))
    monkeypatch.setattr(os, "execve", lambda _program, command, _environ: started.append(command))
    # It does not return, which is why it is called by a name that promises less.
    test: Callable[[list[str]], object] = checks.test
    test(["-k", "name"])
    assert made == []
    test(["--agents", "-k", "name"])
    assert made == ["asked"]
    assert [command[3:] for command in started] == [
        ["-k", "name"],
        ["tests/agents", "-m", "agents", "-k", "name"],
    ]


def test_tests_keep_bytecode_where_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is in many images of Python: each program that a test starts would compile all that it imports."""
    given: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda _program, _command, environ: given.append(environ))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TOOLBOX_PICTURES", "somewhere")
    test: Callable[[list[str]], object] = checks.test
    test(["-k", "name"])
    assert "PYTHONDONTWRITEBYTECODE" not in given[0]
    assert given[0]["TOOLBOX_PICTURES"] == "somewhere"


def test_every_client_is_locked_by_hash() -> None:
    folders = [path.parent for path in paths.AGENTS.glob("*/run.py")]
    assert len(folders) >= 4
    for folder in folders:
        assert (folder / "requirements.in").is_file()
        text = (folder / "requirements.txt").read_text("utf-8")
        pinned = re.findall(r"^[A-Za-z0-9._-]+==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert pinned
        assert all("--hash=sha256:" in block for block in pinned)
        assert not re.search(r"^\s*--?(?:index|extra-index|find-links|i\b|f\b)|://", text, re.MULTILINE)
