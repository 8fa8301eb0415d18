"""`dev.py upstream sync`, then `dev.py run`, as a person types them, with npm's everything server.

In a copy of the checkout, since the lock is written beside function_app.py. The client is the MCP SDK's own,
which checks each result against the schema that the app has published.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp
import mcp_types as types
import pytest

from tests.acceptance.conftest import wait_until
from tests.acceptance.dev.conftest import Family
from tests.acceptance.dev.support import Run
from tests.acceptance.upstream.calls import names
from tests.support.clone import cloned
from tests.support.upstream import is_alive
from tests.support.upstream_app import Folder, descendants, npx

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

EVERYTHING = {"everything": npx("@modelcontextprotocol/server-everything", "stdio")}
#: An entry that names a variable which nobody sets, and one that may not be started.
FAULTY = {
    "crm": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${NOBODY_SETS_THIS}"}},
    "shell": {"command": "bash", "args": ["-c", "true"]},
}
HOWS = [pytest.param({}, id="inline"), pytest.param({"executionMode": "headless"}, id="headless")]
_STARTED = "Stop with Ctrl-C."


@dataclass(frozen=True)
class Place:
    """A copy of the checkout, in which commands of dev.py are run."""

    folder: Folder
    base: Path

    def dev(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "dev.py", *arguments],
            cwd=self.folder.path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @contextmanager
    def run(self, *options: str, **environ: str) -> Iterator[Run]:
        """`dev.py run`. Nothing that it has started is left afterwards, even where it could not end itself."""
        family = Family(self.base)
        try:
            with Run(family, *options, root=self.folder.path, environ=environ) as run:
                yield run
        finally:
            for pid in family.members():
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    base = tmp_path_factory.mktemp("sync-and-run")
    root = cloned(base / "clone")
    # Servers that somebody has configured in the checkout are not part of this.
    for theirs in (*root.glob("mcp_servers.*"), root / "upstream.lock.json", root / "tools.lock.json"):
        theirs.unlink(missing_ok=True)
    shutil.rmtree(root / "projects", ignore_errors=True)
    return Place(Folder(root, {}), base)


@dataclass(frozen=True)
class Serving:
    """The app that `dev.py run` serves, with what the lock says of the tools."""

    run: Run
    endpoint: str
    names: dict[str, str]
    synced: str

    def ask[T](self, work: Callable[[mcp.Client], Coroutine[Any, Any, T]]) -> T:
        """One session of the SDK's client. It validates what it gets, for which it lists the tools first."""

        async def main() -> T:
            async with mcp.Client(self.endpoint) as client:
                await client.list_tools()
                return await work(client)

        return asyncio.run(main())

    def call(self, tool: str, arguments: dict[str, Any], envelope: dict[str, Any]) -> types.CallToolResult:
        async def work(client: mcp.Client) -> types.CallToolResult:
            return await client.call_tool(self.names[f"everything.{tool}"], {**arguments, "__pptb": envelope})

        result = self.ask(work)
        assert not result.is_error, result.content
        return result

    def children(self) -> set[int]:
        """The processes of the everything server that run now: npx and what it has started."""
        return {pid for pid in descendants(self.run.process.pid) if "server-everything" in _command(pid)}


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.fixture(scope="module")
def serving(place: Place) -> Iterator[Serving]:
    place.folder.configure(EVERYTHING)
    synced = place.dev("upstream", "sync")
    assert synced.returncode == 0, synced.stdout + synced.stderr
    with place.run() as run:
        run.read_until(_STARTED)
        (endpoint,) = re.findall(r"^MCP endpoint +(http://\S+)$", run.output, re.MULTILINE)
        yield Serving(run, endpoint, names(place.folder), synced.stdout)
        started = descendants(run.process.pid)
        run.process.send_signal(signal.SIGTERM)
        code, errors = run.finish()
        assert code == 0, errors
        wait_until(lambda: not [pid for pid in started if is_alive(pid)], 15)


def test_sync_tells_what_the_app_then_publishes(serving: Serving) -> None:
    assert "added    everything.echo\n" in serving.synced
    summary = r"^\d+ tool\(s\), \d+ prompt\(s\) of other servers in upstream\.lock\.json;"
    assert re.search(summary, serving.synced, re.MULTILINE)
    listed = serving.ask(lambda client: client.list_tools())
    published = {tool.name for tool in listed.tools}
    every = {name for qualified, name in serving.names.items() if qualified.startswith("everything.")}
    assert len(every) > 10
    assert every <= published
    assert "csv_profile" in published


