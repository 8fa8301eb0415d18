"""The calls of envelope.json, against the same four tools here: how each is run, or why it is refused.

A call goes through `Invoker`, its job through `Worker`; what was used is read from the job's row.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.tool import ContractTool, find_contracts
from shared.errors import JobEndedError, ResultError
from shared.invoke import Invoker
from shared.jobs import answers, keys
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.store import Query
from shared.jobs.testing import MemoryJobStore
from shared.jobs.windowing import WindowStore
from shared.jobs.worker import Worker
from shared.redaction import REDACTED
from shared.tool.handler import ToolEntry
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject
from shared.web.windows import launch_context
from tests.unit.contract.pptb import load, write_tool

DOCUMENT = load("envelope.json")
CASES = {case["id"]: case for case in DOCUMENT["cases"]}
DEFECTS = {name for name, case in CASES.items() if "defect" in case}
SETTINGS = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
#: What an entry was told, by its own account: an answer does not repeat the call's token.
TOLD = "told.json"
ENTRY = f"""
import json, pathlib, time

def invokeHeadless(input, context):
    time.sleep(input.get("sleepMs", 0) / 1000)
    names = (
        "toolId", "toolName", "invocationMode", "authToken", "connectionId", "connectionUrl", "connectionName"
    )
    told = {{name: str(getattr(context, name)) for name in names if getattr(context, name) is not None}}
    new = pathlib.Path(__file__).with_name("new.json")
    new.write_text(json.dumps(told))
    new.rename(new.with_name({TOLD!r}))
    return {{"ok": True, "input": input, "context": told}}
"""

#: What a window's job is told by `Invoker`, and a person's browser by `WindowsApi`; each has a test of its own.
WINDOWS = ("p-default-window", "e-default", "q-windowed-wrong-output", "p-missing-required-output")
#: What a saved connection's own tokens are for: the APIs. A tool is never handed one, so `authToken` is absent.
CONNECTED = ("connection-one-way", "connection-near-expiry-renewed", "connection-unicode")
#: Without `defect`, and still otherwise here; each has a test of its own.
OTHERWISE = {
    "arguments-absent": "a declared defaultMode always wins; the original infers one-way in spite of it",
    "name-case-differs": "the host answers calls of unknown names; no trigger has this one",
    "q-windowed-launch-fails": "nothing is launched here: a person opens the window, or nobody does",
    "p-no-window-host": "there is a page for every call; nothing has to run on the person's machine",
}
KEPT = sorted(set(CASES) - DEFECTS - set(WINDOWS) - set(OTHERWISE) - set(CONNECTED))


@dataclass(frozen=True)
class Outcome:
    answer: ToolResult
    #: As it was stored, or None: no job was made.
    job: Job | None
    store: MemoryJobStore
    told: JsonObject | None
    #: What a window was launched with: its launch context.
    launched: JsonObject | None = None
    #: What was said about data that a window gave and that did not fit.
    faults: tuple[str, ...] = ()

    @property
    def used(self) -> JsonObject:
        assert self.job is not None, self.answer.text
        return {
            "executionMode": self.job.execution_mode,
            "mode": self.job.mode,
            "timeoutMs": self.job.timeout_ms,
        }


def saved_connection(known: JsonObject) -> JsonObject:
    """A connection of the original's, as this app saves it; it needs none of them to sign in here."""
    return {
        "id": known["id"],
        "name": known["name"],
        "url": known["url"],
        "auth": {"type": "default"},
    }


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for tool in DOCUMENT["tools"]:
            agents = tool["config"]["agents"]
            headless = agents.get("headless") or "headless" in agents.get("executionModes", [])
            write_tool(
                folder / tool["id"],
                tool["config"],
                display_name=tool["displayName"],
                page=True,
                entry=ENTRY if headless else None,
            )
        contracts = find_contracts(folder, max_timeout_ms=SETTINGS.max_timeout_ms)
        assert contracts.faults == []
        self.tools = {entry.spec.name: entry for _, entry in contracts.entries}
        self.store = MemoryJobStore()
        sealer = Sealer((bytes(32),))
        saved = ConnectionBook(json.dumps([saved_connection(known) for known in DOCUMENT["connections"]]))
        environments = Environments(saved)
        self.invoker = Invoker(SETTINGS, sealer, lambda: self.store, environments=environments)
        self.worker = Worker(self.tools, self.store, sealer, SETTINGS, environments=environments)

    def call(self, given: Any) -> Outcome:
        request = {"name": given["tool"], "transport": {"name": "http-streamable"}}
        if "arguments" in given:
            request["arguments"] = given["arguments"]
        payload = json.dumps(request)
        if "argumentsText" in given:
            payload = f'{payload[:-1]}, "arguments": {given["argumentsText"]}}}'

        async def main() -> ToolResult:
            answering = asyncio.create_task(self.invoker.answer(self.tools[given["tool"]], payload))
            while self.store.messages or not answering.done():
                if self.store.messages:
                    await self.worker.handle(self.store.messages.popleft())
                await asyncio.sleep(0.001)
            return await answering

        person = Person(given.get("window"), self.store, self.tools)

        async def with_person() -> ToolResult:
            acting = asyncio.create_task(person.act())
            answer = await main()
            if self.store.rows:
                await asyncio.wait_for(acting, 5)
            acting.cancel()
            await asyncio.wait((acting,))
            return answer

        answer = asyncio.run(with_person() if "window" in given else main())
        told = self.folder / given["tool"] / TOLD
        context = json.loads(told.read_text()) if told.exists() else None
        return Outcome(answer, self._job(), self.store, context, person.launched, tuple(person.faults))

    def _job(self) -> Job | None:
        partitions = {partition for partition, row_key in self.store.rows if row_key == keys.JOB_ROW}
        assert len(partitions) <= 1
        return next((self.store.get(keys.job_id_of(partition)) for partition in partitions), None)


