"""What the invocation log says of each kind of call; and that no secret gets into it, storage or logs."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import azure.functions as func
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.envelope import CallPlan
from shared.invocations.log import InvocationLog
from shared.invocations.record import Record
from shared.invoke import Invoker
from shared.jobs import answers
from shared.jobs.cancel import cancel
from shared.jobs.model import Job, claim, utc_now
from shared.jobs.outcome import job_record
from shared.jobs.payload import Sealer
from shared.jobs.repair import repaired
from shared.jobs.submit import submit
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.redaction import REDACTED
from shared.tool import Context, McpTextContent, McpToolResponse, ToolError, tool
from shared.tool.decorator import DecoratedTool, declared
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.invocations.test_log import Memory

OWNER_TOKEN = "sentinel-owner-token"
BOTH: Any = {
    "modes": ("one-way", "two-way"),
    "default_mode": "two-way",
    "execution_modes": ("inline", "headless"),
}


class Bench:
    def __init__(self, function: Callable[..., Any], **settings: str) -> None:
        entry = declared(tool(name="work", description="Works.", **BOTH)(function))
        assert entry is not None
        self.entry: DecoratedTool = entry
        self.settings = app_settings.load(
            {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "MCP_AUTH_TOKENS": OWNERS, **settings}
        )
        self.jobs = MemoryJobStore()
        self.invocations = Memory()
        self.log = InvocationLog(lambda: self.invocations, flush_every=60)
        sealer = Sealer((bytes(32),))
        environments = Environments(ConnectionBook(self.settings.connections))
        self.invoker = Invoker(self.settings, sealer, lambda: self.jobs, self.log, environments)
        self.worker = Worker(
            {"work": self.entry}, self.jobs, sealer, self.settings, self.log, environments=environments
        )

    def call(self, arguments: Any, headers: Any = None) -> Any:
        """The answer as the host gets it."""
        payload: dict[str, Any] = {"name": "work", "arguments": arguments}
        told = {"x-mcp-auth-token": OWNER_TOKEN} if headers is None else headers
        payload["transport"] = {"name": "http-streamable", "properties": {"headers": told}}
        trigger = self.invoker.trigger(self.entry)

        class Invocation:
            invocation_id = "host-id"
            function_name = "tool_work"
            trace_context = None

        invocation: Any = Invocation()

        async def main() -> str:
            answering = asyncio.create_task(_awaited(trigger, json.dumps(payload), invocation))
            while not answering.done() or self.jobs.messages:
                if self.jobs.messages:
                    await self.worker.handle(self.jobs.messages.popleft())
                await asyncio.sleep(0.001)
            return await answering

        answer = json.loads(asyncio.run(main()))
        self.log.flush()
        return answer

    @property
    def record(self) -> Record:
        (record,) = [record for batch in self.invocations.batches for record in batch]
        return record

    @property
    def job_record(self) -> Record:
        ids = [row["jobId"] for row in self.jobs.rows.values() if "jobId" in row]
        job = self.jobs.get(ids[0])
        assert job is not None
        return job_record(job)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """This module's records in the log. Threads of other tests may write theirs there too."""
    told = [json.loads(line.getMessage()) for line in caplog.records if line.name == "toolbox.invocation"]
    return [line for line in told if line.get("owner") == "calls-owner"]


async def _awaited(trigger: Any, payload: str, invocation: func.Context) -> str:
    return str(await trigger(payload, invocation))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "FIRST_POLL", 0.005)


OWNERS = json.dumps({"calls-owner": OWNER_TOKEN})


def test_an_inline_call_that_completes() -> None:
    before = time.time()
    bench = Bench(lambda: "ok")
    bench.call({})
    record = bench.record
    assert (record.tool_name, record.owner, record.outcome) == ("work", "calls-owner", "completed")
    assert (record.mode, record.execution_mode) == ("two-way", "inline")
    assert (record.invocation_id, record.job_id, record.error) == ("host-id", "", "")
    assert before - 1 < record.time.timestamp() < time.time() + 1


def test_the_summary_shows_what_came_not_what_the_tool_made_of_it() -> None:
    def work(items: list[str], password: str) -> str:
        items.clear()
        return "ok"

    bench = Bench(work)
    bench.call({"items": ["a", "b"], "password": "hunter2-hunter2", "__pptb": {"timeoutMs": 1000}})
    assert bench.record.prefill_summary == f'{{"items":["a","b"],"password":"{REDACTED}"}}'


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_summary_is_short_whatever_the_input_is(size: int) -> None:
    bench = Bench(_take)
    bench.call({"text": "x" * size, "token": "a-secret-token"})
    assert len(bench.record.prefill_summary) <= 203
    assert bench.record.prefill_summary.startswith('{"text":"xxxxxxxxxx')


def _take(text: str, token: str = "") -> str:
    return "ok"


def test_a_tool_that_fails() -> None:
    def work() -> str:
        raise ToolError("no such table")

    bench = Bench(work)
    bench.call({})
    assert (bench.record.outcome, bench.record.error) == ("failed", "no such table")
    assert bench.record.error_code == "tool_error"


