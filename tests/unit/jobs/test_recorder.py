"""The recorder of an attempt: what it writes, when, and what it may not write."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared import settings as app_settings
from shared.errors import JobCancelledError, LostLeaseError
from shared.jobs import model, payload
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.recorder import Recorder
from shared.jobs.store import NOTHING_ELSE, Change
from shared.redaction import Redactor
from tests.unit.jobs.bench import Bench


class TestRecorder:
    def recorder(self, bench: Bench, **times: int) -> tuple[Job, Recorder]:
        job = bench.store.write(model.claim(bench.job(bench.submit()), model.utc_now(), 60_000))
        options = {"lease_ms": 60_000, "renew_every_ms": 20_000, **times}
        return job, Recorder(job, bench.store, Redactor(["sentinel"]), **options)

    @pytest.mark.parametrize(
        ("reports", "percent"),
        [
            ([5, 3], 5),
            ([50.9], 50),
            ([250], 100),
            ([-5], 0),
            ([7, float("nan"), float("inf"), None, "50", True, object()], 7),
        ],
    )
    def test_progress_is_whole_bounded_and_never_falls(self, reports: list[Any], percent: int) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench)
        for report in reports:
            recorder.progress(report, None)
        recorder.finish(lambda found: replace(found, status=Status.FAILED), (model_level(), "end"))
        assert bench.job(job).progress_percent == percent

    def test_messages_are_redacted_and_bounded(self) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench)
        recorder.progress(1, "sentinel " + "x" * 5000)
        recorder.log("info", {"not": "a text", "with": "sentinel"})
        recorder.log("strange", "level")
        recorder.finish(lambda found: replace(found, status=Status.FAILED), (model_level(), "end"))
        assert "sentinel" not in repr(bench.store.rows)
        assert len(bench.job(job).progress_message) == 1000

    def test_the_lease_is_kept_while_nothing_is_reported(self) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench, renew_every_ms=20)
        written = threading.Event()
        write = bench.store.write

        def watched(found: Job, change: Change = NOTHING_ELSE) -> Job:
            stored = write(found, change)
            written.set()
            return stored

        bench.store.write = watched  # type: ignore[method-assign,assignment]
        recorder.start()
        assert written.wait(10)
        recorder.close()
        kept = bench.job(job).lease_until
        assert kept is not None
        assert job.lease_until is not None
        assert kept > job.lease_until

    def test_who_lost_the_lease_can_write_nothing_more(self) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench)
        taken = bench.store.write(model.fail(bench.job(job), model.utc_now(), ErrorCode.WORKER_LOST, "gone"))
        recorder.log("info", "still here")
        with pytest.raises(LostLeaseError):
            recorder.finish(
                lambda found: model.complete(found, model.utc_now(), payload.stored_body(b"{}")),
                (model_level(), "completed"),
            )
        assert bench.job(job) == taken

    def test_a_tool_whose_lease_is_lost_learns_of_it_at_its_next_report(self) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench, renew_every_ms=5)
        bench.store.write(model.fail(bench.job(job), model.utc_now(), ErrorCode.WORKER_LOST, "gone"))
        recorder.start()

        def report_for_long() -> None:
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline:
                recorder.progress(1, None)
                time.sleep(0.001)

        with pytest.raises(JobCancelledError, match="without this worker"):
            report_for_long()
        assert recorder.cancelled

    @pytest.mark.parametrize("ends", [False, True])
    def test_a_write_whose_outcome_is_unknown_is_not_taken_for_a_lost_lease(self, ends: bool) -> None:
        """It went through, but neither its answer nor the look at the row came back."""
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench, renew_every_ms=5)
        write = bench.store.write
        doubtful = threading.Event()
        again = threading.Event()

        def unanswered(found: Job, change: Change = NOTHING_ELSE) -> Job:
            stored = write(found, change)
            if not doubtful.is_set():
                doubtful.set()
                raise ConnectionError("no answer")
            again.set()
            return stored

        bench.store.write = unanswered  # type: ignore[method-assign,assignment]
        recorder.log("info", "kept")
        recorder.start()
        assert doubtful.wait(10)
        assert ends or again.wait(10)
        recorder.finish(
            lambda found: model.complete(found, model.utc_now(), payload.stored_body(b"{}")),
            (model_level(), "completed"),
        )
        assert bench.job(job).status is Status.COMPLETED
        assert bench.lines(job) == ["kept", "completed"]

    def test_trouble_with_storage_delays_reports_and_loses_none(self) -> None:
        bench = Bench(lambda: None)
        job, recorder = self.recorder(bench, renew_every_ms=10)
        write = bench.store.write
        tries = threading.Semaphore(0)
        failing = True

        def flaky(found: Job, change: Change = NOTHING_ELSE) -> Job:
            tries.release()
            if failing:
                raise ConnectionError("storage is down")
            return write(found, change)

        bench.store.write = flaky  # type: ignore[method-assign,assignment]
        lines = [f"line {number}" for number in range(60)]
        for line in lines:
            recorder.log("info", line)
        recorder.start()
        assert tries.acquire(timeout=10)
        assert tries.acquire(timeout=10)
        failing = False
        recorder.finish(lambda found: replace(found, status=Status.FAILED), (model_level(), "end"))
        assert bench.lines(job) == [*lines, "end"]


def model_level() -> Any:
    from shared.jobs.logs import Level

    return Level.INFO


def test_by_default_a_silent_attempt_renews_its_lease_every_20_seconds_and_looks_every_5(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A minute of the defaults, on a clock that waits at nobody's expense."""
    bench = Bench(lambda: None)
    given = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
    assert (given.lease_ms, given.lease_renew_ms) == (60_000, 20_000)
    start = model.utc_now()
    job = bench.store.write(model.claim(bench.job(bench.submit()), start, given.lease_ms))
    clock = [0.0]
    monkeypatch.setattr("shared.jobs.recorder.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("shared.jobs.recorder.utc_now", lambda: start + timedelta(seconds=clock[0]))
    recorder = Recorder(
        job, bench.store, Redactor(), lease_ms=given.lease_ms, renew_every_ms=given.lease_renew_ms
    )
    written: list[tuple[float, float]] = []
    write = bench.store.write

    def noted(found: Job, change: Change = NOTHING_ELSE) -> Job:
        assert found.lease_until is not None
        written.append((clock[0], (found.lease_until - start).total_seconds()))
        return write(found, change)

    def waited(left: float | None = None) -> bool:
        clock[0] += left or 0
        if clock[0] > 60:
            recorder.close()
        return True

    monkeypatch.setattr(bench.store, "write", noted)
    monkeypatch.setattr(recorder._reports.changed, "wait", waited)
    before = bench.store.requests["get"]
    recorder._keep()
    assert written == [(20.0, 80.0), (40.0, 100.0), (60.0, 120.0)]
    assert bench.store.requests["get"] - before == 9