class Person:
    """Opens the window of the only job there is, as its owner, and does what a case says."""

    def __init__(self, deed: Any, store: MemoryJobStore, tools: Mapping[str, ToolEntry]) -> None:
        self.launched: JsonObject | None = None
        self.faults: list[str] = []
        self._deed = deed or {}
        self._tools = tools
        self._store = store
        self._windows = WindowStore(store, Sealer((bytes(32),)))

    async def act(self) -> None:
        while not (found := self._store.scan(Query(), 1).jobs):
            await asyncio.sleep(0.001)
        (job,) = found
        if job.window is None:
            return
        inside, session = self._windows.open_for_owner(job.job_id, "default")
        self.launched = launch_context(inside)
        if "returns" not in self._deed:
            return
        tool = self._tools[job.tool_name]
        assert isinstance(tool, ContractTool)
        try:
            self._windows.give(job.job_id, session, lambda _: tool.check_returned(self._deed["returns"]))
        except ResultError as error:
            # The window shows it, and the call waits on: here for somebody who gives up.
            self.faults.append(error.message)
            self._windows.close(job.job_id, session)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(answers, "FIRST_POLL", 0.002)
    return Bench(tmp_path)


def filled(value: Any, job: Job) -> Any:
    """An expected acceptance with the job's id in its place, and the correlation id that ours has besides."""
    accepted = json.loads(json.dumps(value).replace("<jobId>", job.job_id))
    return {**accepted, "correlationId": f"mcp-{job.job_id}"}


