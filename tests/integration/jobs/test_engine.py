"""The engine on a real storage account: what depends on how storage itself behaves."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError

from shared.contract.envelope import CallPlan
from shared.errors import IdempotencyError
from shared.jobs import artifacts, keys, model
from shared.jobs.cancel import cancel
from shared.jobs.listing import Lister
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.reaper import Reaper
from shared.jobs.store import POISON_QUEUE, QUEUE, KeyRow
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool import Context, tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.jobs.bench import SEALER, SETTINGS
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration


@tool(name="work", description="Works.", execution_modes=("headless",))
def work(text: str = "", *, context: Context) -> str:
    context.artifacts.write("a.txt", (part.encode() for part in ("of ", text[:5])))
    return text * 2


class Engine:
    """An engine on a storage account of its own."""

    def __init__(self, connection: str) -> None:
        self.storage = Storage(connection)
        self.store = TableJobStore(self.storage)
        entry = declared(work)
        assert entry is not None
        self.entry: ToolEntry = entry
        self.worker = Worker({"work": entry}, self.store, SEALER, SETTINGS)
        #: Requests made, as "GET table" and the like.
        self.requests: list[str] = []
        session = self.storage._transport.session
        assert session is not None
        send = session.request

        def request(*args: Any, **kwargs: Any) -> Any:
            self.requests.append(" ".join(str(arg) for arg in args[:2]))
            return send(*args, **kwargs)

        session.request = request

    def submit(
        self,
        arguments: JsonObject | None = None,
        key: str | None = None,
        owner: str = "default",
        sealer: Sealer = SEALER,
    ) -> Job:
        how = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 10_000, None, key)
        made = submit(self.entry.spec, arguments or {}, how, owner=owner, store=self.store, sealer=sealer)
        return asyncio.run(made)

    def run(self, job: Job) -> Job:
        asyncio.run(self.worker.handle(json.dumps({"jobId": job.job_id})))
        found = self.store.get(job.job_id)
        assert found is not None
        return found

    def messages(self) -> list[str]:
        """The job ids of all messages, which are taken."""
        queue = self.storage.queue(QUEUE)
        found = []
        for message in queue.receive_messages(messages_per_page=32):
            queue.delete_message(message)
            found.append(json.loads(message.content)["jobId"])
        return found

    def rows(self) -> list[Any]:
        return list(self.storage.table("jobs").list_entities())

    def blobs(self) -> set[str]:
        try:
            return set(self.storage.container("jobs").list_blob_names())
        except ResourceNotFoundError:
            return set()


@pytest.fixture(scope="module")
def connection(new_storage: Callable[[], str]) -> str:
    """Of an account of this module alone: its tests look at all that is stored."""
    return new_storage()


@pytest.fixture
def engine(connection: str) -> Iterator[Engine]:
    found = Engine(connection)
    yield found
    for row in found.rows():
        found.storage.table("jobs").delete_entity(row)
    for name in found.blobs():
        found.store.delete_blob(name)
    found.messages()


class TestIdempotency:
    def test_ten_at_once_get_one_job_and_the_losers_leave_nothing(self, engine: Engine) -> None:
        engine.submit()  # the table is there
        engine.messages()
        gate = threading.Barrier(10)

        def one(_: int) -> str:
            gate.wait(30)
            return engine.submit({"text": "x" * 40_000}, "the key").job_id

        with ThreadPoolExecutor(10) as pool:
            found = set(pool.map(one, range(10)))
        (job_id,) = found
        assert engine.messages() == [job_id]
        assert {row["RowKey"] for row in engine.rows() if row["PartitionKey"].startswith("key-")} == {"key"}
        assert len([row for row in engine.rows() if row["RowKey"] == keys.JOB_ROW]) == 2
        assert engine.blobs() == {keys.input_blob(job_id)}

    def test_a_key_costs_exactly_one_request(self, engine: Engine) -> None:
        for key in (None, "warm", "counted", None):
            engine.requests.clear()
            engine.submit({"text": "a"}, key)
            if key == "counted":
                counted = len(engine.requests)
        assert counted == len(engine.requests) + 1

    def test_it_belongs_to_owner_tool_and_arguments_and_goes_with_its_job(self, engine: Engine) -> None:
        first = engine.submit({"text": "a"}, "key")
        assert engine.submit({"text": "a"}, "key").job_id == first.job_id
        assert engine.submit({"text": "b"}, "key", owner="ana").job_id != first.job_id
        with pytest.raises(IdempotencyError, match="idempotencyKey"):
            engine.submit({"text": "b"}, "key")
        rotated = Sealer((bytes(32), bytes(range(32))))
        assert engine.submit({"text": "a"}, "key", sealer=rotated).job_id == first.job_id
        ended = engine.run(first)
        assert engine.submit({"text": "a"}, "key") == ended
        engine.store.purge(ended)
        assert engine.submit({"text": "b"}, "key").job_id != first.job_id

    def test_it_is_nowhere_in_storage(self, engine: Engine) -> None:
        engine.submit({"text": "sentinel-argument"}, "sentinel-key")
        assert "sentinel" not in repr(engine.rows())


class TestUpkeep:
    def reap(self, engine: Engine, now: Any, **options: Any) -> Any:
        given = {"retention": timedelta(days=7), "budget": 1_000, "on_poison": engine.worker.give_up, **options}
        return Reaper(engine.store, clock=lambda: now, **given).run()

    def test_a_whole_life(self, engine: Engine) -> None:
        """Sent again, run, kept, removed: with an orphan and poison on the way."""
        now = model.utc_now()
        job = engine.submit({"text": "y" * 40_000}, "key")
        lost = engine.store.write(model.claim(engine.submit(), now, 1_000))
        assert len(engine.messages()) == 2
        orphan = f"{keys.new_job_id(int((now - timedelta(hours=2)).timestamp() * 1000))}/in"
        engine.store.put_blob(orphan, b"x")
        poison = engine.storage.raw_queue(POISON_QUEUE)
        if POISON_QUEUE not in poison_queues(engine):
            poison.create_queue()
        given_up = engine.submit()
        poison.send_message("no base64")
        poison.send_message(base64.b64encode(json.dumps({"jobId": given_up.job_id}).encode()).decode())

        report = self.reap(engine, now + timedelta(minutes=16))
        assert (report.repaired, report.poison, report.orphans) == (3, 2, 1)
        assert job.job_id in engine.messages()
        statuses = {one.job_id: engine.store.get(one.job_id) for one in (lost, given_up)}
        assert [one.error_code for one in statuses.values() if one] == [
            ErrorCode.WORKER_LOST,
            ErrorCode.POISONED,
        ]
        assert orphan not in engine.blobs()

        ended = engine.run(job)
        assert ended.status is Status.COMPLETED, ended.error
        assert engine.blobs() == {f"{job.job_id}/result-1", f"{job.job_id}/artifact-1/a.txt"}
        assert self.reap(engine, now + timedelta(days=6)).purged == 0
        assert self.reap(engine, now + timedelta(days=8)).purged == 3
        assert engine.blobs() == set()
        # Where its daily scan stands, and when it ran last.
        assert [row["PartitionKey"] for row in engine.rows()] == [keys.STATE_PARTITION] * 2

    def test_an_idle_run_costs_five_requests(self, engine: Engine) -> None:
        now = model.utc_now()
        engine.run(engine.submit())
        self.reap(engine, now)
        engine.requests.clear()
        self.reap(engine, now + timedelta(minutes=5))
        assert len(engine.requests) == 5  # one of them writes down that it ran

    def test_several_at_once_make_each_move_once(self, engine: Engine) -> None:
        now = model.utc_now()
        jobs = [engine.submit() for _ in range(6)]
        engine.messages()
        gate = threading.Barrier(4)

        def one(_: int) -> None:
            gate.wait(30)
            self.reap(engine, now + timedelta(minutes=16))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(4)))
        assert sorted(engine.messages()) == sorted(job.job_id for job in jobs)

    def test_the_work_of_many_runs_comes_to_its_end(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Tokens and markers of storage itself, kept from run to run."""
        monkeypatch.setattr("shared.jobs.reaper.PAGE", 2)
        monkeypatch.setattr("shared.jobs.table_bodies.BLOB_PAGE", 2)
        now = model.utc_now()
        then = now - timedelta(days=2)
        milliseconds = int(then.timestamp() * 1000)
        for number in range(7):
            job_id = keys.new_job_id(milliseconds + number)
            engine.store.create(a_job(job_id=job_id, created_at=then), b"sealed")
            engine.store.put_blob(f"{keys.new_job_id(milliseconds + number)}/in", b"x")
        sent: list[str] = []
        for number in range(30):
            self.reap(engine, now + number * timedelta(seconds=1), budget=12)
            sent += engine.messages()
            if not engine.blobs():
                break
        assert len(sent) == len(set(sent)) == 7
        assert engine.blobs() == set()


