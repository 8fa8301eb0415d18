"""An app that publishes tools of servers as `server.tool`, and has a tool of its own by such a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shared.upstream.names import alias
from tests.acceptance.conftest import TOKEN, App, start_app
from tests.acceptance.upstream.calls import names, published
from tests.acceptance.upstream.conftest import LAUNCHING
from tests.support.upstream_app import Folder, app_folder, tool

pytestmark = pytest.mark.acceptance

HEADERS = {"X-MCP-Auth-Token": TOKEN}
ECHO = tool("echo", {"text": {"type": "string"}}, description="Gives its arguments back.")
OWN = '''
"""A tool by a name that a server's tool has too."""

from shared.tool import tool


@tool(name="docs.read")
def read() -> dict[str, str]:
    """Reads the app's own."""
    return {"from": "own"}
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    made = app_folder(tmp_path_factory.mktemp("dotted") / "app", TOOLBOX_UPSTREAM_NAMES="dotted")
    made.add_tool("launching", LAUNCHING)
    made.add_tool("own", OWN)
    made.configure({"docs": made.plain("docs", [ECHO, tool("read"), tool("off")], disabled_tools=["off"])})
    made.sync()
    return made


@pytest.fixture(scope="module")
def app(folder: Folder, new_storage: Callable[[], str]) -> Iterator[App]:
    running = start_app(folder.path.parent, new_storage(), app_dir=folder.path, **folder.settings)
    yield running
    assert running.stop() == 0


def test_a_tool_is_listed_and_called_as_server_and_tool(app: App, folder: Folder) -> None:
    assert names(folder)["docs.echo"] == "docs.echo"
    assert published(app, folder, "docs.echo")["description"] == ECHO["description"]
    for envelope in (None, {"executionMode": "headless"}):
        told = app.call("docs.echo", {"text": "x"}, envelope)
        assert told["structuredContent"]["arguments"] == {"text": "x"}
    over_http = app.http.post(f"/mcp/tools/{alias('docs.echo')}", json={"text": "x"}, headers=HEADERS).json()
    assert over_http["structuredContent"]["arguments"] == {"text": "x"}


def test_an_own_tool_keeps_its_name_wherever_it_is_called(app: App, folder: Folder) -> None:
    theirs = names(folder)["docs.read"]
    assert theirs != "docs.read"
    over_http = app.http.post("/mcp/tools/docs.read", json={}, headers=HEADERS).json()
    launched = app.call("launch_async", {"name": "docs.read", "arguments": {}})
    for told in (app.call("docs.read", {}), over_http, launched):
        assert told["structuredContent"] == {"from": "own"}
    # The other one is there too, by the names that are its own.
    for name in (theirs, "mcp:docs:read"):
        launched = app.call("launch_async", {"name": name, "arguments": {}})
        assert launched["structuredContent"]["arguments"] == {}


def test_a_tool_that_is_switched_off_has_no_name(app: App) -> None:
    listed = {one["name"] for one in app.rpc("tools/list")["result"]["tools"]}
    assert {"docs.read", "docs.echo"} <= listed
    assert "docs.off" not in listed
    for name in ("docs.off", "mcp:docs:off"):
        assert app.http.post(f"/mcp/tools/{name}", json={}, headers=HEADERS).status_code == 404
