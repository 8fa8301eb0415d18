"""One trace from the MCP call through the queue to the job's requests, and what is counted on the way, as a
collector gets it from the app.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.azurite import Azurite
from infra.local.dataverse.stand_in import StandIn
from tests.acceptance.conftest import TOKEN, App, start_app, wait_until
from tests.integration.dataverse.methods_bench import connections_to, settings_for, started
from tests.support.mcp_recorder import Recorder, recording
from tests.support.otlp import Collector, Span, collecting
from tests.support.upstream_app import Folder, app_folder

pytestmark = pytest.mark.acceptance

SECRET = "sentinel-9b41-nobody-may-export-this"
LEASE = {"TOOLBOX_LEASE_MS": "1000", "TOOLBOX_LEASE_RENEW_MS": "300"}
#: Exported soon rather than after the defaults of 5 and 60 seconds.
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
#: Each second, instead of every five minutes.
REAPER = {"TOOLBOX_REAPER_SCHEDULE": "* * * * * *"}
NO_WORKER = {"AzureWebJobs.job_worker.Disabled": "true"}
ID = "00000000-0000-0000-0000-0000000000aa"
TOOLS = f'''
"""Tools that ask others."""

import asyncio
from typing import Any

from shared.apis import dataverseAPI, toolboxAPI
from shared.tool import Context, tool


@tool(execution_modes=("headless",), modes=("one-way", "two-way"))
async def journey(note: str) -> dict[str, Any]:
    """Asks Dataverse, and another server."""
    rows = await dataverseAPI.queryData("accounts?$select=name&$top=1&$filter=name ne '{SECRET}'")
    try:
        await dataverseAPI.retrieve("account", "{ID}")
    except Exception:
        pass
    told = await toolboxAPI.invocation.launchTool("recorder.echo", {{"text": note}})
    return {{"rows": len(rows["value"]), "told": str(told)}}


@tool(execution_modes=("headless",), modes=("one-way", "two-way"), isolation="process")
async def apart(note: str) -> dict[str, Any]:
    """The same in a process of its own."""
    found = await journey(note)

    async def ask() -> Any:
        return await dataverseAPI.queryData("contacts?$select=fullname&$top=1")

    more = await asyncio.to_thread(lambda: asyncio.run(ask()))
    return {{**found, "more": len(more["value"])}}


@tool(execution_modes=("headless",), modes=("one-way", "two-way"), max_attempts=2)
async def patient(context: Context) -> dict[str, int]:
    """Its first attempt asks Dataverse and then waits for ever."""
    await dataverseAPI.queryData("accounts?$select=name&$top=1")
    context.update_progress(50, "asked")
    if context.attempt == 1:
        await asyncio.sleep(600)
    return {{"attempt": context.attempt}}


@tool(execution_modes=("headless",), modes=("one-way", "two-way"))
def chatty(lines: int, context: Context) -> dict[str, int]:
    """Logs a lot."""
    for number in range(lines):
        context.logger.info(f"line {{number}}")
    return {{"lines": lines}}


@tool()
def failing(note: str) -> str:
    """Fails, and says too much."""
    raise ValueError(note)
'''


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Of these tests alone: apps that share a queue take each other's messages."""
    with Azurite.start(tmp_path_factory.mktemp("storage"), free_ports=True) as own:
        yield own


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    with started() as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, dataverse: StandIn, server: Recorder) -> Folder:
    connections = json.dumps(connections_to(dataverse))
    made = app_folder(
        tmp_path_factory.mktemp("telemetry") / "app",
        CONNECTIONS=connections,
        **settings_for(dataverse),
        **LEASE,
        **SOON,
    )
    made.add_tool("travels", TOOLS)
    made.configure({"recorder": {"url": server.url}})
    assert made.sync()["faults"] == []
    return made


def run(folder: Folder, place: Path, azurite: Azurite, collector: Collector, **more: str) -> App:
    place.mkdir()
    settings = {**folder.settings, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more}
    return start_app(place, azurite.connection_string, app_dir=folder.path, **settings)


