"""What the benchmarks of jobs share: the engine in this process, and its peer, a raw loop of the same requests.

A job without logs makes seven storage requests, the queue's own included:

    transaction   the job row and its sealed input
    send          the message
    receive       the message                                  (the host's part)
    query         the job row and its input
    update        the claim
    transaction   the end, the log's chunk, the input's erasure
    delete        the message                                  (the host's part)

The peer makes these with plain clients of the same SDKs, one thread a job under way and no event loop. Its rows
and bodies are the engine's own, taken from a job once; so sizes are equal, and what the peer saves is all that
the engine does beside the requests. `same_requests` holds the two to each other.

On a machine that is busy with other things, times flatter the engine: it spreads its work over several threads,
and a scheduler shares out processors by thread. There `cpu_ratio` is the figure to trust.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.azurite import Azurite
from shared import settings as app_settings
from shared.contract.envelope import CallPlan
from shared.jobs import answers, rows
from shared.jobs import store as jobs_store
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.store import NOTHING_ELSE, Change, JobStore
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.spec import ExecutionMode, Mode
from tests.support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    from azure.storage.queue import QueueClient, QueueMessage

THREADS = 16
ARGUMENTS = {"text": "hello"}
WAIT_LIMIT_MS = 30_000
#: Seconds that a received message stays hidden.
VISIBILITY = 600


@tool(name="trivial", description="Gives back what it was given.", execution_modes=("inline", "headless"))
def trivial(text: str) -> dict[str, str]:
    return {"text": text}


@contextlib.contextmanager
def own_azurite() -> Iterator[Azurite]:
    """An Azurite for one benchmark, with its data on disk (in memory it stalls under load)."""
    folder = Path(tempfile.mkdtemp(prefix="toolbox-bench-"))
    try:
        with Azurite.start(folder, free_ports=True) as azurite:
            yield azurite
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class HostQueue:
    """The host's part of a job, the same for both sides: receiving a message and deleting it."""

    def __init__(self, client: QueueClient) -> None:
        self._client = client
        self.polls = 0

    def receive(self) -> QueueMessage | None:
        pages = self._client.receive_messages(messages_per_page=1, visibility_timeout=VISIBILITY).by_page()
        found = next(iter(list(next(pages, ()))), None)
        self.polls += found is None
        return found

    def receive_some(self) -> QueueMessage:
        while True:
            found = self.receive()
            if found is not None:
                return found

    def delete(self, message: QueueMessage) -> None:
        self._client.delete_message(message)


class CountingStore(TableJobStore):
    """Counts the reads of a job row alone: what waiting costs."""

    reads = 0

    def get(self, job_id: str) -> Job | None:
        self.reads += 1
        return super().get(job_id)


