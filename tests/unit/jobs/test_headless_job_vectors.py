"""The cases of headless.json that are about jobs: the answer, the job's record, and what pollers saw.

Each runs as it would in the app, from `pptb.config.json` and an entry file through `Invoker` and `Worker`.
Which entry is found and what a result is worth is in `contract/test_headless_vectors.py`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared.contract.tool import check_contract
from shared.invoke import Invoker
from shared.jobs import answers, keys, recorder
from shared.jobs.outcome import job_record
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject
from tests.unit.contract.test_headless_vectors import CASES, DEFAULTS, LATER, RAN, python_name, ran, write

DEFECTS = {name for name in LATER if "defect" in CASES[name]}
TOKEN = "caller-token-1"
#: How an entry's work came to its end, also when nobody waits for it any more.
ENDED = "ended.txt"
#: Made when a job has ended, for an entry that is still at work.
LATE = "late"
PATIENCE = 10.0
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

PRELUDE = """
import json, pathlib, time

HERE = pathlib.Path({here!r})

def poll(label):
    "Waits until the test has asked for the job's status."
    (HERE / f"poll-{{label}}").touch()
    wait_for(f"polled-{{label}}")

def wait_for(name):
    deadline = time.monotonic() + {patience}
    while not (HERE / name).exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {{name}}")
        time.sleep(0.002)

def invokeHeadless(input, context):
    with (HERE / {ran!r}).open("a") as log:
        log.write({file!r} + chr(10))
    how = "returned"
    try:
        return work(input, context)
    except BaseException as error:
        how = type(error).__name__
        raise
    finally:
        (HERE / "ending").write_text(how)
        (HERE / "ending").rename(HERE / {ended!r})

def work(input, context):
"""


def code(folder: Path, file: str, steps: list[Any]) -> str:
    """A Python entry that does what the case's entry does."""
    lines = [PRELUDE.format(here=str(folder), patience=PATIENCE, ran=RAN, file=file, ended=ENDED)]
    lines += [f"    {line}" for step in steps for line in _lines(*next(iter(step.items())))]
    return "\n".join([*lines, "    return None", ""])


def _lines(kind: str, value: Any) -> list[str]:
    match kind:
        case "progress":
            # An argument that a JavaScript caller leaves out is undefined there: None here.
            return [f"context.updateProgress(*{value or [None]!r})"]
        case "wait":
            # Longer than the job's timeout in every case, and until the test has seen the job end.
            return [f"time.sleep({value / 1000})", f"wait_for({LATE!r})"]
        case "poll":
            return [f"poll({value!r})"]
        case "throw":
            return [f"raise RuntimeError({value!r})"]
        case "throwValue":
            return [f"raise Exception({value!r})"]
        case "throwWithToken":
            return [f"raise RuntimeError({value!r}.replace('{{authToken}}', context.authToken))"]
        case "return":
            return [f"return json.loads({json.dumps(value)!r})"]
        case "returnSpecial" if value == "circular":
            return ["itself = {}", "itself['itself'] = itself", "return itself"]
    raise AssertionError(kind)


@dataclass(frozen=True)
class Outcome:
    answer: ToolResult
    #: What `GET /mcp/jobs/{id}/status` tells.
    status: JsonObject
    polls: dict[str, JsonObject] = field(default_factory=dict)

    @property
    def job_id(self) -> str:
        return str(self.status["jobId"])


