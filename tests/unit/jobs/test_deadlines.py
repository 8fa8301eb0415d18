"""Code that cannot be stopped: it changes nothing any more, and a process that is full of it takes no jobs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from shared.errors import JobCancelledError, ToolError
from shared.jobs import worker as worker_module
from shared.jobs.model import ErrorCode, Status
from shared.jobs.store import NOTHING_ELSE, Change
from shared.tool import Context
from shared.tool.threads import abandoned
from tests.unit.jobs.bench import Bench


class Stuck:
    """A tool that does not return before it is told so."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.back = threading.Semaphore(0)
        self.raised: list[str] = []

    def bench(self) -> Bench:
        def work(late: bool = True, *, context: Context) -> str:
            return self.work(context) if late else "in time"

        return Bench(work)

    def work(self, context: Context) -> str:
        self.go_on.wait(30)
        for report in (
            lambda: context.update_progress(99, "too late"),
            lambda: context.artifacts.write("late.txt", "too late"),
            lambda: context.artifacts.write("late.bin", iter([b"too late"])),
        ):
            try:
                report()
            except JobCancelledError as error:
                self.raised.append(error.message)
        context.logger.info("too late")
        self.back.release()
        return "too late"


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    # What earlier tests have told to go on may not have ended yet.
    wait_for(lambda: abandoned() == 0)
    found = Stuck()
    yield found
    found.go_on.set()
    wait_for(lambda: abandoned() == 0)


def wait_for(probe: object) -> None:
    pause = threading.Event()
    for _ in range(10_000):
        if probe():  # type: ignore[operator]
            return
        pause.wait(0.001)
    raise AssertionError("waited in vain")


def test_late_progress_files_lines_and_results_change_nothing(stuck: Stuck) -> None:
    bench = stuck.bench()
    job = bench.submit(timeout_ms=20)
    bench.deliver()
    ended = bench.job(job)
    assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.TIMEOUT)
    before = (dict(bench.store.rows), dict(bench.store.blobs))
    stuck.go_on.set()
    assert stuck.back.acquire(timeout=20)
    assert stuck.raised == ["The job's deadline has passed."] * 3
    assert (bench.store.rows, bench.store.blobs) == before


def test_a_thread_that_outlives_a_completed_job_can_leave_no_file(stuck: Stuck) -> None:
    def work(*, context: Context) -> str:
        threading.Thread(target=stuck.work, args=(context,), daemon=True).start()
        return "done"

    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    stuck.go_on.set()
    assert stuck.back.acquire(timeout=20)
    assert stuck.raised == ["The job has ended."] * 2  # progress is ignored
    assert bench.store.blobs == {}
    assert bench.lines(job)[-1] == "completed"


def test_a_process_full_of_stuck_tools_leaves_jobs_to_others_and_recovers(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_module, "MOST_ABANDONED", 2)
    bench = stuck.bench()
    for _ in range(2):
        assert bench.worker.healthy
        bench.submit(timeout_ms=10)
        bench.deliver()
    assert abandoned() == 2
    assert not bench.worker.healthy

    job = bench.submit({"late": False})
    bench.store.requests.clear()
    bench.deliver()
    # Its message comes back later; the row was not touched.
    assert bench.store.requests == {"send": 1}
    assert [json.loads(body) for body in bench.store.postponed] == [{"jobId": job.job_id}]
    assert not bench.store.messages
    assert bench.job(job).status is Status.PENDING
    assert "left to others" in caplog.text

    stuck.go_on.set()
    wait_for(lambda: bench.worker.healthy)
    bench.deliver(bench.store.postponed.popleft())
    assert bench.job(job).status is Status.COMPLETED


def test_a_postponed_message_that_cannot_be_sent_is_delivered_again(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "MOST_ABANDONED", 0)
    bench = stuck.bench()
    bench.submit()

    def broken(job_id: str, *, delay: int = 0) -> None:
        raise ConnectionError("queue is down")

    monkeypatch.setattr(bench.store, "send", broken)
    with pytest.raises(ConnectionError):
        bench.deliver()


def test_the_deadline_counts_from_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading the input and writing the claim may take longer than the tool may."""
    bench = Bench(lambda: "ok")
    job = bench.submit(timeout_ms=500)
    pause = threading.Event()
    opened, write = bench.store.open, bench.store.write

    def slow_open(job_id: str) -> object:
        pause.wait(0.3)
        return opened(job_id)

    def slow_write(found: object, change: Change = NOTHING_ELSE) -> object:
        pause.wait(0.3)
        return write(found, change)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.store, "open", slow_open)
    monkeypatch.setattr(bench.store, "write", slow_write)
    bench.deliver()
    assert bench.job(job).status is Status.COMPLETED


def test_an_error_of_the_tools_own_class_needs_no_text() -> None:
    class Mine(ToolError):
        def __init__(self) -> None:
            pass

    def work() -> None:
        raise Mine

    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    assert (bench.job(job).status, bench.job(job).error) == (Status.FAILED, "The tool failed.")

    def silent() -> None:
        raise ToolError("")

    bench = Bench(silent)
    job = bench.submit()
    bench.deliver()
    assert bench.job(job).status is Status.FAILED
    assert bench.job(job).error


def test_a_job_whose_sealed_input_is_gone_ends_with_a_clear_error() -> None:
    """Also when nothing is left to be erased."""
    bench = Bench(lambda: None)
    job = bench.submit()
    bench.store.rows = {place: row for place, row in bench.store.rows.items() if place[1] != "in"}
    bench.deliver()
    ended = bench.job(job)
    assert (ended.status, ended.error) == (Status.FAILED, "The job's stored input is gone.")
