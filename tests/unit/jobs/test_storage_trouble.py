"""Storage that refuses one request of a job's: nothing is lost, and nobody is told what is not so."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from shared.errors import LostLeaseError
from shared.jobs import answers, keys, model
from shared.jobs.model import Job, Status
from shared.jobs.store import NOTHING_ELSE, Change
from shared.tool import ToolAnnotations
from tests.unit.jobs.bench import Bench


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