class Bench:
    """One contract tool, and the engine on a store in memory."""

    def __init__(self, folder: Path, given: Any, **settings: str) -> None:
        files = {
            name: {"text": code(folder, python_name(name), content["steps"])}
            for name, content in given["files"].items()
        }
        found = check_contract(write(folder, {**given, "files": files}))
        assert found.tool is not None, found.errors
        self.folder = folder
        self.tool = found.tool
        loaded = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", **settings})
        self.store = MemoryJobStore()
        sealer = Sealer((bytes(32),))
        self.invoker = Invoker(loaded, sealer, lambda: self.store)
        self.worker = Worker({self.tool.spec.name: self.tool}, self.store, sealer, loaded)

    def answer(self, arguments: Any) -> asyncio.Task[ToolResult]:
        payload = json.dumps({"name": self.tool.spec.name, "arguments": arguments})
        return asyncio.create_task(self.invoker.answer(self.tool, payload))

    async def take(self) -> None:
        """Hands the one message to the worker."""
        await until(lambda: bool(self.store.messages))
        assert self.store.messages, "no job was made"
        await self.worker.handle(self.store.messages.popleft())

    def run(self, arguments: Any, polls: dict[str, Any]) -> Outcome:
        async def main() -> Outcome:
            answering, working = self.answer(arguments), asyncio.create_task(self.take())
            seen = {label: await self._poll(label, wanted) for label, wanted in polls.items()}
            await working
            return Outcome(await answering, self.status(), seen)

        return asyncio.run(main())

    async def _poll(self, label: str, wanted: Any) -> JsonObject:
        """What a poller sees while the entry waits; reports are written a moment after they were made."""
        await until((self.folder / f"poll-{label}").exists)

        def seen() -> JsonObject:
            status = self.status()
            return {"status": status["status"], "progress": status["progress"]}

        await until(lambda: seen() == wanted, seconds=2)
        last = seen()
        (self.folder / f"polled-{label}").touch()
        return last

    def log(self) -> JsonObject:
        """The call's record in the invocation log: the job's row."""
        job = self.store.get(self.status()["jobId"])
        assert job is not None
        return job_record(job).fields()

    def status(self) -> JsonObject:
        (partition,) = {partition for partition, row_key in self.store.rows if row_key == keys.JOB_ROW}
        found = self.store.with_logs(keys.job_id_of(partition))
        assert found is not None
        job, logs = found
        result = answers.result_of(job, self.store) if job.result else None
        body: JsonObject = json.loads(json.dumps(answers.status_body(job, logs, result), allow_nan=False))
        return body


async def until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Waits until something holds, or time is up: what is asserted afterwards says what was missing."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        await asyncio.sleep(0.002)


@dataclass(frozen=True)
class Mended:
    """What is better here. A job that fails has `error` and `code`; one that completes has neither."""

    error: str = ""
    code: str = "tool_error"
    percent: int = 0
    polls: dict[str, tuple[int, str]] = field(default_factory=dict)
    ended: str = "returned"


RAISED = "Tool 'tool-1' failed: "
MENDED = {
    "output-circular-one-way": Mended(
        "the result refers to itself, or is nested too deeply", code="invalid_result"
    ),
    "throws-error": Mended(f"{RAISED}RuntimeError: table not found", ended="RuntimeError"),
    "throws-error-one-way": Mended(f"{RAISED}RuntimeError: table not found", percent=40, ended="RuntimeError"),
    # Python raises exceptions only; what one of them carries is shown.
    "throws-object": Mended(f"{RAISED}Exception: {{'code': 5}}", ended="Exception"),
    "throws-empty-message": Mended(f"{RAISED}RuntimeError", ended="RuntimeError"),
    "throws-with-token": Mended(f"{RAISED}RuntimeError: login failed with [redacted]", ended="RuntimeError"),
    # Neither an odd percent nor a message left out changes what was reported before.
    "progress-not-a-number": Mended(
        percent=100, polls={"a": (0, "m"), "b": (0, "m"), "c": (0, "n"), "d": (0, "text")}
    ),
    "progress-kept-on-failure": Mended(f"{RAISED}RuntimeError: stop", percent=66, ended="RuntimeError"),
    "progress-message-not-text": Mended(percent=100, polls={"a": (10, "{'a': 1}"), "b": (20, "7")}),
    # Its next report stops it; one that reports nothing runs on, and its result changes nothing.
    "timeout-late-result": Mended(
        "Headless execution timed out after 100 ms", code="timeout", ended="JobCancelledError"
    ),
    "timeout-two-way": Mended("Headless execution timed out after 120 ms", code="timeout"),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "FIRST_POLL", 0.01)
    monkeypatch.setattr(recorder, "FLUSH_EVERY", 0.02)


def test_every_case_is_somewhere_and_every_defect_is_mended() -> None:
    assert set(MENDED) == DEFECTS


def expected(name: str, job_id: str) -> JsonObject:
    """The case's output, with the job's id in its place."""
    output: JsonObject = json.loads(json.dumps(CASES[name]["output"]).replace("<jobId>", job_id))
    accepted = output["call"].get("result", {})
    if accepted.get("status") == "accepted":
        accepted["correlationId"] = f"mcp-{job_id}"
    return output


