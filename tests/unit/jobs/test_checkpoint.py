"""What a job keeps between its attempts: found by the next one, by nobody else, and gone at the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shared.errors import JobCancelledError, LostLeaseError, ToolError
from shared.jobs import checkpoint as checkpoints
from shared.jobs import keys, model
from shared.jobs.cancel import cancel
from shared.jobs.checkpoint import JobCheckpoint, Kept, Run
from shared.jobs.logs import Level
from shared.jobs.model import ErrorCode, Job, Status, utc_now
from shared.jobs.payload import Sealer
from shared.jobs.recorder import Recorder
from shared.jobs.repair import repaired
from shared.jobs.store import NOTHING_ELSE, Change
from shared.jobs.testing import run_headless
from shared.redaction import Redactor
from shared.tool import Context, ToolAnnotations, tool
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.jobs.bench import SEALER, Bench

AGAIN: dict[str, Any] = {"annotations": ToolAnnotations(idempotent=True)}


class Attempt:
    """A first attempt whose worker can be lost at any moment."""

    def __init__(self, bench: Bench, job: Job) -> None:
        self.bench = bench
        self.job = bench.store.write(model.claim(bench.job(job), utc_now(), 60_000))
        options = {"lease_ms": 60_000, "renew_every_ms": 20_000}
        self.recorder = Recorder(self.job, bench.store, Redactor(), **options)
        self.checkpoint = JobCheckpoint(
            self.job, bench.store, SEALER, Kept(), self.recorder.keep, lambda: self.recorder.over
        )

    def flush(self) -> None:
        """The recorder's next write."""
        self.recorder._write()

    def lost(self) -> None:
        """The process is gone, and its lease runs out."""
        self.recorder.close()
        now = self.bench.job(self.job)
        self.bench.store.write(replace(now, lease_until=utc_now()))


def resuming(seen: list[Any]) -> Callable[..., dict[str, int]]:
    def work(*, context: Context) -> dict[str, int]:
        seen.append((context.checkpoint.value, list(context.checkpoint.parts())))
        return {"n": 1}

    return work


def second_attempt(bench: Bench, job: Job) -> Job:
    bench.deliver(json.dumps({"jobId": job.job_id}))
    return bench.job(job)


def left(bench: Bench) -> list[str]:
    """What is stored of checkpoints."""
    found = [name for name in bench.store.blobs if "/part-" in name]
    return found + [row_key for _, row_key in bench.store.rows if row_key == keys.CHECKPOINT_ROW]


def test_the_next_attempt_finds_what_was_flushed() -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"sentinel one")
    first.checkpoint.save({"page": 2}, b"sentinel two")
    first.checkpoint.save({"page": 2, "note": "sentinel"})
    first.flush()
    first.checkpoint.save({"page": 3}, b"sentinel three")  # a kill before the next flush
    first.lost()
    assert "sentinel" not in repr(bench.store.rows)
    assert not any(b"sentinel" in data for data in bench.store.blobs.values())

    ended = second_attempt(bench, first.job)
    assert (ended.status, ended.attempt, ended.kept) == (Status.COMPLETED, 2, False)
    assert seen == [({"page": 2, "note": "sentinel"}, [b"sentinel one", b"sentinel two"])]
    assert left(bench) == []


def test_a_first_attempt_finds_nothing() -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    bench.submit()
    bench.deliver()
    assert seen == [(None, [])]


def test_a_third_attempt_finds_the_parts_of_both() -> None:
    seen: list[Any] = []

    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    first.flush()
    first.lost()
    again = bench.store.write(model.expire(bench.job(first.job), utc_now()))
    opened = bench.store.open(again.job_id)
    assert opened is not None
    found = checkpoints.open_kept(again, opened.kept, SEALER)
    second = Attempt(bench, again)
    second.checkpoint = JobCheckpoint(
        second.job, bench.store, SEALER, found, second.recorder.keep, lambda: second.recorder.over
    )
    second.checkpoint.save({"page": 2}, b"two")
    second.flush()
    second.lost()
    second_attempt(bench, first.job)
    assert seen == [({"page": 2}, [b"one", b"two"])]
    assert left(bench) == []