def test_a_tool_that_answers_with_an_error_has_failed_too() -> None:
    bench = Bench(lambda: McpToolResponse([McpTextContent("it broke")], is_error=True))
    bench.call({})
    assert (bench.record.outcome, bench.record.error) == ("failed", "it broke")


def test_a_call_past_its_time_has_failed() -> None:
    async def work() -> str:
        await asyncio.Event().wait()
        return "never"

    bench = Bench(work)
    bench.call({"__pptb": {"timeoutMs": 20}})
    assert (bench.record.outcome, bench.record.error_code) == ("failed", "timeout")
    assert bench.record.duration_ms >= 20


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"n": "x"}, "invalid_input"),
        ({"n": 1, "when": "no date"}, "invalid_input"),
        ({"n": 1, "__pptb": {"mode": "odd"}}, "invalid_envelope"),
        ({"n": 1, "__pptb": {"executionMode": "windowed"}}, "unsupported_mode"),
    ],
)
def test_a_refused_call_is_rejected_and_the_tool_never_ran(arguments: Any, code: str) -> None:
    from datetime import datetime

    def work(n: int, when: datetime | None = None) -> None:
        raise AssertionError

    work.__annotations__ = {"n": int, "when": datetime | None, "return": None}
    bench = Bench(work)
    bench.call(arguments)
    assert (bench.record.outcome, bench.record.error_code) == ("rejected", code)
    assert bench.record.owner == "calls-owner"


def test_a_wrong_token_is_rejected_and_names_no_owner() -> None:
    bench = Bench(lambda: "ok")
    bench.call({}, {"x-mcp-auth-token": "wrong-token"})
    assert (bench.record.outcome, bench.record.owner) == ("rejected", "")
    assert "wrong-token" not in repr(bench.record)


@pytest.mark.parametrize("mode", ["one-way", "two-way"])
def test_a_jobs_record_is_its_row_and_says_how_it_has_ended(mode: str) -> None:
    def work(n: int) -> str:
        raise ToolError("no such table")

    bench = Bench(work)
    bench.call({"n": 5, "__pptb": {"mode": mode, "executionMode": "headless"}})
    assert bench.invocations.batches == []
    record = bench.job_record
    assert (record.outcome, record.error, record.mode) == ("failed", "no such table", mode)
    assert (record.prefill_summary, record.owner) == ('{"n":5}', "calls-owner")
    assert record.fields()["correlationId"] == f"mcp-{record.job_id}"


def test_each_call_and_each_jobs_end_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(lambda: "ok")
    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        bench.call({})
        bench.call({"__pptb": {"mode": "one-way", "executionMode": "headless"}})
        bench.call({"__pptb": {"mode": "two-way", "executionMode": "headless"}})
    lines = lines_of(caplog)
    assert [line["outcome"] for line in lines if "jobId" not in line] == ["completed"]
    jobs: dict[str, list[str]] = {}
    for line in lines:
        if "jobId" in line:
            jobs.setdefault(line["jobId"], []).append(line["outcome"])
    # A job that was waited for is told of once; one that was accepted, once more when it has ended.
    assert sorted(map(sorted, jobs.values())) == [["accepted", "completed"], ["completed"]]
    assert len({line["correlationId"] for line in lines}) == 3


