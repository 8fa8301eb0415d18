"""The engine against a store in memory: what one message does, and what it must not do."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared import settings as app_settings
from shared.contract.envelope import CallPlan
from shared.errors import LostLeaseError, ToolError
from shared.jobs import answers, keys, model
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.repair import repaired
from shared.jobs.store import NOTHING_ELSE, Change
from shared.jobs.submit import submit
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool import Context, McpToolResponse, ToolAnnotations, tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.spec import ExecutionMode, JsonObject, Mode

SEALER = Sealer((bytes(range(32)),))
SETTINGS = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})


class Bench:
    """An engine with one tool."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        execution_modes = ("inline", "headless")
        found = declared(
            tool(name="work", description="Works.", execution_modes=execution_modes, **options)(function)
        )
        assert found is not None
        self.entry: ToolEntry = found
        self.store = MemoryJobStore()
        self.worker = Worker({"work": self.entry}, self.store, SEALER, SETTINGS)

    def submit(
        self, arguments: JsonObject | None = None, *, timeout_ms: int = 10_000, token: str | None = None
    ) -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, timeout_ms, token)
        return asyncio.run(
            submit(self.entry.spec, arguments or {}, plan, owner="default", store=self.store, sealer=SEALER)
        )

    def deliver(self, body: str | None = None) -> None:
        asyncio.run(self.worker.handle(self.store.messages.popleft() if body is None else body))

    def job(self, job: Job) -> Job:
        found = self.store.get(job.job_id)
        assert found is not None
        return found

    def lines(self, job: Job) -> list[str]:
        found = self.store.with_logs(job.job_id)
        assert found is not None
        return [line.message for line in found[1]]


def test_a_job_runs_and_its_input_is_erased() -> None:
    async def work(n: int) -> dict[str, int]:
        return {"n": n + 1}

    bench = Bench(work)
    job = bench.submit({"n": 1}, token="sentinel-token")
    assert bench.job(job).status is Status.PENDING
    assert json.loads(bench.store.messages[0]) == {"jobId": job.job_id}
    bench.deliver()
    ended = bench.job(job)
    assert (ended.status, ended.attempt, ended.progress_percent) == (Status.COMPLETED, 1, 100)
    assert answers.result_of(ended, bench.store).structured == {"n": 2}
    assert (keys.partition_key(job.job_id), keys.INPUT_ROW) not in bench.store.rows
    assert "sentinel" not in repr(bench.store.rows)


def test_a_job_without_logs_makes_five_table_and_queue_requests_of_ours() -> None:
    """Row insert, send, read, claim, terminal write; the host's receive and delete make it seven."""
    bench = Bench(lambda: None)
    bench.submit()
    bench.deliver()
    assert bench.store.requests == {"create": 1, "send": 1, "open": 1, "write": 2}


def test_fifty_lines_and_twenty_reports_in_a_moment_cost_no_more() -> None:
    def work(*, context: Context) -> str:
        for number in range(50):
            context.logger.info(f"line {number}")
            context.update_progress(number, f"step {number}")
        return "done"

    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    assert bench.store.requests["write"] == 2
    assert bench.lines(job)[:3] == ["running (attempt 1 of 1)", "line 0", "line 1"]


def test_duplicates_and_late_messages_change_nothing() -> None:
    runs = []
    bench = Bench(lambda: runs.append(1))
    job = bench.submit()
    body = bench.store.messages[0]
    bench.deliver()
    ended = bench.job(job)
    bench.deliver(body)
    assert runs == [1]
    assert bench.job(job) == ended


def test_two_workers_at_once_run_a_job_once() -> None:
    runs = []

    async def work() -> None:
        runs.append(1)
        await asyncio.sleep(0.05)

    bench = Bench(work)
    bench.submit()
    body = bench.store.messages[0]

    async def both() -> None:
        await asyncio.gather(*(bench.worker.handle(body) for _ in range(5)))

    asyncio.run(both())
    assert runs == [1]


