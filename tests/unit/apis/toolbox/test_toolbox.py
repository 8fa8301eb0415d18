"""`toolboxAPI` as a headless tool of the original uses it: the same code, asynchronous and synchronous."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.apis.toolbox.invocation import use_launcher
from shared.apis.toolbox.settings import use_store
from shared.contract.tool import check_contract
from shared.errors import LostLeaseError
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.launching import DEPTH_LIMIT, ToolLauncher
from shared.tool.handler import ToolEntry
from shared.tool.resolving import resolver
from shared.tool.result import META_PREFIX, ToolResult
from shared.tool.spec import JsonObject

CONNECTIONS = [
    {"id": "c1", "name": "Prod", "url": "https://prod.crm.dynamics.com", "environment": "Production",
     "auth": {"type": "default"}, "category": "Sales"},
    {"id": "c2", "name": "Test", "url": "https://test.crm.dynamics.com", "auth": {"type": "default"}},
]  # fmt: skip


class MemorySettings:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], tuple[JsonObject, int]] = {}
        self.disturbances = 0

    def read(self, owner: str, tool: str) -> tuple[JsonObject, str]:
        values, version = self.rows.get((owner, tool), ({}, 0))
        return dict(values), str(version) if version else ""

    def write(self, owner: str, tool: str, values: JsonObject, version: str) -> None:
        if self.disturbances:
            self.disturbances -= 1
            known, number = self.rows.get((owner, tool), ({}, 0))
            self.rows[owner, tool] = ({**known, "theirs": self.disturbances}, number + 1)
        known_version = self.rows.get((owner, tool), ({}, 0))[1]
        if (str(known_version) if known_version else "") != version:
            raise LostLeaseError
        self.rows[owner, tool] = (dict(values), known_version + 1)


class Bench:
    """Contract tools in folders, on a store in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tools: dict[str, ToolEntry] = {}
        self.settings = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
        self.store = MemoryJobStore()
        sealer = Sealer((bytes(32),))
        environments = self.environments = Environments(ConnectionBook(json.dumps(CONNECTIONS)))
        self.invoker = Invoker(self.settings, sealer, lambda: self.store, environments=environments)
        self.worker = Worker(self.tools, self.store, sealer, self.settings, environments=environments)
        use_launcher(ToolLauncher(self.tools, self.invoker))

    def tool(self, name: str, body: str, *, is_async: bool = True, **agents: Any) -> None:
        folder = self.folder / name
        folder.mkdir()
        config = {
            "invocation": {"version": "1.0.0", "capabilities": agents.pop("capabilities", [])},
            "agents": {"version": "1.0.0", "invokable": True, "modes": ["two-way"], **agents},
        }
        (folder / "pptb.config.json").write_text(json.dumps(config))
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        (folder / "headless.py").write_text(
            f"import asyncio\n\n{'async ' if is_async else ''}def invokeHeadless(input, context):\n{lines}"
        )
        checked = check_contract(folder)
        assert checked.errors == []
        assert checked.tool is not None
        self.tools[checked.tool.spec.name] = checked.tool

    async def answer(self, tool: str, arguments: JsonObject) -> ToolResult:
        payload = json.dumps({"name": tool, "arguments": arguments})
        answering = asyncio.create_task(self.invoker.answer(self.tools[tool], payload))
        working: list[asyncio.Task[None]] = []
        while not answering.done():
            while self.store.messages:
                working.append(asyncio.create_task(self.worker.handle(self.store.messages.popleft())))
            await asyncio.sleep(0.001)
        await asyncio.gather(*working)
        return await answering

    def call(self, tool: str, arguments: JsonObject | None = None, **envelope: Any) -> Any:
        result = asyncio.run(self.answer(tool, {**(arguments or {}), "__pptb": envelope}))
        assert not result.is_error, result.text
        return result.structured

    def refused(self, tool: str, **envelope: Any) -> str:
        result = asyncio.run(self.answer(tool, {"__pptb": envelope}))
        assert result.is_error
        return result.text

    def log(self) -> list[str]:
        (job_id,) = [row["jobId"] for row in self.store.rows.values() if "jobId" in row]
        found = self.store.with_logs(job_id)
        assert found is not None
        return [line.message for line in found[1]]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)
    use_launcher(None)
    use_store(None)