def test_every_case_is_somewhere_and_every_defect_is_mended() -> None:
    assert set(MENDED) == DEFECTS
    assert set(WINDOWS) | set(OTHERWISE) <= set(CASES) - DEFECTS
    assert {*KEPT, *WINDOWS, *OTHERWISE, *MENDED, *CONNECTED} == set(CASES)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, bench: Bench) -> None:
    expected = CASES[name]["output"]
    outcome = bench.call(CASES[name]["input"])
    assert outcome.answer.is_error == expected["isError"], outcome.answer.text
    if expected["isError"]:
        assert outcome.answer.text == expected["text"]
        assert outcome.store.rows == {}
        return
    assert outcome.job is not None
    assert outcome.used == expected["used"]
    assert outcome.job.status is Status.COMPLETED
    result = expected.get("job", expected)["result"]
    assert outcome.told == result["context"]
    if "authToken" in result["context"]:
        result = {**result, "context": {**result["context"], "authToken": REDACTED}}
    assert answers.result_of(outcome.job, outcome.store).structured == result
    if "job" in expected:
        assert outcome.answer.structured == filled(expected["result"], outcome.job)
    else:
        assert outcome.answer.structured == result


@pytest.mark.parametrize("name", CONNECTED)
def test_a_saved_connection_is_told_but_not_its_token(name: str, bench: Bench) -> None:
    expected = CASES[name]["output"]
    outcome = bench.call(CASES[name]["input"])
    assert not outcome.answer.is_error, outcome.answer.text
    assert outcome.job is not None
    assert outcome.used == expected["used"]
    result = expected.get("job", expected)["result"]
    context = {key: value for key, value in result["context"].items() if key != "authToken"}
    assert outcome.told == context
    assert answers.result_of(outcome.job, outcome.store).structured == {**result, "context": context}
    if "job" in expected:
        accepted = {**expected["result"], "hasAuthToken": False}
        assert outcome.answer.structured == filled(accepted, outcome.job)


def both_are_used(outcome: Outcome) -> None:
    assert outcome.told is not None
    assert (outcome.told["authToken"], outcome.told["connectionName"]) == ("caller-token", "Dev Env")
    assert outcome.job is not None
    accepted = answers.acceptance(outcome.job).structured or {}
    assert (accepted["authSource"], accepted["connectionName"]) == ("provided-token", "Dev Env")


def refused(said: str) -> Callable[[Outcome], None]:
    """An error, and nothing was begun."""

    def check(outcome: Outcome) -> None:
        assert outcome.answer.is_error
        assert outcome.answer.text.startswith(said)
        assert outcome.store.rows == {}
        assert outcome.told is None

    return check


def launched_as(name: str, outcome: Outcome) -> None:
    """The window was told what the original tells it."""
    expected = CASES[name]["output"]["launch"]
    assert outcome.job is not None
    assert outcome.launched is not None
    context = dict(outcome.launched)
    how = context.pop("__pptb")
    assert context == expected["prefill"]
    assert how == {**expected["context"], "correlationId": outcome.job.correlation_id}
    assert how["expectsResponse"] is expected["returnExpected"]


def test_a_window_waits_as_long_as_the_app_says_where_nobody_says_otherwise(bench: Bench) -> None:
    """The original gives a person the two minutes that it gives a program."""
    name = "p-default-window"
    outcome = bench.call(CASES[name]["input"])
    launched_as(name, outcome)
    assert outcome.used == {**CASES[name]["output"]["used"], "timeoutMs": SETTINGS.window_timeout_ms}
    assert outcome.answer.structured == CASES[name]["output"]["result"]
    assert outcome.store.requests["send"] == 0


def test_a_one_way_window_is_accepted_at_once(bench: Bench) -> None:
    name = "e-default"
    outcome = bench.call(CASES[name]["input"])
    launched_as(name, outcome)
    assert outcome.job is not None
    expected = {**CASES[name]["output"]["result"], "correlationId": outcome.job.correlation_id}
    assert outcome.answer.structured is not None
    assert outcome.answer.structured.items() >= expected.items()
    assert outcome.answer.structured["window"]["state"] == "waiting"
    assert f"/#window={outcome.job.job_id}." in outcome.answer.structured["window"]["url"]


@pytest.mark.parametrize("name", ["q-windowed-wrong-output", "p-missing-required-output"])
def test_data_that_does_not_fit_is_told_to_the_person_and_can_be_corrected(name: str, bench: Bench) -> None:
    """The original ends the call with the text; here who gave it reads it, and the call goes on."""
    outcome = bench.call(CASES[name]["input"])
    launched_as(name, outcome)
    (fault,) = outcome.faults
    assert fault.startswith(CASES[name]["output"]["text"])
    assert outcome.answer.structured is not None
    assert outcome.answer.structured["status"] == "no_result"
    assert not outcome.answer.is_error


