"""A contract tool's folder copied in from elsewhere: two files, no Python around them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import ROOT, App, start_app
from tests.acceptance.test_clients import inspect

pytestmark = pytest.mark.acceptance

SURFACE = ROOT / "tests" / "apps" / "surface"


@pytest.fixture(scope="module")
def contracts(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("contracts")
    app_dir = folder / "app"
    app_dir.mkdir()
    for name in ("function_app.py", "host.json"):
        shutil.copy(SURFACE / name, app_dir)
    code = (app_dir / "function_app.py").read_text()
    root = "str(Path(__file__).resolve().parents[3])"
    assert root in code
    (app_dir / "function_app.py").write_text(code.replace(root, repr(str(ROOT))))
    shutil.copytree(SURFACE / "contracts", app_dir / "surface_tools")
    running = start_app(folder, new_storage(), app_dir=app_dir)
    yield running
    running.stop()


def test_its_modes_are_listed_and_the_broken_one_is_left_out_with_its_faults(contracts: App) -> None:
    tools = {tool["name"]: tool for tool in contracts.rpc("tools/list")["result"]["tools"]}
    own = {"server_status", "tool_list"}
    assert {name for name in tools if not name.startswith("job_")} - own == {"greeter"}
    entry = tools["greeter"]
    assert entry["description"].endswith("[modes: one-way, two-way; default: two-way; returnsData: yes]")
    assert entry["inputSchema"]["properties"]["times"] == {"type": "integer", "minimum": 1}
    log = contracts.log.read_text()
    assert "tools/broken: left out: " in log
    assert "$.agents.version" in log
    assert "$.agents.modes" in log


@pytest.mark.parametrize("execution_mode", ["inline", "headless"])
def test_it_is_called_both_ways(contracts: App, execution_mode: str) -> None:
    envelope = {"executionMode": execution_mode, "mode": "two-way"}
    answer = contracts.call("greeter", {"name": "Ana", "times": 2, "extra": True}, envelope)
    assert answer["structuredContent"] == {"greeting": "hello hello Ana", "mode": "two-way"}
    accepted: Any = contracts.call("greeter", {"name": "Ana"}, {**envelope, "mode": "one-way"})
    body = contracts.ended(accepted["structuredContent"]["jobId"])
    assert (body["status"], body["result"]) == ("completed", {"greeting": "hello Ana", "mode": "one-way"})
    assert "greeting" in [line["message"] for line in body["logs"]]


def test_wrong_input_is_told(contracts: App) -> None:
    answer = contracts.call("greeter", {"name": "Ana", "times": 0})
    assert answer["isError"] is True
    assert "$.times: must be at least 1" in answer["content"][0]["text"]


def test_the_inspector_shows_its_modes_and_both_answers(contracts: App) -> None:
    listed = inspect(contracts, "--method", "tools/list")
    envelope = listed["tools"][0]["inputSchema"]["properties"]["__pptb"]["properties"]
    assert envelope["mode"]["enum"] == ["one-way", "two-way"]
    call = ["--method", "tools/call", "--tool-name", "greeter", "--tool-arg", "name=Ana"]
    assert inspect(contracts, *call)["structuredContent"]["greeting"] == "hello Ana"
    one_way = inspect(contracts, *call, "--tool-arg", '__pptb={"mode":"one-way"}')
    assert one_way["structuredContent"]["status"] == "accepted"