class TestCancel:
    def test_it_gets_through_among_reports(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        """The worker writes in between each of the first tries, as many as it could in all its seconds."""
        running = engine.store.write(model.claim(engine.submit(), model.utc_now(), 60_000))
        get, left = engine.store.get, [10]

        def overtaken(job_id: str) -> Job | None:
            found = get(job_id)
            if left[0] and found is not None:
                left[0] -= 1
                engine.store.write(model.renew(found, model.utc_now(), 60_000))
            return found

        monkeypatch.setattr(engine.store, "get", overtaken)
        assert cancel(running.job_id, "default", engine.store).cancel_requested
        assert left == [0]

    def test_a_pending_job_is_gone_for_every_worker(self, engine: Engine) -> None:
        job = engine.submit({"text": "z" * 40_000})
        cancel(job.job_id, "default", engine.store)
        assert engine.blobs() == set()
        ended = engine.run(job)
        assert (ended.status, ended.error_code) == (Status.FAILED, ErrorCode.CANCELLED)


class TestList:
    def test_every_page_leads_to_the_next(self, engine: Engine) -> None:
        jobs = [engine.submit(owner="ana" if number % 3 else "default").job_id for number in range(9)]
        mine = set(jobs[::3])
        lister = Lister(engine.store, SEALER)
        found: list[str] = []
        cursor = None
        for _ in range(20):
            page = lister.page("default", limit=1, cursor=cursor)
            found += [job["jobId"] for job in page["jobs"]]
            cursor = page.get("cursor")
            if cursor is None:
                break
        assert set(found) == mine
        assert len(found) == len(mine)


def test_a_stream_of_a_tool_becomes_a_file(engine: Engine) -> None:
    ended = engine.run(engine.submit({"text": "hello"}))
    assert ended.status is Status.COMPLETED, ended.error
    found = artifacts.read(ended, "a.txt", engine.store, 3, 4)
    assert found is not None
    assert (found.data, found.size, found.mime_type) == (b"hell", 8, "text/plain")


def test_a_key_row_that_its_job_outlived_does_no_harm(engine: Engine) -> None:
    row = KeyRow("f" * 64, keys.new_job_id(), "x")
    engine.submit()
    assert engine.store.take_key(row) is None
    assert engine.store.get_key(row.key) == row


def poison_queues(engine: Engine) -> set[str]:
    from azure.storage.queue import QueueServiceClient

    service = QueueServiceClient.from_connection_string(str(engine.storage._account))
    return {str(queue.name) for queue in service.list_queues()}
