"""Progress and log lines: whatever a tool says, it is kept within bounds and never fails the job."""

from __future__ import annotations

import fractions
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.jobs import logs, model, payload, recorder, reports
from shared.jobs.logs import Level
from shared.jobs.model import Job, Status
from shared.jobs.recorder import Recorder
from shared.jobs.reports import Reports, whole_percent
from shared.jobs.store import NOTHING_ELSE, Change
from shared.redaction import Redactor
from shared.tool import Context
from tests.unit.jobs.bench import Bench
from tests.unit.jobs.test_keys_and_rows import a_job


@pytest.mark.parametrize(
    ("value", "percent"),
    [
        (0, 0),
        (50, 50),
        (50.9, 50),
        (-5, 0),
        (-0.1, 0),
        (250, 100),
        (100.0001, 100),
        (10**400, 100),
        (-(10**400), 0),
        (1e308, 100),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
        ("50", None),
        ("", None),
        (None, None),
        (True, None),
        (False, None),
        ([50], None),
        (50j, None),
        (Decimal(50), None),
        (fractions.Fraction(1, 2), None),
        (object(), None),
    ],
)
def test_odd_values_are_clamped_or_ignored(value: object, percent: int | None) -> None:
    assert whole_percent(value) == percent


def test_a_tool_that_reports_nonsense_completes() -> None:
    class Silent:
        def __str__(self) -> str:
            raise ValueError("no text")

    def work(*, context: Context) -> str:
        for odd in (
            math.nan,
            "50",
            -5,
            250,
            None,
            True,
            10**400,
            object(),
            Silent(),
            b"\xff",
            "\ud800",
            10**5000,
        ):
            context.update_progress(odd, odd)  # type: ignore[arg-type]
            context.updateProgress(odd)
            context.logger.info(odd)
            context.logger.error(odd)
            context.sink.log(str(type(odd)), odd)
        return "done"

    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    assert bench.job(job).status is Status.COMPLETED, bench.job(job).error
    assert "<Silent>" in bench.lines(job)


@given(st.lists(st.integers() | st.floats() | st.text(max_size=3) | st.none() | st.booleans(), max_size=30))
def test_progress_is_a_whole_percent_that_never_falls(values: list[Any]) -> None:
    said = Reports(a_job(), Redactor())
    before = 0
    for value in values:
        said.progress(value, None)
        percent = said.put_into(a_job()).progress_percent
        assert type(percent) is int
        assert before <= percent <= 100
        before = percent


def test_progress_begins_anew_with_an_attempt() -> None:
    job = model.claim(a_job(progress_percent=80, progress_message="nearly"), model.utc_now(), 1)
    said = Reports(job, Redactor())
    said.progress(3, None)
    assert said.put_into(job).progress_percent == 3


def attempt(bench: Bench) -> tuple[Job, Recorder]:
    job = bench.store.write(model.claim(bench.job(bench.submit()), model.utc_now(), 60_000))
    return job, Recorder(job, bench.store, Redactor(), lease_ms=60_000, renew_every_ms=20_000)


def finish(run: Recorder) -> None:
    run.finish(
        lambda job: model.complete(job, model.utc_now(), payload.stored_body(b"{}")), (Level.INFO, "completed")
    )


@contextmanager
def written(bench: Bench, first: Callable[[int], None] = lambda number: None) -> Iterator[list[Change]]:
    """What is written from here on. `first` is called before each write, and may raise."""
    write, changes = bench.store.write, []

    def watched(job: Job, change: Change = NOTHING_ELSE) -> Job:
        changes.append(change)
        first(len(changes))
        return write(job, change)

    bench.store.write = watched  # type: ignore[method-assign]
    yield changes
    bench.store.write = write  # type: ignore[method-assign]


