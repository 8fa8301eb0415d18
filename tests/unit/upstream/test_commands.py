"""The command line: what it prints, what it exits with, and that it leaves this process as it was."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from shared.upstream import commands, lock
from shared.upstream.lock import Lock
from shared.upstream.sync import sync

from .fakes import World, configured, listed, unreachable

NEXT = "the app publishes them when it starts next"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    configured(tmp_path, {"docs": {}, "down": {}})
    made = World({"docs": [listed("read")], "down": [listed("a")]})

    async def asked(*arguments: Any) -> Any:
        return await sync(*arguments, connect=made.connect)

    monkeypatch.setattr(commands, "sync", asked)
    for name in ("MCP_SERVERS", "TOOLBOX_PROJECTS", "TOOLBOX_UPSTREAM_COMMANDS", "TOOLBOX_UPSTREAM_NAMES"):
        monkeypatch.delenv(name, raising=False)
    return made


def run(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> tuple[int, str, str]:
    code = commands.main([*arguments], root)
    out, err = capsys.readouterr()
    return code, out, err


def test_sync_and_check(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / lock.LOCK_FILE
    code, out, _ = run(capsys, tmp_path, "sync", "--check")
    assert (code, path.exists()) == (1, False)
    assert out.endswith(f"2 tool(s), 0 prompt(s) of other servers; {lock.LOCK_FILE} is out of date\n")
    code, out, _ = run(capsys, tmp_path, "sync")
    assert (code, path.exists()) == (0, True)
    assert out.splitlines() == [
        "added    docs.read",
        "added    down.a",
        f"2 tool(s), 0 prompt(s) of other servers in {lock.LOCK_FILE}; {NEXT}",
    ]
    assert run(capsys, tmp_path, "sync", "--check")[0] == 0
    world.tools["docs"] = [listed("read", description="Other.")]
    code, out, _ = run(capsys, tmp_path, "sync", "--check", "--json")
    body = json.loads(out)
    assert (code, body["written"], body["tools"]) == (1, False, 2)
    assert body["changes"] == [{"kind": "changed", "qualified": "docs.read", "what": ["description", "scopes"]}]


def test_only_the_style_of_names_is_a_drift_too(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, tmp_path, "sync")[0] == 0
    monkeypatch.setenv("TOOLBOX_UPSTREAM_NAMES", "dotted")
    code, out, _ = run(capsys, tmp_path, "sync", "--check")
    assert code == 1
    assert "changed  docs.read (name)" in out


def test_a_server_that_is_down_is_an_error(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, tmp_path, "sync")
    world.tools["down"] = unreachable()
    code, out, _ = run(capsys, tmp_path, "sync", "--check")
    assert code == 1
    assert out.splitlines()[0] == "error    down: Server 'down' cannot be reached."
    assert out.splitlines()[-1].endswith("is what the servers say")


def test_a_damaged_lock_is_an_error_and_is_made_again(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / lock.LOCK_FILE).write_text("{")
    code, out, _ = run(capsys, tmp_path, "sync")
    assert code == 1
    assert "is no JSON of the form that sync writes" in out
    assert len(lock.read(tmp_path / lock.LOCK_FILE).tools) == 2
    assert run(capsys, tmp_path, "sync", "--check")[0] == 0


def test_list_names_faults_and_asks_nobody(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(capsys, tmp_path, "sync")
    asked = len(world.asked)
    monkeypatch.setenv("TOOLBOX_UPSTREAM_COMMANDS", "node deno")
    code, out, _ = run(capsys, tmp_path, "list")
    assert (code, len(world.asked)) == (0, asked)
    assert "docs  http  global  1 tool(s) locked" in out
    assert "    docs_read_6e32feee  = read" in out
    assert out.endswith("Commands that entries may start beside npx, uvx and docker: node, deno\n")
    configured(
        tmp_path, {"docs": {}, "bad": {"url": "ftp://x"}, "worse": {"command": "bash"}}, {"sales": {"p": {}}}
    )
    code, out, _ = run(capsys, tmp_path, "list", "--json")
    body = json.loads(out)
    assert code == 1
    assert {fault["server"] for fault in body["faults"]} == {"bad", "worse"}
    assert [(one["name"], one["scope"]) for one in body["servers"]] == [
        ("docs", "global"),
        ("p", "project:sales"),
    ]


def test_list_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_SERVERS", raising=False)
    code, out, _ = run(capsys, tmp_path, "list")
    assert (code, out) == (
        0,
        "No servers are configured: see docs/upstream.md for the file mcp_servers.json.\n",
    )
    code, out, _ = run(capsys, tmp_path, "sync")
    assert code == 0
    assert lock.read(tmp_path / lock.LOCK_FILE) == Lock()


def test_an_illegal_setting_is_named(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLBOX_UPSTREAM_NAMES", "odd")
    code, out, err = run(capsys, tmp_path, "sync")
    assert (code, out, err) == (1, "", "error: TOOLBOX_UPSTREAM_NAMES must be safe or dotted.\n")


@pytest.mark.parametrize("arguments", [[], ["sync", "extra"], ["disable"], ["list", "--check"]])
def test_wrong_usage(arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        commands.main(arguments, tmp_path)
    assert caught.value.code == 2
    assert "usage: dev.py upstream" in capsys.readouterr().err


def test_the_log_level_is_what_it_was(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.root.manager.disable
    logging.disable(logging.DEBUG)
    try:
        run(capsys, tmp_path, "sync")
        assert logging.root.manager.disable == logging.DEBUG
    finally:
        logging.disable(before)


@pytest.mark.parametrize("said", ["mcp_servers.json.new", "half a character"])
def test_a_file_that_cannot_be_written_is_told_without_a_traceback(
    said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mcp_servers.json"
    configured(tmp_path, {"docs": {"description": "\ud800" if said == "half a character" else ""}})
    if said == "mcp_servers.json.new":
        (tmp_path / said).mkdir()  # stands in the way of every writing
    before = path.read_bytes()
    assert commands.main(["disable", "docs.read"], tmp_path) == 1
    told = capsys.readouterr()
    assert said in told.err
    assert (told.out, told.err.count("\n"), str(tmp_path) in told.err) == ("", 1, False)
    assert path.read_bytes() == before