def accepted(app: App, tool: str, arguments: Any, headers: dict[str, str] | None = None, **more: str) -> str:
    """The id of the job that a call has made."""
    envelope = {"executionMode": "headless", "mode": "one-way", "connectionName": "dev", **more}
    answer = app.call(tool, arguments, envelope, headers)
    assert "structuredContent" in answer, answer
    return str(answer["structuredContent"]["jobId"])


def one(spans: list[Span], name: str) -> Span:
    found = [span for span in spans if span.name == name]
    assert len(found) == 1, (name, sorted({span.name for span in spans}))
    return found[0]


def attempts(collector: Collector, tool: str) -> dict[tuple[str, str], float]:
    """How many attempts of a tool have ended, by outcome and error."""
    return {
        (point.attributes["toolbox.outcome"], point.attributes.get("error.type", "")): point.value
        for point in collector.points("toolbox.job.attempts")
        if point.attributes["gen_ai.tool.name"] == tool
    }


def test_one_trace_from_the_call_to_the_jobs_requests(
    folder: Folder, tmp_path: Path, azurite: Azurite, collector: Collector, dataverse: StandIn, server: Recorder
) -> None:
    app = run(folder, tmp_path / "app", azurite, collector)
    try:
        caller = f"00-{'ab' * 16}-{'cd' * 8}-01"
        headers = {"X-MCP-Auth-Token": TOKEN, "traceparent": caller}
        job_id = accepted(app, "journey", {"note": SECRET}, headers, authToken=SECRET)
        job = app.ended(job_id)
        assert job["status"] == "completed", job
        failed = app.call("failing", {"note": SECRET}, None, {"traceparent": caller})
        assert failed["isError"]
        wait_until(lambda: len(collector.spans()) >= 9 and collector.points("toolbox.jobs"))
        wait_until(lambda: collector.points("toolbox.calls"))
        spans = collector.spans()
        assert {span.trace_id for span in spans} == {"ab" * 16}
    finally:
        assert app.stop() == 0

    call = one(spans, "mcp.call journey")
    submit = one(spans, "job.submit journey")
    attempt = one(spans, "job.attempt journey")
    found = [span for span in spans if span.name == "dataverse.request GET"]
    (launched,) = [span for span in spans if span.name.startswith("mcp.call recorder_echo")]
    upstream = one(spans, "upstream.call recorder/echo")
    assert call.parent == "cd" * 8
    assert submit.parent == call.span_id
    assert attempt.parent == submit.span_id
    assert {span.parent for span in found} == {attempt.span_id}
    assert launched.parent == attempt.span_id
    assert upstream.parent == launched.span_id
    assert (call.kind, submit.kind, attempt.kind, upstream.kind) == ("SERVER", "PRODUCER", "CONSUMER", "CLIENT")

    # What they tell.
    assert call.attributes["toolbox.outcome"] == "accepted"
    assert call.attributes["toolbox.job.id"] == submit.attributes["toolbox.job.id"] == job_id
    assert call.attributes["toolbox.correlation_id"].endswith(job_id)
    assert len(call.attributes["enduser.pseudo.id"]) == 16
    assert attempt.attributes["toolbox.job.attempt"] == 1
    routes = {span.attributes["url.template"]: span for span in found}
    assert "accounts" in routes
    missing = routes["accounts({key})"]
    assert (missing.failed, missing.attributes["http.response.status_code"]) == (True, 404)
    assert routes["accounts"].attributes["http.response.status_code"] == 200
    failing = one(spans, "mcp.call failing")
    assert failing.failed
    assert failing.attributes["error.type"] == "tool_error"

    # What the others were told.
    seen = {
        request.headers.get("traceparent") for request in dataverse.requests() if "/api/data/" in request.path
    }
    assert {f"00-{span.trace_id}-{span.span_id}-01" for span in found} <= seen
    got, params = server.calls[-1]
    wanted = f"00-{upstream.trace_id}-{upstream.span_id}-01"
    assert (got["traceparent"], params["_meta"]["traceparent"]) == (wanted, wanted)

    # Metrics.
    calls = {
        (point.attributes["gen_ai.tool.name"], point.attributes["toolbox.outcome"]): point.value
        for point in collector.points("toolbox.calls")
    }
    assert calls[("journey", "accepted")] == 1
    assert calls[("failing", "failed")] == 1
    jobs = collector.points("toolbox.jobs")
    assert [(point.attributes["toolbox.outcome"], point.value) for point in jobs] == [("completed", 1)]
    assert attempts(collector, "journey") == {("completed", ""): 1}
    for name in (
        "mcp.server.operation.duration",
        "mcp.client.operation.duration",
        "toolbox.job.duration",
        "toolbox.job.attempt.duration",
        "toolbox.job.queue.duration",
        "toolbox.service.request.duration",
    ):
        assert sum(point.count for point in collector.points(name)) >= 1, name
        assert collector.units()[name] == "s"

    # Nothing that was given to a tool, nor any secret, nor who called.
    assert SECRET.encode() not in collector.everything
    assert TOKEN.encode() not in collector.everything
    assert ID.encode() not in collector.everything
    for secret in settings_for(dataverse).values():
        assert secret.encode() not in collector.everything