def check_log(log: JsonObject, wanted: JsonObject, error: str) -> None:
    """One record, which says how the job has ended; in the original it says how the call was answered."""
    first = wanted["log"][0]
    assert log["outcome"] == ("failed" if error else "completed")
    assert log["mode"] == first["invocationMode"]
    assert log["executionMode"] == "headless"
    assert log["prefillSummary"] == first["prefillSummary"]
    assert log["correlationId"] == f"mcp-{log['jobId']}"
    assert log.get("error", "") == error
    assert log["durationMs"] >= 0


def check_record(status: JsonObject, wanted: JsonObject) -> None:
    """Ours says more; what the original says, it says too. `<timestamp>`: any."""
    for key, value in wanted.items():
        if value == "<timestamp>":
            assert STAMP.fullmatch(status[key]), key
        else:
            assert status[key] == value, key
    assert ("result" in status, "error" in status) == ("result" in wanted, "error" in wanted)
    assert status["correlationId"] == f"mcp-{status['jobId']}"


def is_one_way(name: str) -> bool:
    envelope = CASES[name]["input"].get("arguments", {}).get("__pptb", {})
    return bool(envelope.get("mode") == "one-way")


@pytest.mark.parametrize("name", sorted(LATER - DEFECTS))
def test_kept(name: str, tmp_path: Path) -> None:
    given, polls = CASES[name]["input"], CASES[name]["output"].get("polls", {})
    bench = Bench(tmp_path / "tool-1", given)
    outcome = bench.run(given["arguments"], polls)
    wanted = expected(name, outcome.job_id)
    assert is_one_way(name)
    assert not outcome.answer.is_error
    assert outcome.answer.structured == wanted["call"]["result"]
    check_record(outcome.status, wanted["job"])
    check_log(bench.log(), wanted, "")
    assert outcome.polls == polls
    assert ran(tmp_path / "tool-1") == [python_name(file) for file in wanted["ran"]]


@pytest.mark.parametrize("name", MENDED)
def test_mended(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given, mended = CASES[name]["input"], MENDED[name]
    folder = tmp_path / "tool-1"
    bench = Bench(folder, given)
    polls = {
        label: {"status": "in_progress", "progress": {"percent": percent, "message": message}}
        for label, (percent, message) in mended.polls.items()
    }
    with caplog.at_level(logging.DEBUG):
        outcome = bench.run(given.get("arguments", {}), polls)
    wanted = expected(name, outcome.job_id)
    assert outcome.polls == polls
    assert set(polls) == set(wanted.get("polls", {}))
    if is_one_way(name):
        assert not outcome.answer.is_error
        assert outcome.answer.structured == wanted["call"]["result"]
    elif mended.error:
        check_failure(outcome, mended)
    check_record(outcome.status, {**record(wanted), **changed(mended)})
    check_log(bench.log(), wanted, mended.error)
    assert outcome.status["logs"][-1]["message"] == (mended.error or "completed")
    assert ran(folder) == [python_name(file) for file in wanted["ran"]]
    for place in (outcome.answer, outcome.status, bench.store.rows, caplog.text):
        assert TOKEN not in repr(place)
    # Late work changes nothing.
    (folder / LATE).touch()
    asyncio.run(until((folder / ENDED).exists))
    assert (folder / ENDED).read_text() == mended.ended
    assert bench.status() == outcome.status


def check_failure(outcome: Outcome, mended: Mended) -> None:
    """A failed answer carries its job's id, for people and for programs."""
    assert outcome.answer.is_error
    assert outcome.answer.structured is None
    assert outcome.answer.text == f"{mended.error} (job {outcome.job_id})"
    assert outcome.answer.meta == {
        "toolbox/jobId": outcome.job_id,
        "toolbox/statusUrl": f"/mcp/jobs/{outcome.job_id}/status",
        "toolbox/errorCode": mended.code,
    }


def record(wanted: JsonObject) -> JsonObject:
    """The original's record of a job; it cannot tell one whose result refers to itself."""
    if wanted["job"].get("statusAnswers") is not False:
        return dict(wanted["job"])
    return {"toolId": "tool-1", "toolName": "tool-1", "createdAt": "<timestamp>", "completedAt": "<timestamp>"}


def changed(mended: Mended) -> JsonObject:
    if not mended.error:
        return {}
    return {
        "status": "failed",
        "progress": {"percent": mended.percent, "message": "failed"},
        "error": mended.error,
        "errorCode": mended.code,
    }


# Every failure of a call that has a job says which one it is.

NO_JOB_ID = "a failed two-way call carries no jobId"


@pytest.mark.parametrize(
    "name",
    # Without an entry there is no tool here, and so no job.
    sorted(name for name in CASES if CASES[name].get("defect") == NO_JOB_ID and name != "entry-none"),
)
def test_a_failed_two_way_call_carries_its_job_id(name: str, tmp_path: Path) -> None:
    given = CASES[name]["input"]
    outcome = Bench(tmp_path / "tool-1", given).run({}, {})
    said = outcome.status["error"]
    assert CASES[name]["output"]["call"]["text"].rstrip(".") in said
    check_failure(outcome, Mended(said, code=outcome.status["errorCode"]))


def works(steps: list[Any]) -> JsonObject:
    return {"files": {"headless.js": {"steps": steps}}, "returnTopic": DEFAULTS["returnTopic"]}


def job_id_in(answer: ToolResult) -> str:
    job_id = str(answer.meta["toolbox/jobId"])
    assert answer.is_error
    assert answer.text.endswith(f"(job {job_id})")
    assert answer.meta["toolbox/statusUrl"] == f"/mcp/jobs/{job_id}/status"
    return job_id


def test_so_does_a_call_whose_job_is_gone_while_it_waits(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "tool-1", works([{"return": {"ok": True}}]))

    async def main() -> tuple[str, ToolResult]:
        answering = bench.answer({})
        await until(lambda: bool(bench.store.messages))
        job_id = bench.status()["jobId"]
        bench.store.rows.clear()
        return job_id, await answering

    job_id, answer = asyncio.run(main())
    assert job_id_in(answer) == job_id
    assert answer.text.startswith("Job not found")


LARGE = [{"return": {"ok": True, "text": "x" * 100_000}}]


def test_so_does_a_call_whose_result_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path / "tool-1", works(LARGE))
    monkeypatch.setattr(bench.store, "get_blob", lambda name: None)
    answer = call(bench)
    job_id_in(answer)
    assert answer.text.startswith("The job's stored result is gone.")
    assert answer.meta["toolbox/errorCode"] == "payload"


