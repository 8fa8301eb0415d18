"""`job_status`, `job_cancel` and `job_list`, called as a client's call reaches them."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from shared.builtin.job_tools import job_tools
from shared.invoke import Invoker
from shared.jobs import keys, model, view
from shared.jobs.model import ErrorCode, Job
from shared.tool import McpImageContent, McpToolResponse
from shared.tool.decorator import declared
from shared.tool.result import ToolResult
from tests.unit.jobs.bench import SEALER, Bench
from tests.unit.web.support import OTHER, SETTINGS


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "FIRST_POLL", 0.005)
    monkeypatch.setattr(view, "LAST_POLL", 0.01)


class Agent:
    """Calls the tools of a bench's app. Each call says how many storage requests it took."""

    def __init__(self, bench: Bench) -> None:
        self.store = bench.store
        invoker = Invoker(SETTINGS, SEALER, lambda: bench.store)
        entries = [declared(function) for function in job_tools(lambda: bench.store, SEALER)]
        self.entries = {entry.spec.name: entry for entry in entries if entry is not None}
        self._answer = invoker.answer
        self.took = 0

    async def send(self, name: str, token: str | None = None, **arguments: Any) -> ToolResult:
        headers = {} if token is None else {"X-MCP-Auth-Token": token}
        payload = {"name": name, "arguments": arguments, "transport": {"properties": {"headers": headers}}}
        before = self.store.requests.total()
        result = await self._answer(self.entries[name], json.dumps(payload))
        self.took = self.store.requests.total() - before
        if not result.is_error:
            schema = self.entries[name].spec.result_schema
            assert schema is not None
            jsonschema.Draft202012Validator.check_schema(schema)
            jsonschema.validate(result.structured, schema)
        return result

    def __call__(self, name: str, token: str | None = None, **arguments: Any) -> Any:
        """The structured answer, or the error's text."""
        result = asyncio.run(self.send(name, token, **arguments))
        return result.text if result.is_error else result.structured


def running(bench: Bench) -> Job:
    return bench.store.write(model.claim(bench.job(bench.submit()), model.utc_now(), 60_000))


def test_a_job_of_every_state_fits_what_is_published() -> None:
    def work(how: str) -> McpToolResponse:
        if how == "fails":
            raise ValueError("no")
        return McpToolResponse(
            content=[McpImageContent(data=b"x", mime_type="image/png")], structured_content={"n": 1}
        )

    bench = Bench(work)
    agent = Agent(bench)
    fails, ends = bench.submit({"how": "fails"}), bench.submit({"how": "ends"})
    for _ in range(2):
        bench.deliver()
    runs, waits = running(bench), bench.submit({"how": "waits"})
    for job, status in ((fails, "failed"), (ends, "completed"), (runs, "in_progress"), (waits, "pending")):
        found = agent("job_status", jobId=job.job_id)
        assert (found["jobId"], found["status"]) == (job.job_id, status)
    assert agent("job_status", jobId=ends.job_id)["result"] == {"n": 1}
    assert agent("job_status", jobId=ends.job_id)["content"][0]["type"] == "image"
    assert agent("job_status", jobId=fails.job_id)["errorCode"] == "tool_error"
    assert {job["jobId"] for job in agent("job_list")["jobs"]} == {
        job.job_id for job in (waits, runs, ends, fails)
    }


@pytest.mark.parametrize("value", [None, 0, "", [], {}, [1, "a"], 1.5, False])
def test_any_result_of_a_job_is_shown_as_it_is(value: Any) -> None:
    def work() -> Any:
        return {"value": value}

    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    assert Agent(bench)("job_status", jobId=job.job_id)["result"] == {"value": value}


def test_everybody_sees_their_own_jobs() -> None:
    bench = Bench(lambda: None)
    agent = Agent(bench)
    job = running(bench)
    for name in ("job_status", "job_cancel"):
        assert agent(name, OTHER, jobId=job.job_id) == "Job not found"
        assert agent(name, OTHER, jobId=keys.new_job_id()) == "Job not found"
    assert agent("job_list", OTHER) == {"jobs": []}
    assert len(agent("job_list")["jobs"]) == 1
    assert bench.job(job) == job