def test_a_job_that_ends_without_a_worker_is_told_of_as_well(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(lambda: "ok")
    entry = bench.entry.spec

    async def pending() -> Job:
        plan = CallPlan(Mode.ONE_WAY, ExecutionMode.HEADLESS, 1_000)
        return await submit(entry, {}, plan, owner="calls-owner", store=bench.jobs, sealer=Sealer((bytes(32),)))

    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        cancelled = asyncio.run(pending())
        cancel(cancelled.job_id, "calls-owner", bench.jobs)
        lost = bench.jobs.write(claim(asyncio.run(pending()), utc_now(), 0))
        assert repaired(lost, bench.jobs).status.terminal
    lines = lines_of(caplog)
    told = [(line["jobId"], line["outcome"], line["errorCode"]) for line in lines]
    assert told == [(cancelled.job_id, "failed", "cancelled"), (lost.job_id, "failed", "worker_lost")]


# Secrets.

WORD = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=16, max_size=40)
ODD = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FFF, exclude_categories=["Cs", "Cc"]), min_size=12
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    under_key=st.one_of(WORD, ODD).map("k{}".format),
    auth_token=WORD.map("a{}".format),
    header=WORD.map("h{}".format),
    shaped=WORD.map("s{}".format),
    key=st.sampled_from(["password", "clientSecret", "api_key", "Authorization", "connectionString", "pwd"]),
    shape=st.sampled_from(
        ["Bearer {}", "https://h/c?sig={}", "AccountKey={};", "eyJhbGciOiJub25l.{}.x", "postgres://u:{}@h/d"]
    ),
    execution=st.sampled_from(["inline", "headless"]),
    fails=st.booleans(),
)
def test_a_secret_is_found_nowhere(
    under_key: str,
    auth_token: str,
    header: str,
    shaped: str,
    key: str,
    shape: str,
    execution: str,
    fails: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The tool says all it knows in its log, its progress and its error; it just does not return it."""
    caplog.clear()
    text = shape.format(shaped)

    def work(data: dict[str, Any], context: Context) -> str:
        told = f"{data} {json.dumps(data)} {context.auth_token} {header} {text} {data['nested'][key]}"
        context.logger.error(told)
        context.logger.info({"all": told})
        context.update_progress(50, told)
        logging.getLogger("toolbox.tool").info("the tool's own logger is its own business")
        if fails:
            raise RuntimeError(told)
        return "ok"

    bench = Bench(work)
    arguments = {
        "data": {"nested": {key: under_key}, "note": text},
        "__pptb": {"authToken": auth_token, "executionMode": execution, "mode": "two-way"},
    }
    with caplog.at_level(logging.DEBUG):
        answered = bench.call(arguments, {"x-mcp-auth-token": OWNER_TOKEN, "Authorization": f"Bearer {header}"})
    places = {
        "rows": repr(bench.jobs.rows),
        "blobs": repr(bench.jobs.blobs),
        "records": repr(bench.invocations.batches),
        "messages": repr(bench.jobs.messages),
        "logs": caplog.text,
        "answer": json.dumps(answered, ensure_ascii=False),
    }
    binary = b"".join(
        bytes(value) for row in bench.jobs.rows.values() for value in row.values() if isinstance(value, bytes)
    )
    places["log chunks"] = binary.decode("utf-8", "replace")
    for place, content in places.items():
        for secret in (under_key, auth_token, shaped, header, OWNER_TOKEN):
            forms = {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]}
            forms.add(base64.b64encode(secret.encode()).decode())
            for form in forms:
                assert form not in content, (place, form)


@pytest.mark.parametrize("execution", ["inline", "headless"])
@pytest.mark.parametrize("name", ["X-Api-Key", "Ocp-Apim-Subscription-Key", "Cookie", "X-Functions-Key"])
def test_what_a_header_holds_is_found_nowhere(
    name: str, execution: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A job's worker never sees the request, and knows what its headers held all the same."""
    secret = "value-of-that-header"

    def work(context: Context) -> str:
        context.logger.error(f"got {secret}")
        context.update_progress(50, f"half of {secret}")
        raise RuntimeError(f"no use: {secret}")

    bench = Bench(work)
    asked = {"__pptb": {"executionMode": execution, "mode": "two-way"}}
    with caplog.at_level(logging.DEBUG):
        answered = bench.call(asked, {"x-mcp-auth-token": OWNER_TOKEN, name: secret})
    record = bench.record if execution == "inline" else bench.job_record
    assert record.error == f"Tool 'work' failed: RuntimeError: no use: {REDACTED}"
    places = [repr(bench.jobs.rows), repr(bench.jobs.blobs), repr(bench.invocations.batches), caplog.text]
    assert not [place for place in (*places, json.dumps(answered)) if secret in place]


def test_which_connection_a_call_names_is_not_in_its_error() -> None:
    bench = Bench(lambda: "ok")
    answered = bench.call({"__pptb": {"connectionName": "Contoso Prod"}})
    told = "Failed to resolve authentication context: No saved connection found with name '{}'."
    assert bench.record.error == told.format(REDACTED)
    # Who called knows the name, and is helped by it.
    assert told.format("Contoso Prod") in answered["content"]


@pytest.mark.parametrize("execution", ["inline", "headless"])
def test_a_tools_error_is_logged_without_the_connection_it_names(
    execution: str, caplog: pytest.LogCaptureFixture
) -> None:
    saved = {
        "id": "conn-id-1234",
        "name": "Contoso Prod",
        "url": "https://contoso.crm.dynamics.com",
        "auth": {"type": "default"},
        "owners": ["calls-owner"],
    }

    def work() -> str:
        raise ToolError(f"{saved['url']} is not reached as {saved['name']} ({saved['id']})")

    bench = Bench(work, CONNECTIONS=json.dumps([saved]))
    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        bench.call({"__pptb": {"connectionName": "contoso prod", "executionMode": execution}})
    (line,) = [line for line in lines_of(caplog) if line["outcome"] == "failed"]
    assert line["error"] == f"{REDACTED} is not reached as {REDACTED} ({REDACTED})"


@pytest.mark.parametrize("execution", ["inline", "headless"])
def test_the_token_of_a_call_is_not_stored_beside_what_is_sealed(execution: str) -> None:
    token = "token-of-this-call"
    seen: list[str | None] = []

    def work(context: Context) -> str:
        seen.append(context.auth_token)
        return "ok"

    bench = Bench(work)
    written: list[str] = []
    create = bench.jobs.create

    def kept(job: Job, sealed: bytes) -> Job:
        written.append(repr((job, sealed)))
        return create(job, sealed)

    bench.jobs.create = kept  # type: ignore[method-assign]
    bench.call({"__pptb": {"authToken": token, "executionMode": execution, "mode": "two-way"}})
    assert seen == [token]
    assert len(written) == (execution == "headless")
    assert not [place for place in (*written, repr(bench.invocations.batches)) if token in place]