def completes(timeout_ms: int, mode: str = "two-way") -> Callable[[Outcome], None]:
    def check(outcome: Outcome) -> None:
        assert outcome.used == {"executionMode": "headless", "mode": mode, "timeoutMs": timeout_ms}
        assert outcome.job is not None
        assert outcome.job.status is Status.COMPLETED
        assert not outcome.answer.is_error
        assert outcome.answer.structured is not None
        assert outcome.answer.structured["ok"] is True

    return check


def one_millisecond(outcome: Outcome) -> None:
    """A positive number is legal, and milliseconds are whole: 0.5 counts as 1, which the work may just make."""
    assert outcome.used["timeoutMs"] == 1
    assert not outcome.answer.is_error or "timed out after 1 ms" in outcome.answer.text


def times_out(outcome: Outcome) -> None:
    """The answer says what happened, and which job it was in a field of its own."""
    job = outcome.job
    assert job is not None
    assert (job.status, job.error) == (Status.FAILED, "Headless execution timed out after 50 ms")
    assert outcome.answer.is_error
    assert outcome.answer.text == f"Headless execution timed out after 50 ms (job {job.job_id})"
    assert outcome.answer.meta == {
        "toolbox/jobId": job.job_id,
        "toolbox/statusUrl": f"/mcp/jobs/{job.job_id}/status",
        "toolbox/errorCode": "timeout",
    }


def the_last_one_counts_and_is_told(outcome: Outcome) -> None:
    """Any parser between the client and the app may have dropped the first one; the job says what counted."""
    completes(2000)(outcome)
    assert outcome.job is not None
    assert outcome.answer.meta["toolbox/jobId"] == outcome.job.job_id
    assert answers.status_body(outcome.job, [], None)["timeoutMs"] == 2000


def uses_the_connection_and_says_that_it_has_no_use_for_the_token(outcome: Outcome) -> None:
    launched_as("q-windowed-timeout-and-token", outcome)
    assert outcome.job is not None
    assert outcome.used == CASES["q-windowed-timeout-and-token"]["output"]["used"]
    assert outcome.answer.structured == {"ok": True}
    assert (outcome.job.connection_name, outcome.job.has_auth_token) == ("Dev Env", False)
    assert "caller-token" not in repr((outcome.launched, outcome.store.rows))
    accepted = answers.acceptance(replace(outcome.job, status=Status.PENDING), token_unused=True).structured
    assert accepted is not None
    assert accepted["authSource"] == "connection-name"
    assert "The authToken was not used" in accepted["message"]


def ends_the_job_and_takes_nothing_after_that(outcome: Outcome) -> None:
    launched_as("p-window-times-out", outcome)
    job = outcome.job
    assert job is not None
    assert (job.status, job.error_code) == (Status.FAILED, ErrorCode.TIMEOUT)
    assert outcome.answer.is_error
    text = CASES["p-window-times-out"]["output"]["text"]
    assert (job.error, outcome.answer.text) == (text, f"{text} (job {job.job_id})")
    windows = WindowStore(outcome.store, Sealer((bytes(32),)))
    with pytest.raises(JobEndedError, match="it is failed"):
        windows.open_for_owner(job.job_id, "default")


