"""Every transport; projects and policy; what is told of the servers; faults that spare the other servers."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import OTHER_TOKEN, TOKEN, App, wait_until
from tests.acceptance.upstream.calls import log_lines, names, slow, text
from tests.support.upstream import is_alive
from tests.support.upstream_app import PYTHON, Folder, descendants

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

ANA = {"X-MCP-Auth-Token": OTHER_TOKEN}
DEFAULT = {"X-MCP-Auth-Token": TOKEN}
JOB = {"executionMode": "headless", "mode": "two-way"}
SERVERS = ["sdk", "fast_mcp", "new_http", "old_http", "fast_http", "events"]


# Transports.


@pytest.mark.parametrize("envelope", [None, JOB], ids=["inline", "headless"])
@pytest.mark.parametrize("server", SERVERS)
def test_a_server_of_each_transport_answers(upstream: App, folder: Folder, server: str, envelope: Any) -> None:
    echoed = upstream.call(names(folder)[f"{server}.echo"], {"text": "é😀日本"}, envelope)
    assert echoed["content"] == [{"type": "text", "text": "é😀日本"}]
    assert not echoed.get("isError")
    added = upstream.call(names(folder)[f"{server}.add"], {"a": 2, "b": 3}, envelope)
    assert added["structuredContent"] == {"sum": 5}


@pytest.mark.parametrize("envelope", [None, JOB], ids=["inline", "headless"])
def test_a_websocket_server_answers(upstream: App, folder: Folder, envelope: Any) -> None:
    result = upstream.call(names(folder)["socket.echo"], {"text": "é😀日本"}, envelope)
    assert result["structuredContent"]["arguments"] == {"text": "é😀日本"}


@pytest.mark.parametrize("server", ["new_http", "events", "old_http"])
def test_the_session_is_kept_between_calls(upstream: App, folder: Folder, server: str) -> None:
    counts = [upstream.call(names(folder)[f"{server}.counter"], {})["content"][0]["text"] for _ in range(3)]
    assert [int(count) - int(counts[0]) for count in counts] == [0, 1, 2]


def test_programs_that_an_operator_has_added_are_told_of_at_start(upstream: App) -> None:
    assert f"npx, uvx, docker and these commands: {PYTHON}" in upstream.log.read_text("utf-8", "replace")


def test_an_error_of_the_tool_is_an_error_here(upstream: App, folder: Folder) -> None:
    for envelope in (None, JOB):
        failed = upstream.call(names(folder)["sdk.fail"], {}, envelope)
        assert failed["isError"] is True
        assert "Error executing tool fail" in text(failed)


def test_a_name_that_clients_cannot_take_has_an_alias(upstream: App, folder: Folder) -> None:
    alias = names(folder)["plain.read.file/v2"]
    assert alias.startswith("plain_read_file_v2_")
    assert upstream.call(alias, {})["structuredContent"]["arguments"] == {}


def test_which_of_its_names_is_known_where(upstream: App, folder: Folder) -> None:
    """As the table in docs/upstream.md says it. (`launchTool` has a test of its own, below.)"""
    published = names(folder)["plain.echo"]
    known = {
        name: (
            "result" in upstream.rpc("tools/call", name=name, arguments={"text": "x"}),
            upstream.http.post(f"/mcp/tools/{name}", json={"text": "x"}, headers=DEFAULT).status_code == 200,
        )
        for name in (published, "plain.echo", "mcp:plain:echo")
    }
    assert known == {published: (True, True), "plain.echo": (False, True), "mcp:plain:echo": (False, True)}


# Calls from the app's own tools.


@pytest.mark.parametrize("launcher", ["launch_async", "launch_sync"])
@pytest.mark.parametrize("envelope", [None, JOB], ids=["inline", "headless"])
def test_a_tool_launches_one_by_either_name(
    upstream: App, folder: Folder, launcher: str, envelope: Any
) -> None:
    pids = set()
    for name in ("plain.echo", names(folder)["plain.echo"], "mcp:plain:echo"):
        told = upstream.call(launcher, {"name": name, "arguments": {"text": "x"}}, envelope)[
            "structuredContent"
        ]
        assert told["arguments"] == {"text": "x"}
        pids.add(told["pid"])
    pids.add(upstream.call(names(folder)["plain.echo"], {})["structuredContent"]["pid"])
    # One kept server, whichever loop the call came from.
    assert len(pids) == 1


@pytest.mark.parametrize("launcher", ["launch_async", "launch_sync"])
def test_a_launched_call_keeps_the_callers_project_and_policy(
    upstream: App, folder: Folder, launcher: str
) -> None:
    given = {"name": "sdk.counter", "arguments": {}}
    refused = upstream.call(launcher, given, headers=ANA)
    assert refused["isError"] is True
    assert "'sdk.counter' is blocked for you by this app's policy" in text(refused)
    told = upstream.call(launcher, {"name": "server_status", "arguments": {"name": "shared"}}, headers=ANA)
    assert told["structuredContent"]["servers"][0]["scope"] == "project"


# Projects.


def pid(upstream: App, folder: Folder, name: str, headers: Any = None, envelope: Any = None) -> int:
    result = upstream.call(names(folder)[name], {}, envelope, headers)
    assert not result.get("isError"), text(result)
    found: int = result["structuredContent"]["pid"]
    return found


def test_a_call_goes_to_the_server_of_the_callers_project(upstream: App, folder: Folder) -> None:
    common, of_sales = pid(upstream, folder, "shared.echo"), pid(upstream, folder, "shared.echo", ANA)
    assert common != of_sales
    assert pid(upstream, folder, "shared.own", ANA) == of_sales
    assert pid(upstream, folder, "shared.own", ANA, JOB) == of_sales
    assert pid(upstream, folder, "shared.own", ANA, {"project": "sales"}) == of_sales


@pytest.mark.parametrize("envelope", [{}, JOB], ids=["inline", "headless"])
def test_what_is_not_in_the_project_says_so(upstream: App, folder: Folder, envelope: Any) -> None:
    outside = upstream.call(names(folder)["shared.own"], {}, envelope)
    assert outside["isError"] is True
    assert "'shared.own' cannot be called: it is not in your project" in text(outside)
    off = upstream.call(names(folder)["private.echo"], {}, envelope, ANA)
    assert "'private.echo' cannot be called: its server 'private' is switched off" in text(off)
    assert not upstream.call(names(folder)["private.echo"], {}, envelope).get("isError")


def test_only_a_granted_project_can_be_selected(upstream: App, folder: Folder) -> None:
    for project in ("sales", "nowhere"):
        refused = upstream.call(names(folder)["shared.echo"], {}, {"project": project})
        assert "__pptb.project: there is no such project for you; you have none" in text(refused)
    refused = upstream.call(names(folder)["shared.echo"], {}, {"project": "nowhere"}, ANA)
    assert "__pptb.project: there is no such project for you; yours are sales, lab" in text(refused)


# Policy.


def test_policy_decides_at_each_call(upstream: App, folder: Folder) -> None:
    counter = names(folder)["sdk.counter"]
    assert not upstream.call(counter, {}).get("isError")
    for envelope in (None, JOB):
        refused = upstream.call(counter, {}, envelope, ANA)
        assert "Tool 'sdk.counter' is blocked for you by this app's policy." in text(refused)
    for how in ({}, JOB):  # a job keeps the project that its call has selected
        refused = upstream.call(names(folder)["sdk.echo"], {"text": "x"}, {**how, "project": "lab"}, ANA)
        assert "Tool 'sdk.echo' is blocked for you" in text(refused)
    assert not upstream.call(names(folder)["plain.echo"], {}, {"project": "lab"}, ANA).get("isError")


def test_what_nobody_may_call_is_no_tool(upstream: App, folder: Folder) -> None:
    listed = {tool["name"] for tool in upstream.rpc("tools/list")["result"]["tools"]}
    lock = names(folder)
    assert lock["plain.echo"] in listed
    assert not {lock["plain.forbidden"], lock["plain.off"]} & listed
    assert "error" in upstream.rpc("tools/call", name=lock["plain.forbidden"], arguments={})


def listed_to(upstream: App, headers: Any, envelope: Any = None) -> set[str]:
    told = upstream.call("tool_list", {}, envelope, headers)["structuredContent"]["tools"]
    return {tool.get("qualifiedName", tool["name"]) for tool in told}


def test_tool_list_shows_what_its_caller_may_call(upstream: App) -> None:
    everyone, ana = listed_to(upstream, DEFAULT), listed_to(upstream, ANA)
    assert {"plain.echo", "sdk.counter", "private.echo", "launch_sync", "tool_list"} <= everyone
    assert "shared.own" not in everyone
    assert {"plain.echo", "shared.own", "launch_sync"} <= ana
    assert not {"sdk.counter", "private.echo", "plain.off", "plain.forbidden"} & (
        ana | {"plain.off"} & everyone
    )
    lab = listed_to(upstream, ANA, {"project": "lab"})
    assert {name for name in lab if "." in name} == {
        "plain.echo",
        "plain.say",
        "plain.hang",
        "plain.die",
        "plain.read.file/v2",
    }


# Status.


def servers(upstream: App, headers: Any = DEFAULT, query: str = "") -> dict[str, Any]:
    answer = upstream.http.get(f"/mcp/servers{query}", headers=headers)
    assert answer.status_code == 200
    return {one["name"]: one for one in answer.json()["servers"]}


def test_all_servers_are_listed_faulty_ones_too(upstream: App, folder: Folder) -> None:
    upstream.call(names(folder)["plain.echo"], {})
    found = servers(upstream)
    assert {"everything", "files", "sdk", "Fast MCP", "new http", "socket", "broken", "forbidden"} <= set(found)
    plain = found["plain"]
    assert {key: plain[key] for key in ("scope", "type", "description", "connected", "state", "error")} == {
        "scope": "global", "type": "stdio", "description": "Answers plainly.", "connected": True,
        "state": "connected", "error": "",
    }  # fmt: skip
    assert plain["tool_count"] == 5  # without the disabled and the forbidden one
    assert plain["has_log"] is True
    assert plain["instance"]
    assert [found[name]["type"] for name in ("new http", "events", "socket")] == ["http", "sse", "websocket"]
    broken = found["broken"]
    assert (broken["connected"], broken["tool_count"], broken["state"]) == (False, 0, "error")
    assert "NO_SUCH" in broken["error"]
    assert "npx, uvx" in found["forbidden"]["error"]


def test_a_project_sees_its_own_servers(upstream: App) -> None:
    found = servers(upstream, ANA)
    assert (found["Shared"]["scope"], found["Shared"]["description"]) == ("project", "The one of sales.")
    assert "shared" not in found
    assert (found["private"]["error"], found["private"]["connected"]) == ("Disabled in config", False)
    assert found["sdk"]["scope"] == "global"
    assert "Shared" not in servers(upstream)
    assert "Shared" not in servers(upstream, ANA, "?project=lab")
    assert upstream.http.get("/mcp/servers?project=lab", headers=DEFAULT).status_code == 400


def test_one_server_with_its_tools_and_log(upstream: App, folder: Folder) -> None:
    upstream.call(names(folder)["plain.echo"], {})
    answer = upstream.http.get("/mcp/servers/PLAIN", headers=DEFAULT)
    assert answer.status_code == 200
    body = answer.json()
    tools = {tool["name"]: tool for tool in body["tools"]}
    assert tools["echo"]["input_schema"]["properties"] == {"text": {"type": "string"}}
    shown = {name: (tool["disabled"], tool["allowed"]) for name, tool in tools.items()}
    assert (shown["echo"], shown["off"], shown["forbidden"]) == ((False, True), (True, True), (False, False))
    assert {tool["state"] for tool in tools.values()} == {"locked"}
    assert "a plain server speaks" in body["log"]
    assert upstream.http.get("/mcp/servers/plain", headers=ANA).json()["log"] == ""
    by_tool = upstream.call("server_status", {"name": "plain"})["structuredContent"]["servers"]
    assert by_tool[0]["tools"] == body["tools"]


def test_the_session_id_is_shown_in_part(upstream: App, folder: Folder) -> None:
    upstream.call(names(folder)["old_http.echo"], {"text": "x"})
    body = upstream.http.get("/mcp/servers/old%20http", headers=DEFAULT).json()
    assert body["session_id"].endswith("…")
    assert len(body["session_id"]) < 16


def test_what_http_refuses(upstream: App) -> None:
    missing = upstream.http.get("/mcp/servers/nothing", headers=DEFAULT)
    assert (missing.status_code, missing.json()) == (404, {"error": "Server not found"})
    refusals = {
        upstream.http.get(path).content for path in ("/mcp/servers", "/mcp/servers/plain", "/mcp/servers/no")
    }
    assert refusals == {b'{"error":"Unauthorized: valid MCP access token required"}'}
    assert upstream.http.get("/mcp/servers", headers={"X-MCP-Auth-Token": "no"}).status_code == 401
    for path in ("/mcp/servers", "/mcp/servers/plain"):
        posted = upstream.http.post(path, headers=DEFAULT)
        assert (posted.status_code, posted.headers["Allow"]) == (405, "GET")


def test_the_operator_has_the_configuration_read_anew(upstream: App, folder: Folder) -> None:
    path = "/mcp/servers/refresh"
    before = upstream.call(names(folder)["plain.echo"], {"text": "x"})["structuredContent"]["pid"]
    assert upstream.http.post(path).status_code == 401
    assert upstream.http.post(path, headers=ANA).status_code == 403
    assert upstream.http.get(path, headers=DEFAULT).status_code == 404
    told = upstream.http.post(path, headers=DEFAULT)
    assert told.status_code == 200
    assert {fault["server"] for fault in told.json()["faults"]} == {"broken", "forbidden"}
    assert told.json()["servers"] == 14  # twelve for all, two that `sales` has over them
    # Nothing has changed, so no connection is closed.
    assert upstream.call(names(folder)["plain.echo"], {"text": "x"})["structuredContent"]["pid"] == before


def test_server_status_of_a_server_that_is_not_there(upstream: App) -> None:
    refused = upstream.call("server_status", {"name": "nothing"})
    assert refused["isError"] is True
    assert "There is no server 'nothing'." in text(refused)


# Failures.


def test_a_server_that_is_killed_between_two_calls_is_started_again(upstream: App, folder: Folder) -> None:
    for name in ("shared.echo", "shared.own"):
        headers = ANA if name == "shared.own" else None
        first = pid(upstream, folder, name, headers)
        kill(first)
        second = pid(upstream, folder, name, headers)
        assert second != first
        kill(second)
        assert pid(upstream, folder, name, headers, JOB) not in (first, second)


def test_everything_is_killed_between_two_calls(upstream: App, folder: Folder) -> None:
    echo = names(folder)["everything.echo"]
    upstream.call(echo, {"message": "x"})
    killed = [one for one in descendants(upstream.process.pid) if "server-everything" in command(one)]
    assert killed
    kill(*killed)
    assert text(upstream.call(echo, {"message": "again"})) == "Echo: again"


def kill(*pids: int) -> None:
    """Ends them at once. Between two calls: a call that a dying server may have read is not sent again."""
    for one in pids:
        with contextlib.suppress(ProcessLookupError):  # it has gone with the one that had started it
            os.kill(one, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(one) for one in pids))


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.parametrize("envelope", [None, JOB], ids=["inline", "headless"])
def test_a_server_that_dies_during_a_call_is_told_of(upstream: App, folder: Folder, envelope: Any) -> None:
    died = upstream.call(names(folder)["plain.die"], {}, envelope)
    assert died["isError"] is True
    assert "Server 'plain' is no longer available" in text(died)
    assert "what came of it is unknown" in text(died)
    assert pid(upstream, folder, "plain.echo")


def test_a_hung_call_delays_nobody(upstream: App, folder: Folder) -> None:
    took: dict[str, float] = {}

    def hang() -> None:
        started = time.monotonic()
        mine = App(upstream.process, upstream.port, "", upstream.log)  # with a client for this thread
        with mine.http:
            result = mine.call(names(folder)["plain.hang"], {}, {"timeoutMs": 4000})
        assert slow("plain", "hang", 4) in text(result)
        took["hang"] = time.monotonic() - started

    upstream.call(names(folder)["sdk.echo"], {"text": "x"})
    thread = threading.Thread(target=hang)
    thread.start()
    started = time.monotonic()
    wait_until(
        lambda: (
            any(
                line.get("event") == "upstream.start" and line["tool"] == "hang" for line in log_lines(upstream)
            )
            or time.monotonic() - started > 1
        )
    )
    for name in ("sdk.echo", "plain.echo"):
        assert not upstream.call(names(folder)[name], {"text": "x"}).get("isError")
    assert servers(upstream)["plain"]["connected"] is True
    assert time.monotonic() - started < 3.5
    thread.join()
    assert 3.5 < took["hang"] < 6


def test_start_and_end_of_a_call_are_in_the_log_under_its_correlation_id(upstream: App, folder: Folder) -> None:
    for envelope, tool in ((None, "echo"), (JOB, "read.file/v2")):
        known = len(spans(upstream, tool))
        result = upstream.call(names(folder)[f"plain.{tool}"], {}, envelope)
        assert not result.get("isError")
        start, end = wait_until(functools.partial(new_spans, upstream, tool, known))
        assert (start["event"], end["event"]) == ("upstream.start", "upstream.end")
        assert start["server"] == "plain"
        assert start["correlationId"] == end["correlationId"]
        assert (end["outcome"], end["durationMs"] >= 0) == ("completed", True)
        wait_until(functools.partial(records, upstream, start["correlationId"]))


def records(upstream: App, correlation_id: str) -> list[Any]:
    return [
        one for one in log_lines(upstream) if one.get("correlationId") == correlation_id and "event" not in one
    ]


def new_spans(upstream: App, tool: str, known: int) -> list[Any]:
    found = spans(upstream, tool)[known:]
    return found[:2] if len(found) >= 2 else []


def spans(upstream: App, tool: str) -> list[Any]:
    return [line for line in log_lines(upstream) if line.get("tool") == tool and "event" in line]
