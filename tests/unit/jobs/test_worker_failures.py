"""How a job fails: what its tool raises or returns, its deadline, its input, its poisoned message."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

from shared.errors import ToolError
from shared.jobs import keys, model
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.worker import Worker
from shared.tool import Context, McpToolResponse
from tests.unit.jobs.bench import SETTINGS, Bench


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

    error = failed(elsewhere).error
    assert error == "Tool 'work' failed: FileNotFoundError: no tests/unit/jobs/test_worker_failures.py"

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
