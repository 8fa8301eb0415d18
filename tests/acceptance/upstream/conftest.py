"""One app with servers of every kind, published by `upstream sync`; tests here only call it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import App, start_app
from tests.support.upstream_app import DEMO, PLAIN, Folder, app_folder, listening, npx, python, tool

#: Owner `ana` has the project `sales`, `default` has none.
PROJECTS = json.dumps({"ana": ["sales", "lab"]})
POLICY = json.dumps(
    {
        "deny": ["mcp:plain:forbidden"],
        "owners": {"ana": {"deny": ["mcp:sdk:counter"]}},
        "projects": {"lab": {"allow": ["mcp:plain:*"]}},
    }
)
#: Launches another tool: from asynchronous and from synchronous code, which has an event loop of its own.
LAUNCHING = '''
"""Launches other tools."""

from typing import Any

from shared.apis import toolboxAPI
from shared.tool import tool


@tool(execution_modes=("inline", "headless"))
async def launch_async(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Launches it."""
    return await toolboxAPI.invocation.launchTool(name, arguments)


@tool(execution_modes=("inline", "headless"))
def launch_sync(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Launches it."""
    return toolboxAPI.invocation.launchTool(name, arguments)
'''
ECHO = tool("echo", {"text": {"type": "string"}}, description="Gives its arguments back.")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    base = tmp_path_factory.mktemp("upstream")
    made = app_folder(base / "app", TOOLBOX_PROJECTS=PROJECTS, TOOLBOX_UPSTREAM_POLICY=POLICY)
    made.add_tool("launching", LAUNCHING)
    return made


@pytest.fixture(scope="session")
def files(folder: Folder) -> Path:
    """The folder that server-filesystem serves."""
    place = folder.path.parent / "files"
    place.mkdir()
    (place / "note.txt").write_text("a note\nof two lines\n")
    return place


@pytest.fixture(scope="session")
def upstream(folder: Folder, files: Path, new_storage: Callable[[], str]) -> Iterator[App]:
    with listening(
        [DEMO, "sdk", "http"],
        [DEMO, "sdk", "legacy-http"],
        [DEMO, "fastmcp", "http"],
        [DEMO, "sdk", "sse"],
        [PLAIN, folder.path / "socket.tools.json", "websocket"],
    ) as (http, legacy, fast_http, sse, socket):
        folder.plain("socket", [ECHO])
        plain = folder.plain(
            "plain",
            [
                ECHO,
                tool("say"),
                tool("hang"),
                tool("die"),
                tool("forbidden"),
                tool("off"),
                tool("read.file/v2"),
            ],
            [{"name": "ask", "description": "Asks.", "arguments": [{"name": "what", "required": True}]}],
            description="Answers plainly.",
            disabled_tools=["off"],
        )
        folder.configure(
            {
                "everything": npx("@modelcontextprotocol/server-everything", "stdio"),
                "files": npx("@modelcontextprotocol/server-filesystem", str(files)),
                "sdk": python(DEMO, "sdk", "stdio"),
                "Fast MCP": python(DEMO, "fastmcp", "stdio"),
                "new http": {"url": f"http://127.0.0.1:{http}/mcp"},
                "old http": {"type": "streamable-http", "url": f"http://127.0.0.1:{legacy}/mcp"},
                "fast http": {"type": "http", "url": f"http://127.0.0.1:{fast_http}/mcp"},
                "events": {"type": "sse", "url": f"http://127.0.0.1:{sse}/sse"},
                "socket": {"type": "websocket", "url": f"ws://127.0.0.1:{socket}"},
                "plain": plain,
                "shared": folder.plain("shared", [ECHO]),
                "private": folder.plain("private", [ECHO]),
                "broken": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH}"}},
                "forbidden": {"command": "bash", "args": ["-c", "true"]},
            }
        )
        folder.configure(
            {
                "Shared": folder.plain("sales", [ECHO, tool("own")], description="The one of sales."),
                "private": {"disabled": True},
            },
            project="sales",
        )
        said = folder.sync()
        assert {fault["server"] for fault in said["faults"]} == {"broken", "forbidden"}, said["faults"]
        running = start_app(folder.path.parent, new_storage(), app_dir=folder.path, **folder.settings)
        yield running
        assert running.stop() == 0
