"""What health reads out of the job store, and in how many requests."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.jobs import health, keys, model
from shared.jobs.health import Waiting, last_run, reaper_check, waiting, waiting_check
from shared.jobs.last_run import STATE, LastRun
from shared.jobs.model import Job, Status
from shared.jobs.reaper import Reaper
from shared.jobs.testing import MemoryJobStore
from shared.jobs.window import Window
from tests.unit.jobs.test_keys_and_rows import a_job

NOW = model.utc_now().replace(microsecond=0)
MINUTE = timedelta(minutes=1)
EVERY_FIVE = "0 */5 * * * *"


def made(store: MemoryJobStore, minutes: int, **values: Any) -> Job:
    """A job, pending if nothing else is said, made so many minutes ago."""
    at = NOW - minutes * MINUTE
    job_id = keys.new_job_id(int(at.timestamp() * 1000))
    return store.create(a_job(job_id=job_id, created_at=at, **values), b"sealed")


def reap(store: MemoryJobStore, now: datetime = NOW, budget: int = 1_000) -> None:
    Reaper(
        store, retention=timedelta(days=7), budget=budget, on_poison=lambda body: None, clock=lambda: now
    ).run()


def look(store: MemoryJobStore) -> Waiting:
    return waiting(store, until=time.monotonic() + 60)


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


class TestWaiting:
    def test_the_oldest_of_all_owners_counts(self, store: MemoryJobStore) -> None:
        made(store, 1)
        oldest = made(store, 9, owner="ana")
        made(store, 20, status=Status.COMPLETED)
        store.write(model.claim(made(store, 30), NOW, 60_000))
        store.requests.clear()
        assert look(store) == Waiting(2, oldest.created_at, oldest.job_id, complete=True)
        assert store.requests == Counter(scan=1)

    def test_a_window_waits_for_a_person_and_not_for_a_worker(self, store: MemoryJobStore) -> None:
        made(store, 50, window=Window())
        assert look(store) == Waiting()

    def test_a_job_that_was_given_back_waits_since_then(self, store: MemoryJobStore) -> None:
        job = store.write(model.claim(made(store, 50), NOW - 49 * MINUTE, 60_000))
        store.write(model.requeue(job, NOW - 3 * MINUTE))
        assert look(store).since == NOW - 3 * MINUTE

    def test_a_job_that_was_sent_again_waits_since_it_was_made(self, store: MemoryJobStore) -> None:
        store.write(model.resend(made(store, 50), NOW))
        assert look(store).since == NOW - 50 * MINUTE

    def test_a_cut_scan_says_so_and_takes_what_the_reaper_has_seen(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        oldest = made(store, 14)
        for number in range(6):
            made(store, number)
        reap(store)
        monkeypatch.setattr(health, "PAGE", 1)
        store.requests.clear()
        found = look(store)
        assert (found.complete, found.count) == (False, health.SCANS)
        assert (found.since, found.job_id) == (oldest.created_at, oldest.job_id)
        assert store.requests == Counter(scan=health.SCANS, get_state=1, get=1)
        assert store.requests.total() + 4 <= health.MOST_REQUESTS

        store.write(model.claim(oldest, NOW, 60_000))  # it has been taken since
        found = look(store)
        assert found.since == NOW - (health.SCANS - 1) * MINUTE

    def test_no_request_begins_when_time_is_up(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(6):
            made(store, number)
        monkeypatch.setattr(health, "PAGE", 1)
        store.requests.clear()
        found = waiting(store, until=time.monotonic())
        assert (found.count, found.complete) == (1, False)
        assert store.requests == Counter(scan=1)

    def test_it_is_well_until_a_second_message_was_of_no_use(self) -> None:
        assert waiting_check(Waiting(), NOW).ok
        assert waiting_check(Waiting(1, NOW - 29 * MINUTE, "x"), NOW).ok
        late = waiting_check(Waiting(1, NOW - 30 * MINUTE, "x"), NOW)
        assert not late.ok
        assert late.detail["oldestSeconds"] == 1800


class TestReaper:
    def test_each_run_leaves_its_time_and_what_it_did(self, store: MemoryJobStore) -> None:
        assert last_run(store) is None
        job = store.write(model.claim(made(store, 5, max_attempts=1), NOW - 4 * MINUTE, 60_000))
        waits = made(store, 3)
        reap(store)
        run = last_run(store)
        assert run is not None
        assert (run.at, run.oldest_pending) == (NOW, waits.job_id)
        assert (run.did["repaired"], run.did["outOfRequests"]) == (1, False)
        assert job.job_id != waits.job_id

    def test_a_run_without_requests_left_is_noted_too(self, store: MemoryJobStore) -> None:
        reap(store, budget=1)
        run = last_run(store)
        assert run is not None
        assert run.did["outOfRequests"] is True
        assert store.requests == Counter(put_state=1, get_state=1)

    def test_a_run_that_cannot_be_noted_is_a_run_all_the_same(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        waits = made(store, 16)

        def broken(name: str, value: str) -> None:
            raise ConnectionError

        monkeypatch.setattr(store, "put_state", broken)
        reap(store)
        assert [waits.job_id in body for body in store.messages] == [True]
        assert "its run could not be noted" in caplog.text

    @pytest.mark.parametrize(
        "text", ["", "no", "{}", "[]", '{"at": "2026-01-01T00:00:00", "oldestPending": null}']
    )
    def test_a_row_of_another_version_is_no_run(self, store: MemoryJobStore, text: str) -> None:
        store.put_state(STATE, text)
        assert last_run(store) is None

    def test_it_is_late_when_a_run_was_due_ten_minutes_ago_and_did_not_come(self) -> None:
        noon = NOW.replace(hour=12, minute=0, second=0)

        def ok(minutes: int, expression: str = EVERY_FIVE) -> bool:
            return reaper_check(LastRun(noon, {}), expression, noon + minutes * MINUTE, noon).ok

        assert [ok(0), ok(14), ok(15), ok(60)] == [True, True, False, False]
        assert ok(23 * 60, "0 0 12 * * *"), "a schedule of once a day is no reason to worry at night"
        assert not ok(24 * 60 + 11, "0 0 12 * * *")

    def test_without_any_run_the_process_has_its_time(self) -> None:
        noon = NOW.replace(hour=12, minute=0, second=0)
        assert reaper_check(None, EVERY_FIVE, noon + 14 * MINUTE, noon + timedelta(seconds=1)).ok
        assert not reaper_check(None, EVERY_FIVE, noon + 15 * MINUTE, noon + timedelta(seconds=1)).ok