def test_requests_of_a_tools_own_process_are_in_the_trace(
    folder: Folder, tmp_path: Path, azurite: Azurite, collector: Collector, dataverse: StandIn
) -> None:
    app = run(folder, tmp_path / "app", azurite, collector)
    try:
        caller = f"00-{'ef' * 16}-{'cd' * 8}-01"
        headers = {"X-MCP-Auth-Token": TOKEN, "traceparent": caller}
        job = app.ended(accepted(app, "apart", {"note": SECRET}, headers, authToken=SECRET))
        assert job["status"] == "completed", json.dumps(job)
        assert (job["result"]["rows"], job["result"]["more"]) == (1, 1)
        wait_until(lambda: [span for span in collector.spans() if span.name == "job.attempt apart"])
        wait_until(lambda: sum(p.count for p in collector.points("toolbox.service.request.duration")) >= 4)
        wait_until(lambda: len([s for s in collector.spans() if s.name == "dataverse.request GET"]) >= 4)
        spans = collector.spans()
    finally:
        assert app.stop() == 0
    assert {span.trace_id for span in spans} == {"ef" * 16}
    attempt = one(spans, "job.attempt apart")
    found = [span for span in spans if span.name == "dataverse.request GET"]
    (launched,) = [span for span in spans if span.name.startswith("mcp.call recorder_echo")]
    assert {span.parent for span in (*found, launched)} == {attempt.span_id}
    assert {span.resource["service.instance.id"] for span in found} == {attempt.resource["service.instance.id"]}
    told = {
        (span.attributes["url.template"], span.attributes["http.response.status_code"]): span for span in found
    }
    asked = {("accounts", 200), ("EntityDefinitions({key})", 200), ("accounts({key})", 404), ("contacts", 200)}
    assert set(told) == asked
    assert told["accounts({key})", 404].failed
    assert all(attempt.start <= span.start <= span.end <= attempt.end for span in found)
    # As Dataverse was told.
    seen = {request.headers.get("traceparent") for request in dataverse.requests()}
    assert {f"00-{span.trace_id}-{span.span_id}-01" for span in found} <= seen
    points = collector.points("toolbox.service.request.duration")
    assert sum(point.count for point in points) == 4
    assert {point.attributes["server.address"] for point in points} == {found[0].attributes["server.address"]}
    for secret in (SECRET, TOKEN, ID):
        assert secret.encode() not in collector.everything