@pytest.mark.parametrize(
    "body", ["", "{}", "[]", "null", '{"jobId": 5}', '{"jobId": "../x"}', "\ud800", "not json", "[" * 100_000]
)
def test_a_message_that_names_no_job_is_dropped_without_its_text(
    body: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(lambda: None)
    bench.deliver(body)
    assert bench.store.requests == {}
    assert "names no job" in caplog.text
    if len(body) > 4:
        assert body not in caplog.text


def test_a_message_for_a_purged_job_is_done_with() -> None:
    bench = Bench(lambda: None)
    bench.deliver(json.dumps({"jobId": keys.new_job_id()}))
    assert bench.store.requests == {"open": 1}


def failed(function: Callable[..., Any], **options: Any) -> Job:
    timeout_ms = options.pop("timeout_ms", 10_000)
    bench = Bench(function, **options)
    job = bench.submit(timeout_ms=timeout_ms, token="sentinel-token")
    bench.deliver()
    ended = bench.job(job)
    assert ended.status is Status.FAILED
    assert ended.input_at == model.INPUT_ERASED
    assert "sentinel" not in repr(bench.store.rows)
    assert bench.lines(job)[-1] == ended.error
    return ended


def test_failures_say_what_happened() -> None:
    def raises(*, context: Context) -> None:
        raise KeyError(f"no {context.auth_token}")

    job = failed(raises)
    assert (job.error_code, job.error) == (
        ErrorCode.TOOL_ERROR,
        "Tool 'work' failed: KeyError: 'no [redacted]'",
    )

    def speaks() -> None:
        raise ToolError("The delimiter must be one character.")

    assert failed(speaks).error == "The delimiter must be one character."

    def answers_error() -> McpToolResponse:
        return McpToolResponse(is_error=True)

    assert failed(answers_error).error_code is ErrorCode.TOOL_ERROR

    def exits() -> None:
        raise SystemExit(3)

    assert "SystemExit: 3" in failed(exits).error

    async def exits_too() -> None:
        raise SystemExit(4)

    assert "SystemExit: 4" in failed(exits_too).error

    async def cancels() -> None:
        raise asyncio.CancelledError

    assert "CancelledError" in failed(cancels).error

    def surrogate(*, context: Context) -> None:
        context.logger.info("lone \ud800")
        raise ValueError("lone \ud800")

    failed(surrogate).error.encode()

    def elsewhere() -> None:
        raise FileNotFoundError(f"no {__file__}")

    assert failed(elsewhere).error == "Tool 'work' failed: FileNotFoundError: no tests/unit/jobs/test_worker.py"

    def odd() -> object:
        return object()

    odd.__annotations__ = {}
    assert failed(odd).error_code is ErrorCode.INVALID_RESULT

    def times_out_itself() -> None:
        raise TimeoutError("upstream")

    job = failed(times_out_itself)
    assert (job.error_code, job.error) == (ErrorCode.TOOL_ERROR, "Tool 'work' failed: TimeoutError: upstream")


def test_a_result_that_breaks_the_promise_is_an_invalid_result() -> None:
    def lies() -> dict[str, int]:
        return {"a": "text"}  # type: ignore[dict-item]

    job = failed(lies)
    assert (job.error_code, job.error) == (
        ErrorCode.INVALID_RESULT,
        "Output validation failed: $.a: expected integer, got string",
    )


def test_an_async_tool_past_its_deadline_is_cancelled() -> None:
    cancelled = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    job = failed(slow, timeout_ms=30)
    assert (job.error_code, job.error) == (ErrorCode.TIMEOUT, "Headless execution timed out after 30 ms")
    assert cancelled.is_set()


def test_a_sync_tool_past_its_deadline_is_abandoned_and_can_change_nothing() -> None:
    go_on, came_back = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def slow(*, context: Context) -> str:
        go_on.wait(10)
        try:
            context.update_progress(99, "too late")
        except BaseException as error:
            raised.append(error)
        came_back.set()
        return "too late"

    bench = Bench(slow)
    job = bench.submit(timeout_ms=30)
    bench.deliver()
    ended = bench.job(job)
    assert ended.error_code is ErrorCode.TIMEOUT
    go_on.set()
    assert came_back.wait(10)
    assert "deadline" in str(raised[0])
    assert bench.job(job) == ended


def test_a_lost_worker_of_a_repeatable_tool_is_replaced() -> None:
    bench = Bench(lambda: "ok", annotations=ToolAnnotations(idempotent=True))
    job = bench.submit()
    now = model.utc_now()
    bench.store.write(model.claim(bench.job(job), now - timedelta(minutes=5), 60_000))
    bench.deliver()
    ended = bench.job(job)
    assert (ended.status, ended.attempt) == (Status.COMPLETED, 2)


def test_a_lost_worker_of_any_other_tool_ends_the_job() -> None:
    runs = []
    bench = Bench(lambda: runs.append(1))
    job = bench.submit()
    bench.store.write(model.claim(bench.job(job), model.utc_now() - timedelta(minutes=5), 60_000))
    bench.deliver()
    ended = bench.job(job)
    assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.WORKER_LOST)
    assert runs == []


