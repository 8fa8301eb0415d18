"""`dev.py upstream ...` hands its words to the app's own command, with the app's settings."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from infra.local.dev import cli, paths, setup, upstream


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
