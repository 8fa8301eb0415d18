"""What changes after the tools were published: at the server, in the configuration; and the app's end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import TOKEN, App, start_app, wait_until
from tests.acceptance.upstream.calls import names, text
from tests.support.upstream import is_alive
from tests.support.upstream_app import Folder, app_folder, descendants, tool

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

ECHO = tool("echo", {"text": {"type": "string"}}, description="Gives its arguments back.")
HEADERS = {"X-MCP-Auth-Token": TOKEN}


@pytest.fixture
def storage(new_storage: Callable[[], str]) -> str:
    return new_storage()


def started(folder: Folder, storage: str) -> App:
    place = folder.path.parent
    (place / "ready.json").unlink(missing_ok=True)
    return start_app(place, storage, app_dir=folder.path, **folder.settings)


def state(app: App, server: str, name: str) -> Any:
    body = app.http.get(f"/mcp/servers/{server}", headers=HEADERS).json()
    return next(one["state"] for one in body["tools"] if one["name"] == name)


def test_the_lock_is_checked_and_tools_are_switched(tmp_path: Path) -> None:
    folder = app_folder(tmp_path / "app", TOOLBOX_PROJECTS='{"ana": "sales"}')
    folder.configure({"one": folder.plain("one", [ECHO, tool("other")])})
    folder.configure({"two": folder.plain("two", [ECHO])}, project="sales")

    assert folder.upstream("sync", "--check").returncode == 1
    assert not (folder.path / "upstream.lock.json").exists()
    done = folder.upstream("sync")
    assert (done.returncode, done.stdout.splitlines()[:3]) == (
        0, ["added    one.echo", "added    one.other", "added    two.echo"],
    )  # fmt: skip
    before = (folder.path / "upstream.lock.json").read_bytes()
    assert folder.upstream("sync", "--check").returncode == 0
    assert folder.upstream("sync").returncode == 0
    assert (folder.path / "upstream.lock.json").read_bytes() == before

    folder.plain("one", [{**ECHO, "description": "Something else."}])
    drifted = folder.upstream("sync", "--check")
    assert drifted.returncode == 1
    assert "changed  one.echo (description, scopes)" in drifted.stdout
    assert "removed  one.other" in drifted.stdout
    assert "is out of date" in drifted.stdout
    assert (folder.path / "upstream.lock.json").read_bytes() == before
    folder.plain("one", [ECHO, tool("other")])

    # Switched off and on: in the configuration, and in the lock with it.
    assert folder.upstream("disable", "one.other").returncode == 0
    configured = json.loads((folder.path / "mcp_servers.json").read_text())
    assert configured["mcpServers"]["one"]["disabled_tools"] == ["other"]
    assert folder.upstream("sync", "--check").returncode == 0
    listed = json.loads(folder.upstream("list", "--json").stdout)
    tools = {one["name"]: one["disabled"] for one in listed["servers"][0]["tools"]}
    assert tools == {"echo": False, "other": True}
    assert folder.upstream("enable", "one.other").returncode == 0
    assert (folder.path / "upstream.lock.json").read_bytes() == before
    wrong = folder.upstream("disable", "nothing.echo")
    assert wrong.returncode == 1
    assert "there is no such server in mcp_servers.json" in wrong.stderr

    # A server that cannot be reached keeps its tools, and is told of.
    folder.configure({"one": {"command": "npx", "args": ["-y", str(tmp_path / "nothing")]}})
    failed = folder.upstream("sync")
    assert failed.returncode == 1
    assert "error    one: " in failed.stdout
    assert names(folder).keys() == {"one.echo", "one.other", "two.echo"}
    assert folder.upstream("unknown").returncode == 2


def test_what_has_changed_at_the_server_is_told(tmp_path: Path, storage: str) -> None:
    folder = app_folder(tmp_path / "app")
    folder.configure({"one": folder.plain("one", [ECHO, tool("other"), tool("gone"), tool("off")])})
    folder.sync()
    folder.plain("one", [{**ECHO, "description": "Something else."}, tool("other"), tool("off")])
    app = started(folder, storage)
    try:
        lock = names(folder)
        assert state(app, "one", "echo") == "unknown"  # nobody has asked it yet
        same = app.call(lock["one.other"], {})
        assert [block["type"] for block in same["content"]] == ["text"]
        assert "toolbox/upstreamChanged" not in same["_meta"]
        for envelope in (None, {"executionMode": "headless"}):
            changed = app.call(lock["one.echo"], {"text": "x"}, envelope)
            assert changed["structuredContent"]["arguments"] == {"text": "x"}
            assert changed["_meta"]["toolbox/upstreamChanged"] is True
            assert "has changed at its server since it was published" in changed["content"][-1]["text"]
            gone = app.call(lock["one.gone"], {}, envelope)
            assert gone["isError"] is True
            assert "Tool 'gone' not found on server 'one'; `python3 dev.py upstream sync`" in text(gone)
        assert [state(app, "one", name) for name in ("echo", "other", "gone")] == ["changed", "locked", "gone"]

        # Switched off while the app runs: refused at the next call, still shown.
        assert folder.upstream("disable", "one.off").returncode == 0

        def refused() -> bool:
            result = app.call(lock["one.off"], {})
            return result.get("isError", False) and "Tool off is disabled for server one." in text(result)

        wait_until(refused)
        body = app.http.get("/mcp/servers/one", headers=HEADERS).json()
        assert {one["name"] for one in body["tools"] if one["disabled"]} == {"off"}

        # Another server under the same name, and none at all: no restart is needed to see it.
        first = app.call(lock["one.other"], {})["structuredContent"]["pid"]
        folder.configure({"one": {**folder.plain("one", [tool("other")]), "env": {"NEW": "1"}}})
        wait_until(lambda: app.call(lock["one.other"], {})["structuredContent"]["pid"] != first)
        wait_until(lambda: not is_alive(first))
        folder.configure({})
        wait_until(lambda: "is not configured any more" in text(app.call(lock["one.other"], {})))
        wait_until(lambda: not [one for one in descendants(app.process.pid) if "plain.py" in command(one)])
    finally:
        assert app.stop() == 0


def test_a_change_inside_an_env_file_needs_no_restart(tmp_path: Path, storage: str) -> None:
    """It is a change of that server only."""
    folder = app_folder(tmp_path / "app")
    (folder.path / "one.env").write_text("NAME=first")
    folder.configure(
        {
            "one": folder.plain("one", [ECHO], env_file="one.env"),
            "two": folder.plain("two", [ECHO]),
        }
    )
    folder.sync()
    app = started(folder, storage)
    try:
        lock = names(folder)

        def pid(server: str) -> int:
            return int(app.call(lock[f"{server}.echo"], {})["structuredContent"]["pid"])

        first = {server: pid(server) for server in ("one", "two")}
        (folder.path / "one.env").write_text("NAME=second")
        wait_until(lambda: pid("one") != first["one"])
        wait_until(lambda: not is_alive(first["one"]))
        assert pid("two") == first["two"]
        # Nobody's value is shown, and one that cannot be read is a fault like any other.
        (folder.path / "one.env").write_text("=second")
        told = app.http.post("/mcp/servers/refresh", headers=HEADERS).json()
        assert told["faults"] == [
            {
                "scope": "global",
                "server": "one",
                "reason": "env_file: line 1: there is no name before the =",
            }
        ]
        assert "its server 'one' is wrong" in text(app.call(lock["one.echo"], {}))
        assert pid("two") == first["two"]
    finally:
        assert app.stop() == 0


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_nothing_is_left_when_the_app_ends(tmp_path: Path, storage: str, how: str) -> None:
    """Also of a server that minds neither the end of its input nor a polite request."""
    folder = app_folder(tmp_path / "app")
    everything = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything", "stdio"]}
    stubborn = folder.plain("stubborn", [ECHO], env={"STAY": "1"})
    folder.configure({"everything": everything, "stubborn": stubborn})
    folder.sync()
    app = started(folder, storage)
    try:
        assert not app.call(names(folder)["everything.echo"], {"message": "x"}).get("isError")
        stays = app.call(names(folder)["stubborn.echo"], {})["structuredContent"]["pid"]
        running = descendants(app.process.pid)
        assert stays in running
        assert len(running) >= 4
    finally:
        if how == "stopped":
            assert app.stop() == 0
        else:
            app.http.close()
            app.process.kill()
            app.process.wait()
    wait_until(lambda: not [one for one in running if is_alive(one)], 15)