class TestBurst:
    @pytest.mark.parametrize(
        ("text", "count"), [("line {}", 10_000), ("{} " + "漢" * 5_000, 500), ("{} " + '"\\\x01' * 900, 500)]
    )
    def test_ten_thousand_lines_cost_one_transaction_of_the_ring_at_most(self, text: str, count: int) -> None:
        bench = Bench(lambda: None)
        job, run = attempt(bench)
        with written(bench) as changes:
            for number in range(count):
                run.log("info", text.format(number))
            finish(run)
        (change,) = changes
        assert len(change.chunks) <= logs.RING
        assert all(len(data) <= logs.CHUNK_BYTES for _, data in change.chunks)
        lines = bench.lines(job)
        assert len(lines) == 200
        assert lines[-1] == "completed"
        assert [line[:8] for line in lines[:-1]] == [text.format(n)[:8] for n in range(count - 199, count)]
        assert bench.job(job).log_lines == count + 1

    def test_a_burst_over_many_flushes_writes_only_what_changed(self) -> None:
        bench = Bench(lambda: None)
        job, run = attempt(bench)
        with written(bench) as changes:
            for number in range(1_000):
                run.log("info", f"line {number}")
                if number % 10 == 0:
                    run._write()
            finish(run)
        # A flush of ten lines touches the chunk they are in, and the next one.
        assert max(len(change.chunks) for change in changes) <= 2
        assert bench.lines(job)[0] == "line 801"

    def test_reports_of_many_threads_are_all_kept_in_order(self) -> None:
        bench = Bench(lambda: None)
        job, run = attempt(bench)
        run.start()

        def speak(name: int) -> None:
            for number in range(19):
                run.log("info", f"{name} {number}")
                run.progress(number, None)

        threads = [threading.Thread(target=speak, args=(name,)) for name in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        finish(run)
        lines = bench.lines(job)[:-1]
        assert len(lines) == 190
        for name in range(10):
            assert [line for line in lines if line.startswith(f"{name} ")] == [f"{name} {n}" for n in range(19)]


class TestTrouble:
    @pytest.mark.parametrize("failing", [1, 2, 3, 4])
    def test_a_flush_that_fails_is_tried_again_and_fails_nothing(
        self, failing: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(recorder, "FLUSH_EVERY", 0.005)
        go_on = threading.Event()

        def trouble(number: int) -> None:
            if number <= failing + 1 and number > 1:
                raise ConnectionError("storage is down")
            if number == failing + 2:
                go_on.set()

        def work(*, context: Context) -> str:
            for number in range(120):
                context.logger.info(f"line {number}")
            context.update_progress(70, "far")
            assert go_on.wait(20)
            return "done"

        bench = Bench(work)
        job = bench.submit()
        with written(bench, trouble):
            bench.deliver()
        assert bench.job(job).status is Status.COMPLETED
        assert bench.lines(job) == [
            "running (attempt 1 of 1)",
            *(f"line {number}" for number in range(120)),
            "completed",
        ]

    def test_a_look_that_fails_fails_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorder, "LOOK_EVERY", 0.005)
        looked = threading.Event()

        def work() -> str:
            assert looked.wait(20)
            return "done"

        bench = Bench(work)
        job = bench.submit()
        get = bench.store.get
        fails = iter(range(3))

        def broken(job_id: str) -> Job | None:
            if next(fails, None) is not None:
                raise ConnectionError("storage is down")
            looked.set()
            return get(job_id)

        monkeypatch.setattr(bench.store, "get", broken)
        monkeypatch.setattr(recorder, "FLUSH_EVERY", 60)
        bench.deliver()
        monkeypatch.setattr(bench.store, "get", get)
        assert bench.job(job).status is Status.COMPLETED


def test_what_comes_after_the_end_changes_nothing() -> None:
    bench = Bench(lambda: None)
    _, run = attempt(bench)
    finish(run)
    before = (dict(bench.store.rows), bench.store.requests.total())
    run.log("info", "late")
    run.progress(99, "late")
    run._write()
    assert (bench.store.rows, bench.store.requests.total()) == before
    assert run.over is not None


def test_a_callback_comes_once_also_when_it_comes_late() -> None:
    said = Reports(a_job(), Redactor())
    told: list[str] = []
    said.on_unwanted(lambda: told.append("early"))
    said.abandon("first")
    said.abandon("second")
    said.on_unwanted(lambda: told.append("late"))
    assert told == ["early", "late"]
    assert str(said.unwanted) == "first"
    assert reports.MESSAGE_LIMIT == 1_000