def fault_of(bench: Bench, body: str, execution: str, **envelope: Any) -> tuple[str, Any]:
    """(the text, the code) of a call's error."""
    use_resolver(bench.environments.resolve)
    try:
        bench.tool("asks", body, executionModes=["inline", "headless"])
        call = bench.answer("asks", {"__pptb": {"executionMode": execution, **envelope}})
        result = asyncio.run(call)
    finally:
        use_resolver(None)
    assert result.is_error
    return result.text, result.meta[f"{META_PREFIX}errorCode"]


@pytest.mark.parametrize(
    ("target", "envelope", "word", "where"),
    [
        ("", {}, "primary", "connectionName"),
        (", 'secondary'", {"connectionName": "Prod"}, "secondary", "connectionNames[1]"),
        (", 4", {"connectionNames": ["Prod", "Test"]}, "slot 4", "connectionNames[4]"),
    ],
)
def test_a_call_without_the_connection_says_how_this_call_can_have_one(
    bench: Bench, target: str, envelope: Any, word: str, where: str
) -> None:
    body = f"return await dataverseAPI.queryData('accounts'{target})"
    text, code = fault_of(bench, body, "inline", **envelope)
    assert code == "connection"
    assert text == (
        f"No {word} connection is available for tool 'asks'. Name a saved connection with __pptb.{where}."
    )
    assert "headless" not in text


def test_a_headless_run_without_the_connection_says_what_the_original_says(bench: Bench) -> None:
    text, code = fault_of(bench, "return await dataverseAPI.queryData('accounts')", "headless")
    assert code == "tool_error"  # one of those that a job may have
    assert text.startswith(
        "No primary connection is available for headless tool 'asks'. Provide a saved connectionName when "
        "invoking headless mode. (job "
    )


def test_a_tool_may_catch_it_as_any_error_of_an_api(bench: Bench) -> None:
    body = (
        "from shared.tool import ToolError\n"
        "try:\n    await dataverseAPI.queryData('accounts')\n"
        "except ToolError as error:\n    return {'caught': type(error).__name__}"
    )
    use_resolver(bench.environments.resolve)
    try:
        bench.tool("catches", body, executionModes=["inline"])
        assert bench.call("catches") == {"caught": "NoConnectionError"}
    finally:
        use_resolver(None)


BOTH = pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])


def written(body: str, is_async: bool) -> str:
    """The body with `await` where it has to be."""
    return body if is_async else body.replace("await ", "")


@BOTH
def test_connections_by_slot(bench: Bench, is_async: bool) -> None:
    bench.tool(
        "shows",
        written(
            "api = toolboxAPI.connections\n"
            "first, second = await api.getActiveConnection(), await api.getSecondaryConnection()\n"
            "third = await api.getConnection(2)\n"
            "everything = await window.toolboxAPI.connections.get_connections()\n"
            "return {'first': first, 'second': second, 'third': third, 'names': [c.name for c in everything],\n"
            "        'told': [context.connectionName, context.connectionId, context.connectionUrls]}",
            is_async,
        ),
        is_async=is_async,
    )
    found = bench.call("shows", connectionNames=[" prod ", "TEST"])
    assert found["first"] == {
        "id": "c1",
        "name": "Prod",
        "url": "https://prod.crm.dynamics.com",
        "environment": "Production",
        "category": "Sales",
    }
    assert (found["second"]["name"], found["third"], found["names"]) == ("Test", None, ["Prod", "Test"])
    assert found["told"] == ["Prod", "c1", ["https://prod.crm.dynamics.com", "https://test.crm.dynamics.com"]]
    alone = bench.call("shows")
    assert (alone["first"], alone["second"], alone["names"]) == (None, None, [])


@BOTH
def test_the_tool_context(bench: Bench, is_async: bool) -> None:
    bench.tool("tells", written("return await toolboxAPI.getToolContext()", is_async), is_async=is_async)
    told = bench.call("tells", connectionName="Prod")
    assert (told["toolId"], told["connectionName"], told["connectionIds"]) == ("tells", "Prod", ["c1"])
    assert told["invocationContext"] == {"source": "mcp", "mode": "two-way", "expectsResponse": True}