def test_a_lost_worker_that_wakes_up_changes_nothing() -> None:
    seen: list[Any] = []
    first: Attempt

    def work(*, context: Context) -> dict[str, int]:
        first.checkpoint.save({"page": 8}, b"late")  # it does not know yet
        first.flush()
        with pytest.raises(JobCancelledError):
            first.checkpoint.save({"page": 9}, b"later")
        seen.append((context.checkpoint.value, list(context.checkpoint.parts())))
        return {"n": 1}

    bench = Bench(work, **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    first.flush()
    # It has more to write, and is stopped before it does.
    first.checkpoint.save({"page": 2}, b"two")
    now = bench.job(first.job)
    bench.store.write(replace(now, lease_until=utc_now()))
    ended = second_attempt(bench, first.job)
    assert ended.status is Status.COMPLETED, ended.error
    assert seen == [({"page": 1}, [b"one"])]
    assert left(bench) == []


def test_what_was_cleared_is_not_found() -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    first.flush()
    first.checkpoint.clear()
    first.checkpoint.save({"page": 7}, b"seven")
    first.flush()
    first.lost()
    second_attempt(bench, first.job)
    assert seen == [({"page": 7}, [b"seven"])]
    assert left(bench) == []


def test_an_attempt_that_cleared_finds_nothing_itself() -> None:
    bench = Bench(lambda: None, **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    found = JobCheckpoint(
        first.job, bench.store, SEALER, Kept({"page": 1}, (Run(1, 0, 1),)), first.recorder.keep, lambda: None
    )
    assert list(found.parts()) == [b"one"]
    found.clear()
    assert (found.value, list(found.parts())) == (None, [])


def raises(*, context: Context) -> None:
    context.checkpoint.save({"a": 1}, b"part")
    raise ValueError


def completes(*, context: Context) -> dict[str, int]:
    context.checkpoint.save({"a": 1}, b"part")
    return {"n": 1}


@pytest.mark.parametrize(("work", "status"), [(raises, Status.FAILED), (completes, Status.COMPLETED)])
def test_nothing_is_left_when_the_attempt_that_kept_it_ends(work: Callable[..., Any], status: Status) -> None:
    bench = Bench(work)
    job = bench.submit()
    bench.deliver()
    assert bench.job(job).status is status
    assert left(bench) == []


@pytest.mark.parametrize("by", ["cancel", "lost for good", "given up"])
def test_nothing_is_left_when_the_job_ends_without_an_attempt(by: str) -> None:
    bench = Bench(lambda: None, max_attempts=1 if by == "lost for good" else 3)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    first.flush()
    assert bench.job(first.job).kept
    first.lost()
    match by:
        case "cancel":
            pending = bench.store.write(model.expire(bench.job(first.job), utc_now()))
            assert pending.kept
            cancel(first.job.job_id, "default", bench.store)
        case "lost for good":
            assert repaired(bench.job(first.job), bench.store).error_code is ErrorCode.WORKER_LOST
        case "given up":
            bench.worker.give_up(json.dumps({"jobId": first.job.job_id}))
    assert bench.job(first.job).status is Status.FAILED
    assert left(bench) == []


def test_a_job_that_keeps_nothing_pays_nothing() -> None:
    bench = Bench(lambda: None, **AGAIN)
    bench.submit()
    bench.deliver()
    assert bench.store.requests == {"create": 1, "send": 1, "open": 1, "write": 2}


def test_what_cannot_be_opened_is_begun_anew() -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    other = Sealer((b"o" * 32,))
    lost_key = JobCheckpoint(first.job, bench.store, other, Kept(), first.recorder.keep, lambda: None)
    lost_key.save({"page": 1}, b"one")
    first.flush()
    first.lost()
    job = second_attempt(bench, first.job)
    assert (job.status, seen) == (Status.COMPLETED, [(None, [])])
    assert any("what an earlier attempt has kept cannot be read" in line for line in bench.lines(job))
    assert left(bench) == []


def test_a_flush_whose_answer_was_lost_is_known_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(lambda: None, **AGAIN)
    first = Attempt(bench, bench.submit())
    write = bench.store.write

    def answer_lost(job: Job, change: Change = NOTHING_ELSE) -> Job:
        write(job, change)
        raise ConnectionError

    monkeypatch.setattr(bench.store, "write", answer_lost)
    first.checkpoint.save({"page": 1})
    first.flush()
    monkeypatch.setattr(bench.store, "write", write)
    assert left(bench) == ["checkpoint"]
    ended = first.recorder.finish(
        lambda job: model.fail(job, utc_now(), ErrorCode.TOOL_ERROR, "x"), (Level.INFO, "end")
    )
    assert (ended.kept, left(bench)) == (False, [])


def test_a_flush_that_did_not_go_through_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    write = bench.store.write

    def refused(job: Job, change: Change = NOTHING_ELSE) -> Job:
        raise ConnectionError

    monkeypatch.setattr(bench.store, "write", refused)
    first.checkpoint.save({"page": 1})
    first.flush()
    monkeypatch.setattr(bench.store, "write", write)
    assert left(bench) == []
    first.flush()
    first.lost()
    second_attempt(bench, first.job)
    assert seen == [({"page": 1}, [])]


@pytest.mark.parametrize(
    ("value", "part", "fault"),
    [
        ({"x": "y" * 50_000}, b"", "it may have 49152"),
        ({"x": object()}, b"", "cannot be written as JSON"),
        ({"x": float("nan")}, b"", "cannot be written as JSON"),
        ([1], b"", "must be an object, not list"),
        ({}, "text", "must be bytes, not str"),
    ],
)
def test_what_cannot_be_kept_is_refused(value: Any, part: Any, fault: str) -> None:
    bench = Bench(lambda: None, **AGAIN)
    first = Attempt(bench, bench.submit())
    with pytest.raises(ToolError, match=fault):
        first.checkpoint.save(value, part)
    first.flush()
    assert left(bench) == []


def test_a_part_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PART_BYTES", 10)
    first = Attempt(bench := Bench(lambda: None), bench.submit())
    first.checkpoint.save({}, b"x" * 10)
    with pytest.raises(ToolError, match="has 11 bytes"):
        first.checkpoint.save({}, b"x" * 11)


def test_a_part_that_storage_refuses_leaves_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    bench = Bench(resuming(seen), **AGAIN)
    first = Attempt(bench, bench.submit())
    first.checkpoint.save({"page": 1}, b"one")
    put_blob = bench.store.put_blob

    def refused(name: str, data: bytes) -> None:
        put_blob(name, data)  # it may have been stored all the same
        raise ConnectionError("sentinel of storage")

    monkeypatch.setattr(bench.store, "put_blob", refused)
    with pytest.raises(ToolError, match=r"could not be stored \(ConnectionError\)"):
        first.checkpoint.save({"page": 2}, b"two")
    monkeypatch.setattr(bench.store, "put_blob", put_blob)
    first.checkpoint.save({"page": 3}, b"three")
    first.flush()
    first.lost()
    second_attempt(bench, first.job)
    assert seen == [({"page": 3}, [b"one", b"three"])]
    assert left(bench) == []


def test_a_part_that_arrives_after_the_end_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that was given up may still be storing one."""
    bench = Bench(lambda: None)
    first = Attempt(bench, bench.submit())
    put_blob = bench.store.put_blob

    def slow(name: str, data: bytes) -> None:
        first.recorder.finish(
            lambda job: model.fail(job, utc_now(), ErrorCode.TIMEOUT, ""), (Level.INFO, "end")
        )
        put_blob(name, data)

    monkeypatch.setattr(bench.store, "put_blob", slow)
    with pytest.raises(JobCancelledError):
        first.checkpoint.save({}, b"late")
    assert left(bench) == []


def test_the_end_of_a_job_that_was_lost_removes_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's own end does not go through because somebody else has ended the job."""
    bench = Bench(completes)
    job = bench.submit()
    bench_write = bench.store.write

    def write(job: Job, change: Change = NOTHING_ELSE) -> Job:
        if job.status is Status.COMPLETED:
            now = bench.job(job)
            bench_write(
                model.fail(now, utc_now(), ErrorCode.WORKER_LOST, "gone"),
                Change(drop_input=True, drop_kept=now.kept),
            )
            raise LostLeaseError
        return bench_write(job, change)

    monkeypatch.setattr(bench.store, "write", write)
    asyncio.run(bench.worker.handle(bench.store.messages.popleft()))
    assert bench.job(job).error == "gone"
    assert left(bench) == []


def test_a_call_without_a_job_keeps_nothing_and_may_ask() -> None:
    seen: list[Any] = []

    @tool(name="work", description="Works.", execution_modes=("inline", "headless"))
    def work(*, context: Context) -> dict[str, int]:
        context.checkpoint.save({"page": 1}, b"one")
        seen.append((context.checkpoint.value, list(context.checkpoint.parts())))
        context.checkpoint.clear()
        return {"n": 1}

    context = Context(
        tool_id="t", tool_name="t", invocation_mode=Mode.TWO_WAY, owner="o", timeout_ms=1,
        execution_mode=ExecutionMode.INLINE, correlation_id="x",
    )  # fmt: skip
    work(context=context)
    assert run_headless(work).result == {"n": 1}
    assert seen == [(None, []), (None, [])]