class Engine:
    """The product's: `submit`, `Worker.handle` and `answers.wait`. The host's part has its own threads."""

    def __init__(self, store: JobStore) -> None:
        entry = declared(trivial)
        assert entry is not None
        self._spec = entry.spec
        settings = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
        self._sealer = Sealer((bytes(range(32)),))
        self.store = store
        self._worker = Worker({entry.spec.name: entry}, store, self._sealer, settings)
        self._host = ThreadPoolExecutor(THREADS, thread_name_prefix="host")
        self.queue: HostQueue

    @classmethod
    def on(cls, connection: str) -> Engine:
        engine = cls(CountingStore(Storage(connection)))
        engine.queue = HostQueue(raw_queue(connection, connections=THREADS))
        return engine

    @property
    def reads(self) -> int:
        return self.store.reads if isinstance(self.store, CountingStore) else 0

    async def host[R](self, call: Callable[..., R], *args: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._host, call, *args)

    async def submit(self) -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 120_000, None)
        return await submit(
            self._spec, dict(ARGUMENTS), plan, owner="default", store=self.store, sealer=self._sealer
        )

    async def handle(self, body: str) -> None:
        await self._worker.handle(body)

    async def answer(self, job: Job) -> str:
        ended = await answers.wait(job, self.store, WAIT_LIMIT_MS)
        return str((await answers.final(ended, self.store)).structured)

    async def run_one(self) -> None:
        """A job from submit to done: the caller's part, then the worker's."""
        await self.submit()
        message = await self.host(self.queue.receive_some)
        await self.handle(message.content)
        await self.host(self.queue.delete, message)

    async def run(self, jobs: int, concurrency: int) -> float:
        """Jobs per second."""

        async def work(count: int) -> None:
            for _ in range(count):
                await self.run_one()

        started = time.perf_counter()
        await asyncio.gather(*(work(jobs // concurrency) for _ in range(concurrency)))
        return jobs / (time.perf_counter() - started)


@dataclass
class Rows:
    """What the engine stores for one job, step by step."""

    created: rows.Entity = field(default_factory=dict)
    sealed: rows.Entity = field(default_factory=dict)
    claimed: rows.Entity = field(default_factory=dict)
    ended: rows.Entity = field(default_factory=dict)
    chunks: list[rows.Entity] = field(default_factory=list)

    @classmethod
    async def of_the_engine(cls) -> Rows:
        found = cls()

        class Taped(MemoryJobStore):
            def create(self, job: Job, sealed: bytes) -> Job:
                found.created = rows.job_entity(job)
                found.sealed = rows.input_entity(job.job_id, sealed)
                return super().create(job, sealed)

            def write(self, job: Job, change: Change = NOTHING_ELSE) -> Job:
                if change.empty:
                    found.claimed = rows.job_entity(job)
                else:
                    found.ended = rows.job_entity(job)
                    found.chunks = [rows.chunk_entity(job.job_id, *chunk) for chunk in change.chunks]
                    assert change.drop_input
                return super().write(job, change)

        taped = Taped()
        engine = Engine(taped)
        await engine.submit()
        await engine.handle(taped.messages.popleft())
        assert found.created
        assert found.claimed
        assert found.ended
        return found


class Raw:
    """The peer. Blocks; thread-safe."""

    def __init__(self, connection: str, stored: Rows) -> None:
        from azure.data.tables import TableClient

        self._rows = stored
        self._table = TableClient.from_connection_string(
            connection, jobs_store.TABLE, transport=transport(THREADS)
        )
        self._sender = raw_queue(connection, connections=THREADS)
        self.queue = HostQueue(raw_queue(connection, connections=THREADS))
        self.reads = 0

    def submit(self) -> str:
        """The partition key, which is this side's job id."""
        key = uuid.uuid4().hex
        self._table.submit_transaction(
            [("create", _moved(self._rows.created, key)), ("create", _moved(self._rows.sealed, key))]
        )
        self._sender.send_message(json.dumps({"jobId": str(uuid.UUID(key))}))
        return key

    def handle(self, body: str) -> str:
        key = uuid.UUID(json.loads(body)["jobId"]).hex
        found = list(self._table.query_entities(f"PartitionKey eq '{key}' and RowKey le 'job'"))
        etag = next(row.metadata["etag"] for row in found if row["RowKey"] == "job")
        claimed = self._table.update_entity(
            _moved(self._rows.claimed, key), mode=_replace(), **_unmodified(str(etag))
        )
        ended: list[Any] = [
            (
                "update",
                _moved(self._rows.ended, key),
                {"mode": _replace(), **_unmodified(claimed["etag"])},
            ),
            *(("upsert", _moved(chunk, key), {"mode": _replace()}) for chunk in self._rows.chunks),
            ("delete", {"PartitionKey": key, "RowKey": "in"}),
        ]
        self._table.submit_transaction(ended)
        return key

    def answer(self, key: str) -> bytes:
        """Waits for the end with the pauses of the engine's callers."""
        pause = answers.FIRST_POLL
        while True:
            time.sleep(pause)
            pause = min(pause * 1.5, answers.LAST_POLL)
            self.reads += 1
            found = self._table.get_entity(key, "job")
            if found["status"] == "completed":
                return bytes(found["result"])

    def run_one(self) -> None:
        self.submit()
        message = self.queue.receive_some()
        self.handle(message.content)
        self.queue.delete(message)

    def run(self, jobs: int, concurrency: int) -> float:
        """Jobs per second, over as many threads as jobs may be under way."""

        def work() -> None:
            for _ in range(jobs // concurrency):
                self.run_one()

        threads = [threading.Thread(target=work) for _ in range(concurrency)]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return jobs / (time.perf_counter() - started)


def raw_queue(connection: str, *, connections: int) -> QueueClient:
    from azure.storage.queue import QueueClient, TextBase64DecodePolicy, TextBase64EncodePolicy

    return QueueClient.from_connection_string(
        connection,
        jobs_store.QUEUE,
        transport=transport(connections),
        message_encode_policy=TextBase64EncodePolicy(),
        message_decode_policy=TextBase64DecodePolicy(),
    )


def transport(connections: int) -> Any:
    """The SDK's own, with room for that many connections: it keeps ten, and more threads would reconnect."""
    import requests
    from azure.core.pipeline.transport import RequestsTransport

    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=connections, max_retries=0))
    return RequestsTransport(session=session, session_owner=False)


async def both_sides(azurite: Azurite) -> tuple[Engine, Raw]:
    """The two, warm, on one Azurite, each with a queue and table that exist."""
    stored = await Rows.of_the_engine()
    engine, raw = Engine.on(azurite.connection_string), Raw(azurite.connection_string, stored)
    await engine.submit()
    await engine.host(engine.queue.delete, await engine.host(engine.queue.receive_some))
    await engine.run(2 * THREADS, THREADS)
    await asyncio.to_thread(raw.run, 2 * THREADS, THREADS)
    return engine, raw


async def same_requests(azurite: Azurite, jobs: int = 16) -> dict[str, Any]:
    """Requests a job of both sides, counted by a proxy. Raises AssertionError when they are not the same."""
    found = {}
    stored = await Rows.of_the_engine()
    with FaultProxy(azurite.ports) as proxy:
        engine, raw = Engine.on(proxy.connection_string), Raw(proxy.connection_string, stored)
        for name in ("engine", "raw"):
            proxy.forget()
            await (engine.run(jobs, 4) if name == "engine" else asyncio.to_thread(raw.run, jobs, 4))
            seen = [one for one in proxy.seen() if one.operation != "poll"]
            counts = {
                f"{one.service} {one.operation}": sum(
                    (other.service, other.operation) == (one.service, one.operation) for other in seen
                )
                / jobs
                for one in seen
            }
            found[name] = (
                counts,
                sum(one.size for one in seen) / jobs,
                sum(one.answer_size for one in seen) / jobs,
            )
    (requests, sent, got), (raw_requests, raw_sent, raw_got) = found["engine"], found["raw"]
    assert requests == raw_requests, found
    assert abs(sent / raw_sent - 1) < 0.02, found
    assert abs(got / raw_got - 1) < 0.02, found
    return {"requests_per_job": requests, "bytes_sent_per_job": round(sent), "raw_bytes_sent": round(raw_sent)}


def _moved(entity: rows.Entity, key: str) -> rows.Entity:
    moved = {**entity, "PartitionKey": key}
    if "nonce" in entity:
        moved["nonce"] = uuid.uuid4().hex[:16]
    return moved


def _replace() -> Any:
    from azure.data.tables import UpdateMode

    return UpdateMode.REPLACE


def _unmodified(etag: str) -> dict[str, Any]:
    from azure.core import MatchConditions

    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}