def test_so_does_a_call_whose_result_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(name: str) -> bytes:
        raise OSError("the host of the account was not found")

    bench = Bench(tmp_path / "tool-1", works(LARGE))
    monkeypatch.setattr(bench.store, "get_blob", fails)
    answer = call(bench)
    job_id = job_id_in(answer)
    assert answer.text.startswith("The job's answer could not be read (OSError).")
    assert f"job {job_id}: its answer could not be read" in caplog.text
    assert "the host of the account" in caplog.text


def call(bench: Bench) -> ToolResult:
    """A two-way call's answer."""

    async def main() -> ToolResult:
        answering = bench.answer({})
        await bench.take()
        return await answering

    return asyncio.run(main())


def test_so_does_one_whose_job_was_given_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "tool-1", works([{"return": {"ok": True}}]))

    async def main() -> ToolResult:
        answering = bench.answer({})
        await until(lambda: bool(bench.store.messages))
        await bench.worker.handle_poison(bench.store.messages.popleft())
        return await answering

    answer = asyncio.run(main())
    assert job_id_in(answer) == bench.status()["jobId"]
    assert answer.meta["toolbox/errorCode"] == "poisoned"


def test_a_call_that_waits_no_longer_gets_the_acceptance_with_the_jobs_status(tmp_path: Path) -> None:
    steps = [{"poll": "a"}, {"return": {"ok": True}}]
    bench = Bench(tmp_path / "tool-1", works(steps), TOOLBOX_MAX_WAIT_MS="60")

    async def main() -> ToolResult:
        answering, working = bench.answer({}), asyncio.create_task(bench.take())
        answer = await answering
        (bench.folder / "polled-a").touch()
        await working
        return answer

    answer = asyncio.run(main())
    assert not answer.is_error
    assert answer.structured is not None
    assert answer.structured["jobId"] == bench.status()["jobId"]
    assert (answer.structured["mode"], answer.structured["jobStatus"]) == ("two-way", "in_progress")
    assert bench.status()["status"] == "completed"