@pytest.mark.parametrize("envelope", HOWS)
def test_text_and_image_are_whole(serving: Serving, envelope: dict[str, Any]) -> None:
    echoed = serving.call("echo", {"message": "é😀日本"}, envelope)
    assert [block.model_dump(exclude_none=True) for block in echoed.content] == [
        {"type": "text", "text": "Echo: é😀日本"}
    ]
    before, image, after = serving.call("get-tiny-image", {}, envelope).content
    assert isinstance(before, types.TextContent)
    assert isinstance(after, types.TextContent)
    assert isinstance(image, types.ImageContent)
    data = base64.b64decode(image.data, validate=True)
    assert image.mime_type == "image/png"
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data.endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize("envelope", HOWS)
def test_resources_are_whole(serving: Serving, envelope: dict[str, Any]) -> None:
    given = {"resourceType": "Blob", "resourceId": 2}
    content = serving.call("get-resource-reference", given, envelope).content
    (block,) = [block for block in content if isinstance(block, types.EmbeddedResource)]
    assert isinstance(block.resource, types.BlobResourceContents)
    assert block.resource.uri == "demo://resource/dynamic/blob/2"
    assert b"Resource 2" in base64.b64decode(block.resource.blob, validate=True)
    given = {"resourceType": "Text", "resourceId": 1}
    content = serving.call("get-resource-reference", given, envelope).content
    (block,) = [block for block in content if isinstance(block, types.EmbeddedResource)]
    assert isinstance(block.resource, types.TextResourceContents)
    assert "Resource 1" in block.resource.text
    links = serving.call("get-resource-links", {"count": 2}, envelope).content
    assert len([block for block in links if isinstance(block, types.ResourceLink)]) == 2


@pytest.mark.parametrize("envelope", HOWS)
def test_structured_content_is_whole(serving: Serving, envelope: dict[str, Any]) -> None:
    result = serving.call("get-structured-content", {"location": "Chicago"}, envelope)
    weather = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert result.structured_content == weather
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert json.loads(block.text) == weather


def test_a_job_shows_its_progress_while_it_runs(serving: Serving) -> None:
    name = serving.names["everything.trigger-long-running-operation"]

    async def work(client: mcp.Client) -> tuple[set[int], dict[str, Any]]:
        envelope = {"executionMode": "headless", "mode": "one-way"}
        accepted = await client.call_tool(name, {"duration": 3, "steps": 6, "__pptb": envelope})
        assert accepted.structured_content is not None
        asked = {"jobId": accepted.structured_content["jobId"]}
        seen: set[int] = set()
        while True:
            told = (await client.call_tool("job_status", {**asked, "waitMs": 500})).structured_content
            assert told is not None
            if told["status"] in ("completed", "failed"):
                return seen, told
            if told["status"] == "in_progress":
                seen.add(told["progress"]["percent"])

    seen, job = serving.ask(work)
    assert job["status"] == "completed", job
    assert "Long running operation completed" in json.dumps(job["content"])
    assert len({percent for percent in seen if 0 < percent < 100}) >= 2, seen


def test_a_killed_server_answers_the_next_call(serving: Serving) -> None:
    """The app that was started stays the same one: only the server is started anew."""
    host = serving.run.child("infra.local.host")
    assert serving.call("echo", {"message": "before"}, {}).content
    first = serving.children()
    assert first
    for pid in first:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    (block,) = serving.call("echo", {"message": "after"}, {}).content
    assert isinstance(block, types.TextContent)
    assert block.text == "Echo: after"
    second = serving.children()
    assert second
    assert not second & first
    assert serving.run.child("infra.local.host") == host


def test_run_names_each_fault_and_goes_on(place: Place) -> None:
    """In the words of `upstream list`."""
    servers = json.dumps({"mcpServers": {**EVERYTHING, **FAULTY}})
    listed = place.dev("upstream", "list", MCP_SERVERS=servers)
    with place.run("--once", MCP_SERVERS=servers) as run:
        code, errors = run.finish()
    assert code == 0, errors
    assert listed.returncode == 1
    told = [line for line in listed.stdout.splitlines() if line.startswith("error ")]
    assert len(told) == 2
    assert "Environment variable 'NOBODY_SETS_THIS' not found" in told[0]
    assert "Invalid command 'bash'. Supported commands: npx, uvx, docker" in told[1]
    assert [line for line in run.output.splitlines() if line in told] == told