def test_the_second_attempt_is_in_the_same_trace(
    folder: Folder, tmp_path: Path, azurite: Azurite, collector: Collector
) -> None:
    first = run(folder, tmp_path / "one", azurite, collector)
    try:
        job_id = accepted(first, "patient", {})
        wait_until(lambda: first.job(job_id).json()["progress"]["percent"] == 50)
        wait_until(lambda: [span for span in collector.spans() if span.name == "dataverse.request GET"])
    finally:
        first.process.kill()
        first.process.wait(10)
        first.http.close()
    second = run(folder, tmp_path / "two", azurite, collector)
    try:
        assert second.ended(job_id)["attempt"] == 2
        wait_until(lambda: len([span for span in collector.spans() if "job.attempt" in span.name]) >= 2)
        wait_until(lambda: collector.points("toolbox.workers.lost"))
        wait_until(lambda: len(attempts(collector, "patient")) >= 2)
    finally:
        assert second.stop() == 0
    spans = collector.spans()
    lost, done = sorted(
        (span for span in spans if span.name == "job.attempt patient"),
        key=lambda span: span.attributes["toolbox.job.attempt"],
    )
    submit = one(spans, "job.submit patient")
    assert {span.trace_id for span in spans} == {submit.trace_id}
    assert lost.parent == done.parent == submit.span_id
    assert (lost.attributes["error.type"], lost.attributes["toolbox.job.lost"]) == ("worker_lost", True)
    assert lost.resource["service.instance.id"] != submit.resource["service.instance.id"]
    assert [link.span_id for link in done.links] == [lost.span_id]
    # What the killed worker had asked for stands below its attempt, which others have told of.
    asked = [span for span in spans if span.name == "dataverse.request GET"]
    assert {span.parent for span in asked} == {lost.span_id, done.span_id}
    assert sum(point.value for point in collector.points("toolbox.workers.lost")) == 1
    assert attempts(collector, "patient") == {("failed", "worker_lost"): 1, ("completed", ""): 1}


def test_a_waiting_job_and_lost_log_lines_are_counted(
    folder: Folder, tmp_path: Path, azurite: Azurite, collector: Collector
) -> None:
    def ages() -> list[float]:
        return [point.value for point in collector.points("toolbox.queue.age")]

    # Nobody takes messages: the timer sees the job grow old.
    idle = run(folder, tmp_path / "idle", azurite, collector, **REAPER, **NO_WORKER)
    try:
        began = time.time()
        job_id = accepted(idle, "chatty", {"lines": 250})
        wait_until(lambda: any(age >= 2 for age in ages()))
        (age,) = ages()
        assert 2 <= age <= time.time() - began + 1
        assert (collector.units()["toolbox.queue.age"], idle.job(job_id).json()["status"]) == ("s", "pending")
    finally:
        assert idle.stop() == 0

    # The next app takes it, and the timer finds none that waits.
    busy = run(folder, tmp_path / "busy", azurite, collector, **REAPER)
    try:
        job = busy.ended(job_id)
        assert (job["status"], job["result"]) == ("completed", {"lines": 250})
        wait_until(lambda: 0.0 in ages())
        wait_until(lambda: collector.points("toolbox.log_lines.dropped"))
        wait_until(lambda: attempts(collector, "chatty"))
    finally:
        assert busy.stop() == 0
    # Dropped is everything before the newest 200 lines: of the tool's 250, and the app's own at start and end.
    assert [line["message"] for line in job["logs"][-3:-1]] == ["line 248", "line 249"]
    assert [line["seq"] for line in job["logs"]] == list(range(53, 253))
    dropped = [(point.attributes, point.value) for point in collector.points("toolbox.log_lines.dropped")]
    assert dropped == [({"gen_ai.tool.name": "chatty", "toolbox.record": "job"}, 52)]
    assert attempts(collector, "chatty") == {("completed", ""): 1}


def test_a_dead_collector_costs_no_call(folder: Folder, tmp_path: Path, azurite: Azurite) -> None:
    dead = Collector()
    with collecting() as gone:
        dead.url = gone.url
    app = run(folder, tmp_path / "app", azurite, dead)
    try:
        for _ in range(20):
            assert app.call("failing", {"note": "x"}, None)["isError"]
        wait_until(lambda: "could not be exported" in app.log.read_text())
        assert app.ended(accepted(app, "journey", {"note": "x"}))["status"] == "completed"
    finally:
        assert app.stop() == 0
    told = [line for line in app.log.read_text().splitlines() if "could not be exported" in line]
    assert len(told) <= 2  # spans and metrics, once a minute each
    assert "opentelemetry" not in app.log.read_text()