class TestReadsRepair:
    """A worker was killed: its lease runs out, and the next read shows what becomes of the job."""

    def lost(self, **options: Any) -> tuple[Bench, Job]:
        bench = Bench(lambda: "ok", **options)
        job = bench.submit()
        bench.store.messages.clear()
        claimed = model.claim(bench.job(job), model.utc_now() - timedelta(minutes=5), 60_000)
        return bench, bench.store.write(claimed)

    def test_a_job_that_may_not_run_again_ends(self) -> None:
        bench, job = self.lost()
        found = repaired(job, bench.store)
        assert (found.status, found.error_code) == (Status.FAILED, ErrorCode.WORKER_LOST)
        assert found.error == "The worker was lost during attempt 1 of 1."
        assert (keys.partition_key(job.job_id), keys.INPUT_ROW) not in bench.store.rows
        assert not bench.store.messages
        assert repaired(found, bench.store) == found

    def test_a_job_that_may_run_again_is_sent_again_and_runs(self) -> None:
        bench, job = self.lost(annotations=ToolAnnotations(read_only=True))
        assert repaired(job, bench.store).status is Status.PENDING
        bench.deliver()
        assert (bench.job(job).status, bench.job(job).attempt) == (Status.COMPLETED, 2)

    def test_of_many_reads_one_makes_the_move(self) -> None:
        bench, job = self.lost(annotations=ToolAnnotations(read_only=True))
        assert {repaired(job, bench.store).status for _ in range(5)} == {Status.PENDING}
        assert len(bench.store.messages) == 1

    def test_a_waiting_call_learns_of_it(self) -> None:
        bench, job = self.lost()
        ended = asyncio.run(answers.wait(job, bench.store, 5_000))
        assert ended.error_code is ErrorCode.WORKER_LOST

    def test_a_live_lease_is_left_alone(self) -> None:
        bench = Bench(lambda: "ok")
        job = bench.store.write(model.claim(bench.job(bench.submit()), model.utc_now(), 60_000))
        assert repaired(job, bench.store) is job


def test_large_bodies_go_to_blobs_and_the_input_goes_with_the_end() -> None:
    def work(text: str) -> str:
        return text * 2

    bench = Bench(work)
    job = bench.submit({"text": "x" * 50_000})
    assert job.input_at == model.INPUT_IN_BLOB
    assert b"xxxx" not in bench.store.blobs[keys.input_blob(job.job_id)]
    bench.deliver()
    ended = bench.job(job)
    assert list(bench.store.blobs) == [keys.result_blob(job.job_id, 1)]
    assert answers.result_of(ended, bench.store).structured == {"result": "x" * 100_000}
    bench.store.blobs[keys.result_blob(job.job_id, 1)] += b" "
    told = asyncio.run(answers.final(ended, bench.store))
    assert told.is_error
    assert "changed" in told.text
    assert job.job_id in told.text


def test_a_late_worker_cannot_spoil_the_result_of_the_one_that_took_over() -> None:
    """The first attempt's lease runs out; the second ends with a large result; then the first comes back."""
    go_on = threading.Event()
    runs: list[int] = []

    def work(*, context: Context) -> str:
        runs.append(context.attempt)
        if context.attempt == 1:
            assert go_on.wait(10)
        return str(context.attempt) * 50_000

    bench = Bench(work, annotations=ToolAnnotations(idempotent=True))
    job = bench.submit()
    body = bench.store.messages[0]

    async def both() -> None:
        first = asyncio.create_task(bench.worker.handle(body))
        while not runs:
            await asyncio.sleep(0.001)
        running = bench.job(job)
        bench.store.write(replace(running, lease_until=model.utc_now()))
        await bench.worker.handle(body)
        go_on.set()
        await first

    asyncio.run(both())
    ended = bench.job(job)
    assert (runs, ended.status, ended.attempt) == ([1, 2], Status.COMPLETED, 2)
    assert answers.result_of(ended, bench.store).structured == {"result": "2" * 50_000}


def test_trouble_before_the_claim_leaves_the_job_for_the_next_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(text: str) -> int:
        return len(text)

    bench = Bench(work)
    job = bench.submit({"text": "x" * 50_000})
    body = bench.store.messages.popleft()
    get_blob = bench.store.get_blob

    def broken(name: str) -> bytes:
        raise ConnectionError("blob storage is down")

    monkeypatch.setattr(bench.store, "get_blob", broken)
    with pytest.raises(ConnectionError):
        bench.deliver(body)
    assert bench.job(job).status is Status.PENDING
    monkeypatch.setattr(bench.store, "get_blob", get_blob)
    bench.deliver(body)
    assert bench.job(job).status is Status.COMPLETED


