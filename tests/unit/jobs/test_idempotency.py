"""A call that is sent again with its key gets the job that it made, and nobody learns anything from the key."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from shared.contract.envelope import CallPlan, Envelope, plan
from shared.errors import EnvelopeError, IdempotencyError, JobError
from shared.jobs import keys, model, repair
from shared.jobs import submit as submit_module
from shared.jobs.model import Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.store import KeyRow
from shared.jobs.submit import submit
from shared.tool.decorator import declared, tool
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.jobs.bench import SEALER, Bench

OLD, NEW = bytes(range(32)), bytes(range(1, 33))


def work(text: str = "", other: int = 0) -> str:
    return text


def other_work(text: str = "") -> str:
    return text


def call(
    bench: Bench,
    arguments: JsonObject | None = None,
    key: str | None = "the-key",
    *,
    owner: str = "default",
    sealer: Sealer = SEALER,
    spec: Any = None,
) -> Job:
    how = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 10_000, None, key)
    spec = spec or bench.entry.spec
    return asyncio.run(submit(spec, arguments or {}, how, owner=owner, store=bench.store, sealer=sealer))


def partitions(bench: Bench) -> set[str]:
    return {partition for partition, _ in bench.store.rows}


def test_the_same_call_gives_the_same_job_also_when_it_has_ended() -> None:
    bench = Bench(work)
    first = call(bench, {"text": "a", "other": 1})
    assert call(bench, {"other": 1, "text": "a"}).job_id == first.job_id
    assert len(bench.store.messages) == 1
    bench.deliver()
    again = call(bench, {"text": "a", "other": 1})
    assert (again.job_id, again.status) == (first.job_id, Status.COMPLETED)
    assert not bench.store.messages
    # One job and its key: whoever lost has left nothing.
    assert len(partitions(bench)) == 2
    assert bench.store.blobs == {}


def test_other_arguments_are_a_conflict_that_names_the_field() -> None:
    bench = Bench(work)
    first = call(bench, {"text": "a"})
    for arguments in ({"text": "b"}, {}, {"text": "a", "other": 0}, {"text": "a "}):
        with pytest.raises(IdempotencyError, match=r"^__pptb\.idempotencyKey: .* other arguments"):
            call(bench, arguments)
    assert len(partitions(bench)) == 2
    assert [json.loads(body)["jobId"] for body in bench.store.messages] == [first.job_id]


def test_the_key_belongs_to_its_owner_and_tool() -> None:
    bench = Bench(work)
    other = declared(tool(name="other", execution_modes=("headless",), description="x")(other_work))
    assert other is not None
    jobs = {
        call(bench, {"text": "a"}).job_id,
        call(bench, {"text": "b"}, owner="ana").job_id,
        call(bench, {"text": "c"}, spec=other.spec).job_id,
        call(bench, {"text": "d"}, "another-key").job_id,
        call(bench, {"text": "e"}, None).job_id,
        call(bench, {"text": "e"}, None).job_id,
    }
    assert len(jobs) == 6


def test_a_key_costs_one_request() -> None:
    bench = Bench(work)
    call(bench, key=None)
    without = bench.store.requests.total()
    call(bench)
    assert bench.store.requests.total() - without == without + 1


def test_ten_at_once_get_one_job() -> None:
    bench = Bench(work)
    gate = threading.Barrier(10)

    def one(_: int) -> str:
        gate.wait(20)
        return call(bench, {"text": "a"}).job_id

    with ThreadPoolExecutor(10) as pool:
        found = set(pool.map(one, range(10)))
    assert len(found) == 1
    assert len(bench.store.messages) == 1
    assert len(partitions(bench)) == 2


def test_a_large_input_of_a_call_that_lost_is_removed() -> None:
    bench = Bench(work)
    first = call(bench, {"text": "x" * 50_000})
    assert call(bench, {"text": "x" * 50_000}).job_id == first.job_id
    assert list(bench.store.blobs) == [keys.input_blob(first.job_id)]


def test_the_key_goes_with_its_job_and_may_be_used_again() -> None:
    bench = Bench(work)
    first = call(bench, {"text": "a"})
    bench.store.purge(first)
    assert partitions(bench) == set()
    second = call(bench, {"text": "other arguments"})
    assert second.job_id != first.job_id
    assert call(bench, {"text": "other arguments"}).job_id == second.job_id


def test_a_key_whose_job_is_gone_is_free() -> None:
    """Its row was left behind by a purge that was cut off."""
    bench = Bench(work)
    first = call(bench, {"text": "a"})
    for place in [place for place in bench.store.rows if place[0] == keys.partition_key(first.job_id)]:
        del bench.store.rows[place]
    second = call(bench, {"text": "b"})
    assert second.job_id != first.job_id
    assert call(bench, {"text": "b"}).job_id == second.job_id


def test_a_key_outlives_the_exchange_of_the_seal_key() -> None:
    bench = Bench(work)
    first = call(bench, {"text": "a"}, sealer=Sealer((OLD,)))
    rotated = Sealer((NEW, OLD))
    assert call(bench, {"text": "a"}, sealer=rotated).job_id == first.job_id
    with pytest.raises(IdempotencyError):
        call(bench, {"text": "b"}, sealer=rotated)
    bench.store.purge(first)
    second = call(bench, {"text": "b"}, sealer=rotated)
    assert call(bench, {"text": "b"}, sealer=Sealer((NEW,))).job_id == second.job_id


def test_neither_key_nor_arguments_can_be_found_in_storage() -> None:
    bench = Bench(work)
    call(bench, {"text": "sentinel-argument"}, "sentinel-key")
    bench.deliver()
    bench.store.rows = {
        place: {name: value for name, value in row.items() if name not in ("result", "lines")}
        for place, row in bench.store.rows.items()
    }
    stored = repr((bench.store.rows, bench.store.blobs, bench.store.messages))
    assert "sentinel" not in stored
    row = next(row for (_, name), row in bench.store.rows.items() if name == keys.KEY_ROW)
    other = Bench(work)
    call(other, {"text": "sentinel-argument"}, "sentinel-key", sealer=Sealer((NEW,)))
    # Under another seal key nothing is the same: nobody can try out what a key might have been.
    assert row["fingerprint"] not in repr(other.store.rows)
    assert not partitions(bench) & partitions(other)


def test_a_call_in_the_call_itself_refuses_a_key_by_name() -> None:
    entry = Bench(work).entry
    for asked, hint in (
        (Envelope(idempotency_key="k"), "set executionMode 'headless'"),
        (Envelope(idempotency_key="k", execution_mode=ExecutionMode.INLINE), "set executionMode 'headless'"),
    ):
        with pytest.raises(EnvelopeError, match=r"__pptb\.idempotencyKey") as told:
            plan(entry.spec, asked, max_timeout_ms=1_000, inline_timeout_ms=1_000)
        assert hint in str(told.value)


def test_a_call_that_cannot_settle_leaves_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(work)

    def broken(row: KeyRow) -> None:
        raise ConnectionError("table storage is down")

    monkeypatch.setattr(bench.store, "take_key", broken)
    with pytest.raises(ConnectionError):
        call(bench)
    assert bench.store.rows == {}
    assert not bench.store.messages


def test_a_key_that_never_settles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(work)

    def always(row: KeyRow) -> KeyRow:
        return KeyRow(row.key, keys.new_job_id(), "f", "stale")

    monkeypatch.setattr(bench.store, "take_key", always)
    with pytest.raises(JobError, match="send the call again"):
        call(bench)
    assert bench.store.rows == {}


class TestCutOff:
    """The process was killed between two of its requests."""

    def left(self, bench: Bench, monkeypatch: pytest.MonkeyPatch, step: str) -> Job:
        class Killed(BaseException):
            pass

        def killed(*_: Any, **__: Any) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(bench.store, step, killed)
            with pytest.raises(Killed):
                call(bench, {"text": "a"})
        ids = {row["jobId"] for (_, name), row in bench.store.rows.items() if name == keys.JOB_ROW}
        (job_id,) = ids
        job = bench.store.get(job_id)
        assert job is not None
        return job

    def test_before_the_key_nobody_knows_of_the_job_and_it_never_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(work)
        orphan = self.left(bench, monkeypatch, "take_key")
        second = call(bench, {"text": "a"})
        assert second.job_id != orphan.job_id
        later = model.utc_now() + timedelta(minutes=16)
        repair.repaired(orphan, bench.store, later)
        assert bench.store.get(orphan.job_id) is None
        assert [json.loads(body)["jobId"] for body in bench.store.messages] == [second.job_id]
        assert call(bench, {"text": "a"}).job_id == second.job_id

    def test_behind_the_key_the_job_is_the_next_calls_too_and_runs(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(work)
        job = self.left(bench, monkeypatch, "send")
        assert call(bench, {"text": "a"}).job_id == job.job_id
        assert not bench.store.messages
        repair.repaired(job, bench.store, model.utc_now() + timedelta(minutes=16))
        bench.deliver()
        assert bench.job(job).status is Status.COMPLETED

    def test_a_caller_that_asks_again_after_a_while_gets_it_going(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bench = Bench(work)
        job = self.left(bench, monkeypatch, "send")
        monkeypatch.setattr(submit_module, "HELP_AFTER", timedelta())
        assert call(bench, {"text": "a"}).job_id == job.job_id
        bench.deliver()
        assert bench.job(job).status is Status.COMPLETED