@BOTH
def test_what_needs_a_screen_goes_to_the_log(bench: Bench, is_async: bool) -> None:
    bench.tool(
        "says",
        written(
            "await toolboxAPI.utils.showNotification({'title': 'Done', 'body': '3 rows', 'type': 'success'})\n"
            "await toolboxAPI.utils.copyToClipboard('private')\n"
            "await toolboxAPI.utils.openExternal('https://example.com')\n"
            "return {'theme': await toolboxAPI.utils.getCurrentTheme()}",
            is_async,
        ),
        is_async=is_async,
    )
    assert bench.call("says") == {"theme": "light"}
    log = bench.log()
    assert "[Notification] Done: 3 rows" in log
    assert any(line.startswith("[Clipboard] 7 characters") for line in log)
    assert "private" not in "".join(log)


@BOTH
def test_parallel_work_gives_its_values_in_order(bench: Bench, is_async: bool) -> None:
    bench.tool(
        "works",
        written(
            "def own(number):\n"
            "    launch = toolboxAPI.invocation.getLaunchContext()\n"
            "    return [number, launch['name']]\n"
            "values = await toolboxAPI.utils.executeParallel(*[lambda n=n: own(n) for n in range(5)])\n"
            "return {'values': values}",
            is_async,
        ),
        is_async=is_async,
    )
    assert bench.call("works", {"name": "Ana"})["values"] == [[number, "Ana"] for number in range(5)]


@BOTH
def test_settings_are_kept_per_tool_and_merged(bench: Bench, is_async: bool) -> None:
    store = MemorySettings()
    use_store(lambda: store)
    body = written(
        "before = await toolboxAPI.settings.getAll()\n"
        "await toolboxAPI.settings.set('n', input['n'])\n"
        "return {'before': before, 'n': await toolboxAPI.settings.get('n'),\n"
        "        'none': await toolboxAPI.settings.get('never')}",
        is_async,
    )
    bench.tool("first", body, is_async=is_async)
    bench.tool("second", body, is_async=is_async)
    assert bench.call("first", {"n": 1}) == {"before": {}, "n": 1, "none": None}
    store.disturbances = 2  # others change them meanwhile
    assert bench.call("first", {"n": 2}) == {"before": {"n": 1}, "n": 2, "none": None}
    assert store.rows["default", "first"][0] == {"n": 2, "theirs": 0}
    assert bench.call("second", {"n": 3})["before"] == {}


def test_settings_are_bounded_and_json(bench: Bench) -> None:
    use_store(lambda: MemorySettings())
    bench.tool("big", "await toolboxAPI.settings.set('x', '漢' * 40_000)")
    bench.tool("odd", "await toolboxAPI.settings.setAll({'x': object()})")
    assert "may have 32000 characters" in bench.refused("big")
    assert "cannot be written as JSON" in bench.refused("odd")


def test_events_stay_within_the_invocation(bench: Bench) -> None:
    bench.tool(
        "hears",
        "heard = []\n"
        "def listener(event, payload): heard.append(event)\n"
        "toolboxAPI.events.on(listener)\n"
        "context.updateProgress(40, 'reading')\n"
        "await toolboxAPI.utils.showNotification({'title': 't', 'body': 'b'})\n"
        "toolboxAPI.events.off(listener)\n"
        "context.updateProgress(50)\n"
        "history = await toolboxAPI.events.getHistory()\n"
        "return {'heard': heard, 'history': [[e.event, e.data] for e in history]}",
    )
    for _ in range(2):
        found = bench.call("hears")
        assert found["heard"] == ["progress", "notification"]
        assert found["history"][-1] == ["progress", {"percent": 40, "message": "reading"}]
        assert len(found["history"]) == 3


def test_the_terminal_says_why_it_cannot_serve(bench: Bench) -> None:
    bench.tool("shells", "await toolboxAPI.terminal.create({'name': 'x'})")
    assert (
        "toolboxAPI.terminal.create is not available here: a hosted function has no terminal"
        in bench.refused("shells")
    )


