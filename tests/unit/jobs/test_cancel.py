"""Cancelling a job, as its owner sees it: at once, soon, or not any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.errors import JobCancelledError, JobEndedError, JobError, JobNotFoundError, LostLeaseError
from shared.jobs import answers, attempt, keys, model, recorder
from shared.jobs.cancel import TRIES, cancel
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.store import NOTHING_ELSE, Change
from shared.tool import Context
from tests.unit.jobs.bench import Bench


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "GRACE", 0.05)
    monkeypatch.setattr(recorder, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(recorder, "FLUSH_EVERY", 0.01)


def delivered(bench: Bench, started: threading.Event, then: Callable[[], Any]) -> None:
    """Delivers the next message, and does something else once the tool has begun."""

    async def both() -> None:
        run = asyncio.create_task(bench.worker.handle(bench.store.messages.popleft()))
        while not started.is_set():
            await asyncio.sleep(0.001)
        await asyncio.to_thread(then)
        await asyncio.wait_for(run, 20)

    asyncio.run(both())


def stop(bench: Bench, job: Job) -> Callable[[], None]:
    def asked() -> None:
        found = cancel(job.job_id, "default", bench.store)
        assert (found.status, found.cancel_requested) == (Status.IN_PROGRESS, True)

    return asked


def assert_cancelled(bench: Bench, job: Job) -> None:
    ended = bench.job(job)
    assert (ended.status, ended.error_code, ended.error) == (
        Status.FAILED,
        ErrorCode.CANCELLED,
        "The job was cancelled.",
    )
    assert ended.input_at == model.INPUT_ERASED
    assert (keys.partition_key(job.job_id), keys.INPUT_ROW) not in bench.store.rows


def test_a_pending_job_ends_at_once_and_never_runs() -> None:
    runs: list[int] = []
    bench = Bench(lambda: runs.append(1))
    job = bench.submit({}, token="sentinel-token")
    found = cancel(job.job_id, "default", bench.store)
    assert_cancelled(bench, job)
    assert bench.job(job) == found
    bench.deliver()
    assert runs == []
    assert_cancelled(bench, job)


def test_a_pending_jobs_large_input_goes_at_once() -> None:
    def work(text: str) -> int:
        return len(text)

    bench = Bench(work)
    job = bench.submit({"text": "x" * 50_000})
    cancel(job.job_id, "default", bench.store)
    assert bench.store.blobs == {}


def test_a_running_async_tool_is_cancelled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "GRACE", 60)  # what follows it is not waited for
    started, stopped = threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise

    bench = Bench(work)
    job = bench.submit(timeout_ms=60_000)
    delivered(bench, started, stop(bench, job))
    assert stopped.is_set()
    assert_cancelled(bench, job)


def test_what_an_async_tool_says_while_it_is_cancelled_does_not_matter() -> None:
    started = threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("could not tidy up") from None

    bench = Bench(work)
    job = bench.submit()
    delivered(bench, started, stop(bench, job))
    assert_cancelled(bench, job)


def test_a_sync_tool_that_reports_learns_of_it_at_its_next_report() -> None:
    started = threading.Event()
    seen: list[Any] = []

    def work(*, context: Context) -> None:
        started.set()
        pause = threading.Event()
        try:
            for number in range(5_000):
                context.update_progress(number % 100)
                pause.wait(0.002)
        except JobCancelledError as error:
            seen.extend([str(error), context.cancelled])
            raise

    bench = Bench(work)
    job = bench.submit()
    delivered(bench, started, stop(bench, job))
    assert seen == ["The job was cancelled.", True]
    assert_cancelled(bench, job)


def test_a_sync_tool_may_look_instead_of_reporting() -> None:
    started = threading.Event()

    def work(*, context: Context) -> str:
        assert not context.cancelled
        started.set()
        pause = threading.Event()
        for _ in range(5_000):
            if context.cancelled:
                raise RuntimeError("stopped by itself")
            pause.wait(0.002)
        return "never told"

    bench = Bench(work)
    job = bench.submit()
    delivered(bench, started, stop(bench, job))
    assert_cancelled(bench, job)


def test_a_tool_that_finishes_in_the_grace_completes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its work is done: nobody is helped by throwing it away."""
    monkeypatch.setattr(attempt, "GRACE", 20)
    started = threading.Event()

    def work(*, context: Context) -> str:
        started.set()
        pause = threading.Event()
        while not context.cancelled:
            pause.wait(0.002)
        return "done anyway"

    bench = Bench(work)
    job = bench.submit()
    delivered(bench, started, stop(bench, job))
    ended = bench.job(job)
    assert ended.status is Status.COMPLETED
    assert answers.result_of(ended, bench.store).structured == {"result": "done anyway"}
    assert "cancelRequested" not in answers.status_body(ended, (), None)