@pytest.mark.parametrize("name", ["job_status", "job_cancel"])
@pytest.mark.parametrize(
    "job_id", ["", "x", "../x", "01A229B6-94EC-75FD-A4A6-1BECEA00C572", "a' or 1 eq 1", "é"]
)
def test_a_malformed_id_is_not_found_without_asking_storage(name: str, job_id: str) -> None:
    agent = Agent(Bench(lambda: None))
    assert agent(name, jobId=job_id) == "Job not found"
    assert agent.took == 0


def test_a_wrong_token_is_refused_not_downgraded() -> None:
    agent = Agent(Bench(lambda: None))
    for name, arguments in (("job_status", {"jobId": "x"}), ("job_cancel", {"jobId": "x"}), ("job_list", {})):
        assert "Unauthorized" in agent(name, "wrong", **arguments)
        assert agent.took == 0


def test_status_waits_for_the_next_change_or_the_end() -> None:
    bench = Bench(lambda: "done")
    agent = Agent(bench)
    job = bench.submit()

    async def both() -> ToolResult:
        waiting = asyncio.create_task(agent.send("job_status", jobId=job.job_id, waitMs=20_000))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        found = bench.job(job)
        bench.store.write(replace(found, nonce="x"))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))
        return await waiting

    seen = asyncio.run(both()).structured
    assert seen is not None
    assert seen["status"] == "in_progress"
    started = time.monotonic()
    assert agent("job_status", jobId=job.job_id, waitMs=50)["status"] == "in_progress"
    assert time.monotonic() - started >= 0.05
    bench.store.write(model.fail(bench.job(job), model.utc_now(), ErrorCode.TIMEOUT, "late"))
    assert agent("job_status", jobId=job.job_id, waitMs=25_000)["status"] == "failed"
    assert agent.took == 1


def test_status_gives_only_newer_lines() -> None:
    bench = Bench(lambda: None)
    agent = Agent(bench)
    job = bench.submit()
    bench.deliver()
    whole = agent("job_status", jobId=job.job_id)["logs"]
    assert [line["seq"] for line in whole] == [1, 2]
    assert agent("job_status", jobId=job.job_id, logsAfter=1)["logs"] == whole[1:]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("job_status", {}, "$.jobId"),
        ("job_status", {"jobId": "x", "waitMs": 25_001}, "$.waitMs: must be at most 25000"),
        ("job_status", {"jobId": "x", "waitMs": -1}, "$.waitMs"),
        ("job_status", {"jobId": "x", "logsAfter": -1}, "$.logsAfter"),
        ("job_list", {"limit": 101}, "$.limit: must be at most 100"),
        ("job_list", {"status": "done"}, "$.status"),
        ("job_list", {"cursor": "made up"}, "cursor: must be one that an earlier page gave"),
    ],
)
def test_a_wrong_argument_is_named(name: str, arguments: dict[str, Any], said: str) -> None:
    agent = Agent(Bench(lambda: None))
    assert said in agent(name, **arguments)
    assert agent.took == 0


def test_cancel_says_what_became_of_the_job() -> None:
    bench = Bench(lambda: None)
    agent = Agent(bench)
    waits, runs = bench.submit(), running(bench)
    assert agent("job_cancel", jobId=waits.job_id)["errorCode"] == "cancelled"
    assert agent("job_cancel", jobId=runs.job_id)["cancelRequested"] is True
    told = asyncio.run(agent.send("job_cancel", jobId=waits.job_id))
    assert (told.is_error, told.text) == (True, "The job has ended already: it is failed.")
    assert told.meta["toolbox/errorCode"] == "job_ended"


def test_the_list_goes_on_with_its_cursor_and_nobody_elses() -> None:
    bench = Bench(lambda: None)
    agent = Agent(bench)
    jobs = [bench.submit().job_id for _ in range(5)]
    found: set[str] = set()
    page = agent("job_list", limit=2)
    while "cursor" in page:
        found |= {job["jobId"] for job in page["jobs"]}
        assert "cursor: must be" in agent("job_list", OTHER, cursor=page["cursor"])
        page = agent("job_list", limit=2, cursor=page["cursor"])
    assert found | {job["jobId"] for job in page["jobs"]} == set(jobs)
    assert agent("job_list", tool="other") == {"jobs": []}
    assert len(agent("job_list", tool="work", status="pending")["jobs"]) == 5