@BOTH
def test_files_are_private_and_removed(bench: Bench, is_async: bool) -> None:
    bench.tool(
        "keeps",
        written(
            "fs = toolboxAPI.fileSystem\n"
            "await fs.createDirectory('a/b')\n"
            "await fs.writeText('a/b/c.txt', 'hello 漢')\n"
            "about = await fs.stat('a/b/c.txt')\n"
            "names = [[e.name, e.type] for e in await fs.readDirectory('a')]\n"
            "import os, pathlib\n"
            "from shared.apis.toolbox.files import _folder\n"
            "link = await fs.saveFile('report.csv', 'x,y')\n"
            "return {'text': await fs.readText('a/b/c.txt'), 'size': about.size, 'type': about.type,\n"
            "        'names': names, 'there': await fs.exists('nothing'), 'link': link,\n"
            "        'folder': str(_folder())}",
            is_async,
        ),
        is_async=is_async,
    )
    found = bench.call("keeps")
    assert (found["text"], found["size"], found["type"]) == ("hello 漢", 9, "file")
    assert (found["names"], found["there"]) == ([["b", "directory"]], False)
    assert not Path(found["folder"]).exists()
    (artifact,) = [data for name, data in bench.store.blobs.items() if name.endswith("/report.csv")]
    assert artifact == b"x,y"
    assert found["link"].startswith("artifact://")


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "link/passwd", "a\\b", ""])
def test_no_path_leads_out_of_the_folder(bench: Bench, path: str) -> None:
    bench.tool(
        "escapes",
        "import os\n"
        "from shared.apis.toolbox.files import _folder\n"
        "os.symlink('/etc', _folder() / 'link')\n"
        "return {'text': await toolboxAPI.fileSystem.readText(input['path'])}",
    )
    result = asyncio.run(bench.answer("escapes", {"path": path}))
    assert result.is_error
    assert "toolboxAPI.fileSystem: " in result.text
    assert "root:" not in result.text


@BOTH
@pytest.mark.parametrize("work", ["writeText('a/b', 'x')", "createDirectory('a')", "writeText('.', 'x')"])
def test_what_the_disk_refuses_names_the_path_as_it_was_given(bench: Bench, is_async: bool, work: str) -> None:
    bench.tool(
        "refused",
        written(f"fs = toolboxAPI.fileSystem\nawait fs.writeText('a', 'x')\nawait fs.{work}", is_async),
        is_async=is_async,
    )
    text = bench.refused("refused")
    assert "toolboxAPI.fileSystem: '" in text
    assert "toolbox-files-" not in text


