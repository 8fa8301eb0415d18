"""`dev.py upstream ...` hands its words to the app's own command, with the app's settings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.local.dev import cli, paths, setup, upstream
from infra.local.dev.console import DevError


@pytest.mark.parametrize(
    "arguments", [["sync", "--check", "--json"], ["disable", "docs.read", "--project", "p"], []]
)
def test_words_and_settings_are_handed_on(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "local.settings.json"
    settings.write_text('{"Values": {"MCP_SERVERS": "from the file", "TOOLBOX_PROJECTS": "from the file"}}')
    monkeypatch.setattr(paths, "LOCAL_SETTINGS", settings)
    monkeypatch.setattr(setup, "ensure_settings", lambda: None)
    monkeypatch.setenv("TOOLBOX_PROJECTS", "from the environment")
    monkeypatch.delenv("MCP_SERVERS", raising=False)
    seen: list[tuple[list[str], Path, Mapping[str, str]]] = []

    def call(command: list[str], *, cwd: Path, env: Mapping[str, str]) -> int:
        seen.append((command, cwd, env))
        return 7

    monkeypatch.setattr(subprocess, "call", call)
    assert upstream.run(arguments) == 7
    ((command, folder, environment),) = seen
    assert command[1:] == ["-m", "shared.upstream.commands", *arguments]
    assert folder == paths.REPO
    assert environment["MCP_SERVERS"] == "from the file"
    assert environment["TOOLBOX_PROJECTS"] == "from the environment"


def test_the_command_line_leaves_the_options_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def run(arguments: list[str]) -> int:
        given.append(arguments)
        return 3

    monkeypatch.setattr(upstream, "run", run)
    monkeypatch.setattr(setup, "ensure", lambda **_: None)
    assert cli.main(["upstream", "sync", "--check"]) == 3
    assert given == [["sync", "--check"]]


def test_faults_are_told_in_the_words_of_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the file beside the app, with the settings of local.settings.json; warnings are left to the list."""
    from shared.upstream.commands import main

    monkeypatch.setattr(paths, "REPO", tmp_path)
    entries = {
        "crm": {"url": "https://h/mcp", "headers": {"X": "${SET_THERE}"}},
        "shell": {"command": "bash"},
        "odd": {"url": "https://h/mcp", "nothing_known": 1},
    }
    (tmp_path / "mcp_servers.json").write_text(json.dumps({"mcpServers": entries}))
    project = tmp_path / "projects" / "sales"
    project.mkdir(parents=True)
    (project / "mcp_servers.json").write_text("{")
    (tmp_path / "tools").mkdir()
    monkeypatch.setenv("SET_THERE", "x")
    assert main(["list"], tmp_path) == 1
    listed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error ")]
    assert len(listed) == 2
    monkeypatch.delenv("SET_THERE")
    assert upstream.faults({"SET_THERE": "x"}) == listed
    assert len(upstream.faults({})) == 3


def test_without_servers_nothing_has_to_be_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from infra.local.dev import paths, upstream\n"
        "paths.REPO = Path(sys.argv[1]); assert upstream.faults({}) == []\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=paths.REPO, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_setting_that_keeps_the_app_from_starting_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "REPO", tmp_path)
    with pytest.raises(DevError, match="MCP_SERVERS names a file that is not there"):
        upstream.faults({"MCP_SERVERS": "@gone.json"})