@pytest.mark.parametrize(("repeatable", "status"), [(True, Status.COMPLETED), (False, Status.FAILED)])
def test_an_end_that_cannot_be_written_is_taken_up_by_the_next_delivery(
    repeatable: bool, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(lambda: "ok", annotations=ToolAnnotations(idempotent=repeatable))
    job = bench.submit()
    body = bench.store.messages.popleft()
    write = bench.store.write

    def broken(found: Job, change: Change = NOTHING_ELSE) -> Job:
        if found.status.terminal:
            raise ConnectionError("table storage is down")
        return write(found, change)

    # Longer than the lease: it is not tried again.
    monkeypatch.setattr("shared.jobs.recorder.END_EVERY", timedelta(hours=1))
    monkeypatch.setattr(bench.store, "write", broken)
    with pytest.raises(ConnectionError):
        bench.deliver(body)
    assert bench.job(job).lease_expired(model.utc_now())
    monkeypatch.setattr(bench.store, "write", write)
    bench.deliver(body)
    assert bench.job(job).status is status


def test_the_calls_token_is_not_stored_even_when_the_tool_returns_it() -> None:
    def work(*, context: Context) -> dict[str, Any]:
        return {"token": context.auth_token, "inside": [f"<{context.auth_token}>"], "n": 1}

    bench = Bench(work)
    job = bench.submit(token="sentinel-token")
    bench.deliver()
    assert "sentinel" not in repr(bench.store.rows)
    assert answers.result_of(bench.job(job), bench.store).structured == {
        "token": "[redacted]",
        "inside": ["<[redacted]>"],
        "n": 1,
    }


def test_a_caller_that_waits_keeps_its_job_when_a_read_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(lambda: "ok")
    job = bench.submit()
    get, calls = bench.store.get, []

    def flaky(job_id: str) -> Job | None:
        calls.append(job_id)
        if len(calls) == 1:
            raise ConnectionError("table storage is down")
        return get(job_id)

    monkeypatch.setattr(bench.store, "get", flaky)
    waited = asyncio.run(answers.wait(job, bench.store, 300))
    assert (waited.job_id, waited.status) == (job.job_id, Status.PENDING)
    assert len(calls) >= 2


def test_an_input_that_cannot_be_opened_fails_the_job_with_the_settings_name() -> None:
    bench = Bench(lambda: None)
    job = bench.submit()
    Bench.deliver(_with_key(bench, bytes(32)))
    assert "TOOLBOX_SEAL_KEY" in bench.job(job).error


def _with_key(bench: Bench, key: bytes) -> Bench:
    bench.worker = Worker({"work": bench.entry}, bench.store, Sealer((key,)), SETTINGS)
    return bench


def test_a_poisoned_message_fails_its_job_but_not_one_that_ended_or_runs() -> None:
    bench = Bench(lambda: None)
    pending, running, ended = bench.submit(), bench.submit(), bench.submit()
    bench.store.write(model.claim(bench.job(running), model.utc_now(), 60_000))
    bench.deliver(json.dumps({"jobId": ended.job_id}))
    for job in (pending, running, ended):
        asyncio.run(bench.worker.handle_poison(json.dumps({"jobId": job.job_id})))
    assert bench.job(pending).error_code is ErrorCode.POISONED
    assert (keys.partition_key(pending.job_id), keys.INPUT_ROW) not in bench.store.rows
    assert bench.job(running).status is Status.IN_PROGRESS
    assert bench.job(ended).status is Status.COMPLETED


def test_a_job_stands_even_when_its_message_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(lambda: None)

    def broken(job_id: str) -> None:
        raise ConnectionError("queue is down")

    monkeypatch.setattr(bench.store, "send", broken)
    assert bench.job(bench.submit()).status is Status.PENDING


def test_a_large_input_goes_also_when_only_the_answer_to_the_end_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(text: str) -> int:
        return len(text)

    bench = Bench(work)
    job = bench.submit({"text": "x" * 50_000})
    write = bench.store.write

    def lost(found: Job, change: Change = NOTHING_ELSE) -> Job:
        stored = write(found, change)
        if stored.status.terminal:
            raise LostLeaseError
        return stored

    monkeypatch.setattr(bench.store, "write", lost)
    bench.deliver()
    ended = bench.store.get(job.job_id)
    assert ended is not None
    assert ended.status.terminal
    assert keys.input_blob(job.job_id) not in bench.store.blobs