POSITIVE = "__pptb.timeoutMs: must be a positive number of milliseconds, got "
MENDED: dict[str, Callable[[Outcome], None]] = {
    "q-windowed-timeout-and-token": uses_the_connection_and_says_that_it_has_no_use_for_the_token,
    "p-window-times-out": ends_the_job_and_takes_nothing_after_that,
    "mode-illegal-word": refused("__pptb.mode: must be one of one-way, two-way, got 'async'"),
    "mode-upper-case": refused("__pptb.mode: must be one of one-way, two-way, got 'ONE-WAY'"),
    "exec-illegal-word": refused(
        "__pptb.executionMode: must be one of inline, headless, windowed, got 'background'"
    ),
    "timeout-zero": refused(f"{POSITIVE}0"),
    "timeout-negative": refused(f"{POSITIVE}-1"),
    "timeout-half": one_millisecond,
    "timeout-int32-plus-one": completes(SETTINGS.max_timeout_ms),
    "timeout-overflow-to-infinity": refused(f"{POSITIVE}a number that is not finite"),
    "timeout-duplicate-key": the_last_one_counts_and_is_told,
    "timeout-two-way-expires": times_out,
    "envelope-string": refused("__pptb: expected object, got string"),
    "token-blank": refused("__pptb.authToken: must have 1 to 16384 characters"),
    "connection-and-token": both_are_used,
    "connection-unknown-and-token": refused(
        "Failed to resolve authentication context: No saved connection found with name 'Staging'."
    ),
    # Null counts as absent, as in the envelope; the declared default mode is two-way.
    "arguments-null": completes(1500),
}


@pytest.mark.parametrize("name", MENDED)
def test_mended(name: str, bench: Bench) -> None:
    given = CASES[name]["input"]
    outcome = bench.call(given)
    MENDED[name](outcome)
    # What ran too long is still at work; its file would come after the test.
    deadline = time.monotonic() + 5
    ran = outcome.job is not None and outcome.job.window is None
    while ran and not (bench.folder / given["tool"] / TOLD).exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_arguments_may_be_absent_and_a_declared_default_mode_wins(bench: Bench) -> None:
    expected = CASES["arguments-absent"]["output"]
    outcome = bench.call(CASES["arguments-absent"]["input"])
    assert outcome.used == {**expected["used"], "mode": "two-way"}
    result = expected["job"]["result"]
    told = {**result["context"], "invocationMode": "two-way"}
    assert outcome.answer.structured == {**result, "context": told}


def test_the_same_call_one_way_is_answered_as_in_the_original(bench: Bench) -> None:
    expected = CASES["arguments-absent"]["output"]
    outcome = bench.call({"tool": "notify", "arguments": {"__pptb": {"mode": "one-way"}}})
    assert outcome.used == expected["used"]
    assert outcome.job is not None
    assert outcome.answer.structured == filled(expected["result"], outcome.job)
    assert answers.result_of(outcome.job, outcome.store).structured == expected["job"]["result"]


def test_a_name_of_another_case_is_no_tools(bench: Bench) -> None:
    assert CASES["name-case-differs"]["input"]["tool"] not in bench.tools
    assert sorted(bench.tools) == sorted(tool["id"] for tool in DOCUMENT["tools"])


def test_the_execution_mode_is_looked_at_before_the_mode(bench: Bench) -> None:
    """What `order-exec-before-mode` shows, without the option that is refused by name."""
    given = json.loads(json.dumps(CASES["order-exec-before-mode"]["input"]))
    del given["arguments"]["__pptb"]["connectionName"]
    refused(CASES["order-exec-before-mode"]["output"]["text"])(bench.call(given))


def test_faults_of_the_input_come_before_every_fault_of_the_options(bench: Bench) -> None:
    envelope = {"mode": 1, "timeoutMs": -1, "connectionName": "x", "other": 1}
    outcome = bench.call({"tool": "query-runner", "arguments": {"top": "x", "__pptb": envelope}})
    text = "Input validation failed: $.entityName: required field is missing; $.top: expected number"
    refused(text)(outcome)
    assert "__pptb" not in outcome.answer.text


def test_what_is_said_about_illegal_options_does_not_repeat_the_token(bench: Bench) -> None:
    envelope = {"authToken": " caller-token ", "mode": "caller-token", "caller-token": 1}
    outcome = bench.call({"tool": "notify", "arguments": {"__pptb": envelope}})
    refused(f"__pptb: unknown field '{REDACTED}'")(outcome)
    assert "caller-token" not in repr(outcome.answer)
