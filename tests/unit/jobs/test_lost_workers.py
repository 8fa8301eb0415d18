"""A worker that is lost in the middle of a job, and one that comes back too late."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

from shared.jobs import answers, keys, model
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.repair import repaired
from shared.tool import Context, ToolAnnotations
from tests.unit.jobs.bench import Bench


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
