"""The engine against a store in memory: what one message does, and what it must not do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shared.jobs import answers, keys, model
from shared.jobs.model import Status
from shared.tool import Context
from tests.unit.jobs.bench import Bench


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