def test_a_file_on_its_way_to_storage_holds_up_no_loop(bench: Bench, tmp_path: Path) -> None:
    sign = tmp_path / "the loop goes on"
    seen: list[bool] = []
    put = bench.store.put_artifact

    def slowly(name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        deadline = time.monotonic() + 5
        while not sign.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        seen.append(sign.exists())
        put(name, data, mime_type)

    bench.store.put_artifact = slowly  # type: ignore[method-assign]
    bench.tool(
        "saves",
        "import pathlib\n"
        "async def meanwhile():\n"
        "    await asyncio.sleep(0.02)\n"
        "    pathlib.Path(input['sign']).touch()\n"
        "async with asyncio.TaskGroup() as group:\n"
        "    group.create_task(meanwhile())\n"
        "    await asyncio.sleep(0)\n"
        "    await toolboxAPI.fileSystem.saveFile('a.txt', 'x')\n"
        "return {}",
    )
    bench.call("saves", {"sign": str(sign)})
    assert seen == [True]


@BOTH
def test_a_listener_of_settings_holds_up_no_request(bench: Bench, is_async: bool) -> None:
    store = MemorySettings()
    use_store(lambda: store)
    bench.tool(
        "hears",
        written(
            "import threading\n"
            "heard = []\n"
            "def listener(event, payload):\n"
            "    heard.append([event, payload.data.key, threading.current_thread().name])\n"
            "toolboxAPI.events.on(listener)\n"
            "await toolboxAPI.settings.setAll({'a': 1, 'b': 2})\n"
            "return {'heard': heard}",
            is_async,
        ),
        is_async=is_async,
    )
    heard = bench.call("hears")["heard"]
    assert [one[:2] for one in heard] == [["settings:updated", "a"], ["settings:updated", "b"]]
    assert "apis" not in {one[2] for one in heard}  # the thread of every call's requests


# Results and other tools.


@BOTH
def test_returned_data_is_the_result_of_a_function_that_returns_none(bench: Bench, is_async: bool) -> None:
    bench.tool(
        "returns",
        written(
            "await toolboxAPI.invocation.returnData({'n': 1})\n"
            "await toolboxAPI.invocation.returnData({'n': 2})\n"
            "return input.get('own')",
            is_async,
        ),
        is_async=is_async,
    )
    assert bench.call("returns") == {"n": 1}
    assert bench.call("returns", {"own": {"n": 3}}) == {"n": 3}


@BOTH
@pytest.mark.parametrize("execution_mode", ["inline", "headless"])
def test_another_tool_is_launched_for_the_same_owner(bench: Bench, is_async: bool, execution_mode: str) -> None:
    bench.tool(
        "child",
        "return {'doubled': 2 * input['n'], 'mode': context.executionMode, 'owner': context.owner}",
        executionModes=["inline", "headless"],
    )
    bench.tool(
        "parent",
        written(
            "options = {'executionMode': input['how']}\n"
            "found = await toolboxAPI.invocation.launchTool('child', {'n': input['n']}, options)\n"
            "return {'found': found, 'doubled': found.doubled}",
            is_async,
        ),
        is_async=is_async,
    )
    found = bench.call("parent", {"n": 4, "how": execution_mode})
    assert found["found"] == {"doubled": 8, "mode": execution_mode, "owner": "default"}


@BOTH
def test_a_childs_code_holds_up_no_request(bench: Bench, is_async: bool) -> None:
    child = "import threading\nreturn {'thread': threading.current_thread().name}"
    bench.tool("child", child, executionModes=["inline"])
    parent = written("return await toolboxAPI.invocation.launchTool('child', {})", is_async)
    bench.tool("parent", parent, is_async=is_async)
    assert bench.call("parent")["thread"] != "apis"  # the thread of every call's requests


def test_a_childs_error_is_the_parents(bench: Bench) -> None:
    bench.tool("child", "raise ValueError('no such table')", executionModes=["inline"])
    bench.tool("parent", "return await toolboxAPI.invocation.launchTool(input['tool'], {})")
    result = asyncio.run(bench.answer("parent", {"tool": "child"}))
    assert "Failed to launch tool: Tool 'child' failed: ValueError: no such table" in result.text
    result = asyncio.run(bench.answer("parent", {"tool": "nobody"}))
    assert "there is no tool 'nobody'" in result.text


@pytest.mark.parametrize("published", ["other", "nothing"])
def test_a_tool_of_a_server_never_stands_in_for_an_own_one(bench: Bench, published: str) -> None:
    """Also where that one is switched off, and so is no tool."""
    bench.tool("docs-read", "return {'from': 'own'}", executionModes=["inline"])
    bench.tool("other", "return {'from': 'other'}", executionModes=["inline"])
    bench.tool("parent", "return await toolboxAPI.invocation.launchTool(input['tool'], {})")
    aliases = {"docs-read": published, "server.read": "other"}
    use_launcher(ToolLauncher(bench.tools, bench.invoker, resolver(bench.tools, aliases)))
    assert bench.call("parent", {"tool": "docs-read"}) == {"from": "own"}
    assert bench.call("parent", {"tool": "server.read"}) == {"from": "other"}


@pytest.mark.parametrize("execution_mode", ["inline", "headless"])
def test_calls_within_calls_are_bounded(bench: Bench, execution_mode: str) -> None:
    bench.tool(
        "again",
        f"options = {{'executionMode': '{execution_mode}'}}\n"
        "return await toolboxAPI.invocation.launchTool('again', {'n': input.get('n', 0) + 1}, options)",
        executionModes=["inline", "headless"],
        defaultExecutionMode="headless",
    )
    assert f"nested more than {DEPTH_LIMIT} deep" in bench.refused("again")


def test_tools_are_found_by_what_they_can_do(bench: Bench) -> None:
    bench.tool("picker", "return {}", capabilities=["record-selection"])
    bench.tool(
        "asks",
        "found = await toolboxAPI.invocation.findToolsByCapability('record-selection')\n"
        "return {'found': [t.toolName for t in found],\n"
        "        'tags': await toolboxAPI.invocation.getKnownCapabilityTags()}",
    )
    assert bench.call("asks") == {"found": ["picker"], "tags": ["record-selection"]}


def test_an_unknown_name_names_near_ones(bench: Bench) -> None:
    bench.tool("typo", "return toolboxAPI.settings.getAl()")
    text = bench.refused("typo")
    assert "SettingsApi has no 'getAl'; did you mean" in text