def test_a_silent_sync_tool_is_left_alone_and_changes_nothing_later() -> None:
    started, go_on, came_back = threading.Event(), threading.Event(), threading.Event()
    raised: list[str] = []

    def work(*, context: Context) -> str:
        started.set()
        go_on.wait(20)
        for report in (
            lambda: context.update_progress(99, "too late"),
            lambda: context.artifacts.write("late.txt", "too late"),
        ):
            try:
                report()
            except JobCancelledError as error:
                raised.append(str(error))
        context.logger.info("too late")
        came_back.set()
        return "too late"

    bench = Bench(work)
    job = bench.submit()
    delivered(bench, started, stop(bench, job))
    assert_cancelled(bench, job)
    before = (dict(bench.store.rows), dict(bench.store.blobs))
    go_on.set()
    assert came_back.wait(20)
    assert raised == ["The job was cancelled."] * 2
    assert (bench.store.rows, bench.store.blobs) == before


def test_a_deadline_during_the_grace_is_still_a_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "GRACE", 20)
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        go_on.wait(20)

    bench = Bench(work)
    job = bench.submit(timeout_ms=1_000)
    delivered(bench, started, stop(bench, job))
    go_on.set()
    assert_cancelled(bench, job)


class TestRaces:
    def test_with_a_report(self) -> None:
        """The row moves between the read and the write of the request, again and again."""
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))
        get, moves = bench.store.get, iter(range(5))

        def overtaken(job_id: str) -> Job | None:
            found = get(job_id)
            if found is not None and next(moves, None) is not None:
                bench.store.write(model.renew(found, model.utc_now(), 60_000))
            return found

        bench.store.get = overtaken  # type: ignore[method-assign]
        assert cancel(job.job_id, "default", bench.store).cancel_requested

    def test_with_reports_that_never_cease(self) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))

        def lost(found: Job, change: Change = NOTHING_ELSE) -> Job:
            raise LostLeaseError

        bench.store.write = lost  # type: ignore[method-assign,assignment]
        with pytest.raises(JobError, match="try again"):
            cancel(job.job_id, "default", bench.store)
        assert bench.store.requests["get"] >= TRIES

    def test_the_end_is_written_although_a_cancel_came_in_between(self) -> None:
        bench = Bench(lambda: "done")
        job = bench.submit()
        write = bench.store.write

        def overtaken(found: Job, change: Change = NOTHING_ELSE) -> Job:
            if found.status is Status.COMPLETED and not found.cancel_requested:
                stop(bench, job)()
            return write(found, change)

        bench.store.write = overtaken  # type: ignore[method-assign,assignment]
        bench.deliver()
        assert bench.job(job).status is Status.COMPLETED
        assert bench.lines(job)[-1] == "completed"

    def test_a_cancel_that_comes_after_the_end_is_told_so(self) -> None:
        bench = Bench(lambda: "done")
        job = bench.submit()
        get = bench.store.get
        ended: list[int] = []

        def overtaken(job_id: str) -> Job | None:
            found = get(job_id)
            if not ended:
                ended.append(1)
                threading.Thread(target=bench.deliver).start()
                while not get(job_id).status.terminal:  # type: ignore[union-attr]
                    pass
            return found

        bench.store.get = overtaken  # type: ignore[method-assign]
        with pytest.raises(JobEndedError, match="it is completed"):
            cancel(job.job_id, "default", bench.store)
        assert bench.job(job).status is Status.COMPLETED

    def test_of_many_requests_each_is_answered(self) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))
        found = [cancel(job.job_id, "default", bench.store) for _ in range(5)]
        assert all(one.cancel_requested for one in found)
        assert bench.store.requests["write"] == 2  # the claim, and one cancel


@pytest.fixture
def ended() -> tuple[Bench, Job]:
    bench = Bench(lambda: None)
    job = bench.submit()
    bench.deliver()
    return bench, bench.job(job)


def test_a_job_that_has_ended_stays_as_it_is(ended: tuple[Bench, Job]) -> None:
    bench, job = ended
    with pytest.raises(JobEndedError) as told:
        cancel(job.job_id, "default", bench.store)
    assert told.value.status == "completed"
    assert bench.job(job) == job


def test_nobody_cancels_another_owners_job_or_learns_of_it() -> None:
    bench = Bench(lambda: None)
    job = bench.submit()
    for job_id, owner in ((job.job_id, "ana"), (keys.new_job_id(), "default")):
        with pytest.raises(JobNotFoundError, match=r"^Job not found$"):
            cancel(job_id, owner, bench.store)
    assert bench.job(job) == job


def test_a_job_whose_worker_is_lost_ends_as_cancelled_instead_of_running_again() -> None:
    bench = Bench(lambda: None, max_attempts=3)
    job = bench.submit()
    running = bench.store.write(model.claim(bench.job(job), model.utc_now(), 60_000))
    stop(bench, job)()
    found = bench.job(job)
    bench.store.write(replace(found, lease_until=running.created_at))
    bench.deliver()
    assert_cancelled(bench, job)
