"""What the timer puts right, what it leaves alone, and what it costs."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.errors import InputError
from shared.jobs import keys, model, reaper, recorder
from shared.jobs.daily import Daily, Report
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.reaper import Reaper
from shared.jobs.store import NOTHING_ELSE, BlobPage, Change, KeyRow, Page, Query
from shared.jobs.testing import MemoryJobStore
from shared.tool import ToolAnnotations
from tests.unit.jobs.bench import Bench
from tests.unit.jobs.test_keys_and_rows import a_job

#: When the jobs of these tests are made.
THEN = model.utc_now().replace(microsecond=0)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
RETENTION = 7 * DAY


def made(store: MemoryJobStore, at: datetime = THEN, **values: Any) -> Job:
    """A pending job of that time."""
    job_id = keys.new_job_id(int(at.timestamp() * 1000))
    return store.create(a_job(job_id=job_id, created_at=at, **values), b"sealed")


def run(
    store: MemoryJobStore,
    now: datetime,
    budget: int = 1_000,
    on_poison: Callable[[str], None] = lambda body: None,
) -> Report:
    return Reaper(store, retention=RETENTION, budget=budget, on_poison=on_poison, clock=lambda: now).run()


def sent(store: MemoryJobStore) -> list[str]:
    found = [json.loads(body)["jobId"] for body in store.messages]
    store.messages.clear()
    return found


def got(store: MemoryJobStore, job: Job) -> Job:
    found = store.get(job.job_id)
    assert found is not None
    return found


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


class TestLostWorkers:
    def test_a_job_that_may_run_again_is_given_back(self, store: MemoryJobStore) -> None:
        job = store.write(model.claim(made(store, max_attempts=2), THEN, 60_000))
        assert run(store, THEN + timedelta(seconds=59)).repaired == 0
        assert run(store, THEN + MINUTE).repaired == 1
        found = got(store, job)
        assert (found.status, found.attempt, found.sent_at) == (Status.PENDING, 1, THEN + MINUTE)
        assert sent(store) == [job.job_id]
        assert run(store, THEN + MINUTE).repaired == 0

    def test_any_other_ends(self, store: MemoryJobStore) -> None:
        job = store.write(model.claim(made(store, max_attempts=1), THEN, 60_000))
        assert run(store, THEN + 2 * MINUTE).repaired == 1
        found = got(store, job)
        assert (found.status, found.error_code) == (Status.FAILED, ErrorCode.WORKER_LOST)
        assert found.completed_at == THEN + 2 * MINUTE
        assert (keys.partition_key(job.job_id), keys.INPUT_ROW) not in store.rows
        assert sent(store) == []

    def test_several_reapers_make_each_move_once(self, store: MemoryJobStore) -> None:
        """All see the same page before any of them writes."""
        jobs = [store.write(model.claim(made(store, max_attempts=2), THEN, 1)) for _ in range(4)]
        stale = store.scan(Query(), 100)
        scan = store.scan
        store.scan = lambda query, limit, token=None: (  # type: ignore[method-assign]
            stale if Status.PENDING in query.statuses else scan(query, limit, token)
        )
        for _ in range(3):
            run(store, THEN + MINUTE)
        assert Counter(sent(store)) == Counter(job.job_id for job in jobs)
        assert {got(store, job).status for job in jobs} == {Status.PENDING}


class TestLostMessages:
    def test_they_are_sent_again_after_15_minutes_then_ever_later(self, store: MemoryJobStore) -> None:
        job = made(store)
        moments = [
            minute
            for minute in range(22 * 60)
            if run(store, THEN + minute * MINUTE).repaired and sent(store) == [job.job_id]
        ]
        assert moments == [15, 15 + 30, 15 + 30 + 60, 225, 465, 945]
        assert got(store, job).sends == 7

    def test_a_job_that_is_sent_again_runs(self) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.messages.clear()
        run(bench.store, job.created_at + 15 * MINUTE)
        bench.deliver()
        assert bench.job(job).status is Status.COMPLETED

    def test_a_message_that_cannot_be_sent_now_is_sent_later(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = made(store)

        def broken(job_id: str) -> None:
            raise ConnectionError

        with monkeypatch.context() as patch:
            patch.setattr(store, "send", broken)
            run(store, THEN + 15 * MINUTE)
        run(store, THEN + 45 * MINUTE)
        assert sent(store) == [job.job_id]


class TestRanges:
    def test_older_jobs_are_left_to_the_daily_run(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        run(store, now)
        old = made(store, now - DAY - MINUTE)
        young = made(store, now - DAY + 3 * MINUTE)
        run(store, now + MINUTE)
        assert sent(store) == [young.job_id]
        run(store, now + DAY)
        assert old.job_id in sent(store)

    def test_each_job_is_in_one_of_the_ranges(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        jobs = [made(store, now - hours * HOUR) for hours in (1, 23, 24, 25, 100, 600)]
        queries: list[Query] = []
        scan = store.scan

        def watched(query: Query, limit: int, token: str | None = None) -> Page:
            page = scan(query, limit, token)
            if Status.PENDING in query.statuses:
                queries.append(query)
                seen.update(job.job_id for job in page.jobs)
            return page

        seen: Counter[str] = Counter()
        store.scan = watched  # type: ignore[method-assign]
        run(store, now)
        assert seen == Counter(job.job_id for job in jobs)
        assert [bool(query.start) for query in queries] == [False, True]


class TestBudget:
    def test_an_idle_run_costs_five_requests_and_the_daily_one_three_more(self, store: MemoryJobStore) -> None:
        for status in (Status.COMPLETED, Status.FAILED, Status.PENDING):
            made(store, status=status, completed_at=THEN)
        run(store, THEN + MINUTE)
        assert store.requests - Counter(create=3) == Counter(
            scan=3, drain_poison=1, get_state=1, blob_page=1, put_state=2
        )
        store.requests.clear()
        run(store, THEN + 2 * MINUTE)
        assert store.requests == Counter(scan=2, drain_poison=1, get_state=1, put_state=1)

    def test_what_does_not_fit_into_a_run_is_done_by_the_next_ones(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reaper, "PAGE", 20)
        now = THEN + 30 * DAY
        old = [made(store, now - 2 * DAY - number * MINUTE) for number in range(20)]
        young = [made(store, now - HOUR - number * MINUTE) for number in range(20)]
        resent: Counter[str] = Counter()
        runs = 0
        while resent.total() < 40:
            runs += 1
            assert runs < 20
            before = store.requests.total()
            # Close in time, so that nothing is due twice.
            report = run(store, now + runs * timedelta(seconds=1), budget=30)
            assert store.requests.total() - before <= 30 + 2 * reaper.REPAIR_COST
            assert report.spent() or resent.total() + report.repaired == 40
            resent.update(sent(store))
        assert resent == Counter(job.job_id for job in old + young)
        assert runs > 2

    def test_the_daily_work_goes_on_where_it_stopped(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reaper, "PAGE", 1)
        now = THEN + 30 * DAY
        for number in range(12):
            made(store, now - 2 * DAY - number * MINUTE, sent_at=now, sends=7)  # pending, not due
        tokens: list[str | None] = []
        scan = store.scan

        def watched(query: Query, limit: int, token: str | None = None) -> Page:
            if Status.PENDING in query.statuses and query.start:
                tokens.append(token)
            return scan(query, limit, token)

        store.scan = watched  # type: ignore[method-assign]
        for number in range(6):
            run(store, now + number * 5 * MINUTE, budget=10)
        assert tokens[0] is None
        assert len(tokens) == len(set(tokens)) == 12
        daily = Daily.from_text(store.get_state("daily"))
        assert daily is not None
        assert (daily.done, daily.started) == (True, now)

    @pytest.mark.parametrize(
        "text", ["", "no json", "[]", "{}", '["yesterday", true, null, ""]', "[1, 2, 3, 4]"]
    )
    def test_a_state_that_makes_no_sense_is_begun_anew(self, store: MemoryJobStore, text: str) -> None:
        store.put_state("daily", text)
        run(store, THEN)
        daily = Daily.from_text(store.get_state("daily"))
        assert daily == Daily(THEN, jobs_done=True, marker=None)

    def test_a_place_that_storage_does_not_know_is_begun_anew(
        self, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scan = store.scan

        def strict(query: Query, limit: int, token: str | None = None) -> Page:
            if token is not None:
                raise InputError("no such place")
            return scan(query, limit, token)

        monkeypatch.setattr(store, "scan", strict)
        store.put_state("daily", Daily(THEN, token="from another account").to_text())
        run(store, THEN + MINUTE)
        run(store, THEN + 2 * MINUTE)
        daily = Daily.from_text(store.get_state("daily"))
        assert daily == Daily(THEN + MINUTE, jobs_done=True, marker=None)


class TestTrouble:
    def test_one_broken_job_does_not_stop_the_others(
        self, store: MemoryJobStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        jobs = [store.write(model.claim(made(store), THEN, 1)) for _ in range(3)]
        ended = [
            made(store, THEN - 8 * DAY, status=Status.FAILED, completed_at=THEN - 8 * DAY) for _ in range(3)
        ]
        write, purge = store.write, store.purge

        def broken_write(job: Job, change: Change = NOTHING_ELSE) -> Job:
            if job.job_id == jobs[1].job_id:
                raise RuntimeError("broken")
            return write(job, change)

        def broken_purge(job: Job) -> int:
            if job.job_id == ended[1].job_id:
                raise RuntimeError("broken")
            return purge(job)

        store.write, store.purge = broken_write, broken_purge  # type: ignore[method-assign]
        report = run(store, THEN + MINUTE)
        assert (report.repaired, report.purged) == (2, 2)
        assert {jobs[1].job_id, ended[1].job_id} <= {
            word.rstrip(":") for record in caplog.records for word in record.getMessage().split()
        }
        store.write, store.purge = write, purge  # type: ignore[method-assign]
        report = run(store, THEN + MINUTE)
        assert (report.repaired, report.purged) == (1, 1)

    def test_a_row_that_cannot_be_read_does_not_hide_the_others(self, store: MemoryJobStore) -> None:
        jobs = [made(store, max_attempts=9) for _ in range(3)]
        del store.rows[keys.partition_key(jobs[1].job_id), keys.JOB_ROW]["createdAt"]
        run(store, THEN + 15 * MINUTE)
        assert set(sent(store)) == {jobs[0].job_id, jobs[2].job_id}

    @pytest.mark.parametrize("step", ["scan", "drain_poison", "get_state", "blob_page"])
    def test_a_step_that_fails_does_not_stop_the_others(
        self, step: str, store: MemoryJobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made(store)
        made(store, THEN - 8 * DAY, status=Status.FAILED, completed_at=THEN - 8 * DAY)
        store.poison.append(base64.b64encode(b"{}").decode())

        def broken(*_: Any) -> Any:
            raise ConnectionError(step)

        monkeypatch.setattr(store, step, broken)
        report = run(store, THEN + 15 * MINUTE)
        done = (report.repaired, report.purged, report.poison)
        assert done == {"scan": (0, 0, 1), "drain_poison": (1, 1, 0)}.get(step, (1, 1, 1))


class TestBodies:
    def test_what_belongs_to_no_job_goes_after_an_hour(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY

        def bodies(at: datetime, job: Job | None = None) -> list[str]:
            job_id = keys.new_job_id(int(at.timestamp() * 1000)) if job is None else job.job_id
            names = [f"{job_id}/in", keys.part_blob(job_id, 1, 0)]
            names += [f"{job_id}/result-1", f"{job_id}/artifact-1/a.txt"]
            for name in names:
                store.put_blob(name, b"x")
            return names

        orphaned = bodies(now - HOUR - MINUTE) + bodies(now - 20 * DAY)
        young = bodies(now - HOUR + MINUTE)
        lives = bodies(now, made(store, now - 2 * HOUR, sent_at=now))
        ended = bodies(now, made(store, now - 2 * HOUR, status=Status.COMPLETED, completed_at=now))
        store.put_blob("somebody-elses", b"x")
        report = run(store, now)
        assert report.orphans == 4 + 4 + 2
        # Of a job that has ended, what is sealed goes: whoever ended it could not remove it.
        assert set(store.blobs) == {*young, *lives, *ended[2:], "somebody-elses"}
        assert not set(orphaned) & set(store.blobs)

    def test_many_pages_take_several_runs_and_each_page_is_looked_at_once(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        store.blob_page_size = 4
        for number in range(40):
            store.put_blob(f"{keys.new_job_id(int((now - 2 * HOUR).timestamp() * 1000) + number)}/in", b"x")
        markers: list[str] = []
        blob_page = store.blob_page

        def watched(marker: str) -> BlobPage:
            markers.append(marker)
            return blob_page(marker)

        store.blob_page = watched  # type: ignore[method-assign]
        runs = 0
        while store.blobs:
            runs += 1
            assert runs < 20
            before = store.requests.total()
            run(store, now + runs * MINUTE, budget=20)
            # A page that was begun is finished.
            assert store.requests.total() - before <= 20 + 2 * store.blob_page_size + 1
        assert runs > 2
        assert len(markers) == len(set(markers))


class TestPoison:
    def poisoned(self, bench: Bench, body: str) -> Report:
        bench.store.poison.append(body)
        return run(bench.store, model.utc_now(), on_poison=bench.worker.give_up)

    def test_a_jobs_message_fails_the_job_with_the_last_error(self) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        bench.store.write(replace(bench.job(job), delivery_error="ConnectionError: table storage is down"))
        body = base64.b64encode(json.dumps({"jobId": job.job_id}).encode()).decode()
        assert self.poisoned(bench, body).poison == 1
        ended = bench.job(job)
        assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.POISONED)
        assert ended.error.endswith("The last error: ConnectionError: table storage is down")
        assert (keys.partition_key(job.job_id), keys.INPUT_ROW) not in bench.store.rows
        assert not bench.store.poison

    def test_deliveries_that_fail_leave_their_error_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bench = Bench(lambda: "ok", annotations=ToolAnnotations(idempotent=True))
        job = bench.submit(token="sentinel-token")
        body = bench.store.messages.popleft()
        write = bench.store.write

        def broken(found: Job, change: Change = NOTHING_ELSE) -> Job:
            if found.status.terminal and found.error_code is not ErrorCode.POISONED:
                raise ConnectionError("no end for sentinel-token")
            return write(found, change)

        monkeypatch.setattr(recorder, "END_EVERY", HOUR)  # longer than the lease: it is not tried again
        monkeypatch.setattr(bench.store, "write", broken)
        with pytest.raises(ConnectionError):
            bench.deliver(body)
        self.poisoned(bench, base64.b64encode(body.encode()).decode())
        ended = bench.job(job)
        assert ended.error_code is ErrorCode.POISONED
        assert ended.error.endswith("The last error: ConnectionError: no end for [redacted]")

    @pytest.mark.parametrize("body", ["sentinel, no base64!", "séntinel", "sentinel=", "sentinels" * 8_000])
    def test_what_nobody_can_decode_is_logged_by_its_hash_alone(
        self, body: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench = Bench(lambda: None)
        job = bench.submit()
        assert self.poisoned(bench, body).poison == 1
        assert "SHA-256" in caplog.text
        assert "ntinel" not in caplog.text
        assert not bench.store.poison
        assert bench.job(job).status is Status.PENDING

    def test_base64_of_something_else_is_dropped_without_its_text(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench = Bench(lambda: None)
        for inner in (b"sentinel", b'{"jobId": "sentinel"}', b"\xff\xfe", json.dumps({"jobId": None}).encode()):
            self.poisoned(bench, base64.b64encode(inner).decode())
        assert "sentinel" not in caplog.text
        assert bench.store.rows.keys() == {(keys.STATE_PARTITION, "daily"), (keys.STATE_PARTITION, "reaper")}

    def test_one_that_cannot_be_dealt_with_stops_no_other_and_is_for_the_next_run(
        self, store: MemoryJobStore
    ) -> None:
        taken: list[str] = []

        def on_poison(body: str) -> None:
            taken.append(body)
            if body == "one" and len(taken) == 1:
                raise ConnectionError

        store.poison.extend(base64.b64encode(body).decode() for body in (b"one", b"two"))
        assert run(store, THEN, on_poison=on_poison).poison == 2
        assert taken[:2] == ["one", "two"]
        assert taken.count("one") == 2
        assert not store.poison

    def test_one_that_can_never_be_dealt_with_does_not_keep_a_run_busy(self, store: MemoryJobStore) -> None:
        def on_poison(body: str) -> None:
            raise ConnectionError

        store.poison.append(base64.b64encode(b"one").decode())
        assert run(store, THEN, on_poison=on_poison).poison == 0
        assert len(store.poison) == 1


class TestRetention:
    def whole(self, store: MemoryJobStore, at: datetime, **values: Any) -> Job:
        """A job with everything that a job may have."""
        job = made(store, at, idempotency=keys.new_job_id(), **values)
        assert store.take_key(KeyRow(job.idempotency, job.job_id, "f")) is None
        ring = LogRing()
        ring.append(Level.INFO, "line", at)
        job = store.write(job, Change(tuple(ring.take_dirty())))
        for name in ("in", "result-1"):
            store.put_blob(f"{job.job_id}/{name}", b"x")
        store.put_artifact(keys.artifact_blob(job.job_id, 1, "a.txt"), b"x", "text/plain")
        return job

    def left(self, store: MemoryJobStore) -> set[str]:
        partitions = {partition for partition, _ in store.rows if partition != keys.STATE_PARTITION}
        jobs = {keys.job_id_of(partition) for partition in partitions if not partition.startswith("key-")}
        owned = {row["jobId"] for row in store.rows.values() if row["RowKey"] == keys.KEY_ROW}
        assert owned == jobs == {name.partition("/")[0] for name in store.blobs}
        return jobs

    def test_what_ended_long_ago_goes_with_all_that_belongs_to_it(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        old, end = now - 8 * DAY, now - 7 * DAY - MINUTE
        gone = [
            self.whole(store, old, status=Status.COMPLETED, completed_at=end),
            self.whole(store, old, status=Status.FAILED, completed_at=end),
        ]
        kept = [
            # Ended lately, although made long ago; still open; young.
            self.whole(store, old, status=Status.COMPLETED, completed_at=end + 2 * MINUTE),
            self.whole(store, old, status=Status.PENDING, sent_at=now),
            self.whole(store, old, status=Status.IN_PROGRESS, lease_until=now + MINUTE),
            self.whole(store, now - HOUR, status=Status.COMPLETED, completed_at=now),
        ]
        for job in kept:
            store.delete_blob(keys.input_blob(job.job_id))
        report = run(store, now)
        assert (report.purged, report.orphans) == (len(gone), 0)
        assert self.left(store) == {job.job_id for job in kept}

    def test_a_purge_that_was_cut_off_is_repeated(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        job = self.whole(store, THEN, status=Status.COMPLETED, completed_at=THEN)
        # Blobs and key were gone already.
        for name in list(store.blobs):
            store.delete_blob(name)
        del store.rows[keys.key_partition(job.idempotency), keys.KEY_ROW]
        assert run(store, now).purged == 1
        assert self.left(store) == set()

    def test_it_takes_as_many_runs_as_it_needs(self, store: MemoryJobStore) -> None:
        now = THEN + 30 * DAY
        for number in range(30):
            made(store, THEN + number * MINUTE, status=Status.FAILED, completed_at=THEN + DAY)
        runs = 0
        while any(name == keys.JOB_ROW for _, name in store.rows):
            runs += 1
            assert runs < 20
            report = run(store, now + runs * MINUTE, budget=50)
            assert report.purged <= 50 // reaper.PURGE_COST + 1
        assert runs > 2
