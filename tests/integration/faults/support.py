"""Host processes that come and go on one storage, what their tools did, and what their storage holds."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueClient, QueueServiceClient

from infra.local.azurite import ACCOUNT_NAME, Azurite
from shared.jobs import keys
from shared.jobs.model import Job, Status
from shared.jobs.store import POISON_QUEUE, QUEUE, Query
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from tests.acceptance.conftest import ROOT, App, start_app, wait_until

APP: Final = ROOT / "tests" / "apps" / "faults"
#: Accounts of one Azurite: apps on different ones do not meet.
ACCOUNTS: Final = tuple(f"faults{number}" for number in range(40))
#: In every secret of these tests, and in nothing else.
SENTINEL: Final = "zqsentinelqz"
MCP_TOKEN: Final = f"{SENTINEL}-mcp-token"
AUTH_TOKEN: Final = f"{SENTINEL}-auth-token"
PASSWORD: Final = f"{SENTINEL}-password"
FUNCTIONS_KEY: Final = f"{SENTINEL}-functions-key"
HEADERS: Final = {
    "X-MCP-Auth-Token": MCP_TOKEN,
    "x-functions-key": FUNCTIONS_KEY,
    "Authorization": f"Bearer {SENTINEL}-bearer",
}
#: What every message of a job looks like as it is stored: {"jobId": "…"} in base64.
MESSAGE_BYTES: Final = len(base64.b64encode(json.dumps({"jobId": keys.new_job_id()}).encode()))
ENDED: Final = ("completed", "failed")
#: Where `Site.stored` finds what only an unfinished job may have: rows (by partition) and blobs (by id).
_SEALED: Final = re.compile(
    rf"[^/]+/([^/]+)/(?:{keys.INPUT_ROW}|{keys.CHECKPOINT_ROW})/|[^/]+/([^/]+)/(?:in$|part-)"
)
QUICK: Final = {
    "TOOLBOX_LEASE_MS": "2000",
    "TOOLBOX_LEASE_RENEW_MS": "500",
    "TOOLBOX_REAPER_SCHEDULE": "* * * * * *",
    "FAULTS_RESEND_AFTER_MS": "3000",
    "HOST_QUEUE_VISIBILITY_SECONDS": "2",
}


def account_at(connection: str, account: str) -> str:
    """A connection string of another account of the same Azurite."""
    return connection.replace(ACCOUNT_NAME, account)


@dataclass(frozen=True, slots=True)
class Run:
    job_id: str
    attempt: int
    pid: int
    ended: bool


class Site:
    """One storage account with the hosts on it. Its hosts are killed at the end of the `with` block."""

    def __init__(self, azurite: Azurite, account: str, folder: Path) -> None:
        self.azurite = azurite
        self.account = account
        self.connection = account_at(azurite.connection_string, account)
        self._closing = contextlib.ExitStack()
        self.store = self._closing.enter_context(self.store_by())
        self._folder = folder
        self._runs = folder / "runs"
        self._runs.mkdir(parents=True)
        self._numbers = itertools.count(1)
        self._hosts: list[App] = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def store_by(
        self, connection: str | None = None, kind: type[TableJobStore] = TableJobStore
    ) -> Iterator[TableJobStore]:
        """A store on the account, or on a way to it: `connection` is the one of a proxy's default account."""
        storage = Storage(self.connection if connection is None else account_at(connection, self.account))
        yield kind(storage)
        session = storage._transport.session
        if session is not None:
            session.close()

    def start(self, connection: str | None = None, **settings: str) -> App:
        """A host on the account, or on a way to it: `connection` is the one of a proxy's default account."""
        with self._lock:
            folder = self._folder / f"host-{next(self._numbers)}"
        folder.mkdir()
        reached = self.connection if connection is None else account_at(connection, self.account)
        every = {
            **QUICK,
            "MCP_AUTH_TOKEN": MCP_TOKEN,
            "MCP_EXTENSION_KEY": FUNCTIONS_KEY,
            "FAULTS_RUNS": str(self._runs),
            "TOOLBOX_MAX_WAIT_MS": "20000",
        }
        app = start_app(folder, reached, "--auth", app_dir=APP, **(every | settings))
        with self._lock:
            self._hosts.append(app)
        assert app.http  # made before threads share it
        return app

    def start_all(self, number: int, **settings: str) -> list[App]:
        with ThreadPoolExecutor(number) as pool:
            return list(pool.map(lambda _: self.start(**settings), range(number)))

    def kill(self, app: App) -> None:
        """SIGKILL; a host has no other processes than its own."""
        app.process.kill()
        app.process.wait(10)

    def call(
        self, app: App, tool: str, label: str, options: Mapping[str, Any] | None = None, **arguments: Any
    ) -> Any:
        """The result of a call that brings every secret there is."""
        envelope = {"mode": "one-way", "authToken": AUTH_TOKEN, **(options or {})}
        return app.call(tool, {"label": label, "password": PASSWORD, **arguments}, envelope, HEADERS)

    def submit(
        self, app: App, tool: str, label: str, options: Mapping[str, Any] | None = None, **arguments: Any
    ) -> str:
        """The id of the job that the call was accepted as."""
        accepted = self.call(app, tool, label, options, **arguments)
        assert not accepted.get("isError"), accepted
        assert accepted["structuredContent"]["status"] == "accepted"
        return str(accepted["structuredContent"]["jobId"])

    def submit_at_last(self, hosts: Callable[[], App], tool: str, label: str, **arguments: Any) -> str:
        """The same from a caller that repeats its call, under an idempotency key, until it is accepted."""

        def tried() -> str | None:
            with contextlib.suppress(httpx.TransportError):
                accepted = self.call(hosts(), tool, label, {"idempotencyKey": label}, **arguments)
                if not accepted.get("isError"):
                    return str(accepted["structuredContent"]["jobId"])
            return None

        found = wait_until(tried, 60)
        assert found is not None
        return found

    def read(self, app: App, job_id: str) -> Any:
        """The status body: a job that was accepted is never missing."""
        answer = app.job(job_id, MCP_TOKEN)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ended(self, app: App, job_ids: Iterable[str], seconds: float = 60) -> dict[str, Any]:
        """Job id -> status body, when all of them have ended. They are read all the time until then."""
        left, found = list(job_ids), {}

        def look() -> bool:
            for job_id in left[:]:
                body = self.read(app, job_id)
                if body["status"] in ENDED:
                    found[job_id] = body
                    left.remove(job_id)
            return not left

        wait_until(look, seconds, 0.2)
        return found

    def jobs(self) -> list[Job]:
        """Every stored job, as its row is."""
        found: list[Job] = []
        token: str | None = None
        while True:
            page = self.store.scan(Query(), 200, token)
            found += page.jobs
            if (token := page.token) is None:
                return found

    def job_of(self, label: str) -> Job | None:
        return next((job for job in self.jobs() if f'"{label}"' in job.prefill_summary), None)

    def all_ended(self, seconds: float = 60) -> list[Job]:
        """Every stored job, when all of them have ended. Asks no host, so that none is helped by a read."""

        def look() -> list[Job]:
            found = self.jobs()
            return found if all(job.status.terminal for job in found) else []

        return wait_until(look, seconds, 0.2)

    def runs(self, label: str) -> list[Run]:
        """The runs of a tool, in the order in which they began."""
        file = self._runs / label
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        over = {tuple(rest) for what, *rest in lines if what == "end"}
        return [
            Run(job_id, int(attempt), int(pid), (job_id, attempt, pid) in over)
            for what, job_id, attempt, pid in lines
            if what == "begin"
        ]

    def tell(self, label: str, what: str) -> None:
        """Lets a held run end ("go"), or log a lot of lines at once ("burst")."""
        (self._runs / f"{label}.{what}").touch()

    def running_on(self, app: App) -> int:
        """How many runs have begun on a host and not ended."""
        labels = [path.name for path in self._runs.iterdir()]
        return sum(run.pid == app.process.pid and not run.ended for label in labels for run in self.runs(label))

    def message(self, job_id: str) -> None:
        """One more message for a job, whatever has become of it."""
        self.store.send(job_id)

    def take_messages(self) -> list[str]:
        """Takes the jobs' messages that can be seen, as a host would get them."""
        found = []
        with QueueClient.from_connection_string(self.connection, QUEUE) as client:
            for message in client.receive_messages(messages_per_page=32):
                client.delete_message(message)
                found.append(base64.b64decode(message.content).decode())
        return found

    def messages(self, queue: str = QUEUE) -> int:
        """How many messages there are, hidden ones included."""
        with QueueClient.from_connection_string(self.connection, queue) as client:
            try:
                return int(client.get_queue_properties().approximate_message_count or 0)
            except ResourceNotFoundError:
                return 0

    def check_remains(self) -> None:
        """No message was given up; what ended jobs were given and have kept is gone; no secret is anywhere."""
        assert self.messages(POISON_QUEUE) == 0
        ended = set(_names(job.job_id for job in self.jobs() if job.status.terminal))
        left = [where for where, _ in self.stored() if _sealed_of(where) in ended]
        assert not left, left
        self.check_secrets()

    def check_secrets(self) -> None:
        """No secret is anywhere: not in a row, a message, a blob, or a host's log."""
        places = itertools.chain(self.stored(), self.logs())
        found = [where for where, data in places if SENTINEL.encode() in data]
        assert not found, found

    def logs(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(self._folder.glob("host-*/host.log")):
            yield str(path), path.read_bytes()

    def stored(self) -> Iterator[tuple[str, bytes]]:
        """Where and what, for everything that the account holds, in the clear as far as it can be."""
        yield from _rows(self.connection)
        yield from _messages(self.connection)
        yield from _blobs(self.connection)
        yield from _messages_ever(self.azurite)

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        for app in self._hosts:
            self.kill(app)
            app.http.close()
        self._closing.close()


def _names(job_ids: Iterable[str]) -> Iterator[str]:
    for job_id in job_ids:
        yield job_id
        yield keys.partition_key(job_id)


def _sealed_of(where: str) -> str:
    """Whose input or checkpoint stands in a place: the job's id, or its partition; empty: it is none."""
    match = _SEALED.match(where)
    return "" if match is None else match[1] or match[2]


def _rows(connection: str) -> Iterator[tuple[str, bytes]]:
    with TableServiceClient.from_connection_string(connection) as service:
        for table in service.list_tables():
            for row in service.get_table_client(table.name).list_entities():
                for name, value in row.items():
                    where = f"{table.name}/{row['PartitionKey']}/{row['RowKey']}/{name}"
                    yield where, value if isinstance(value, bytes) else str(value).encode()
                    if isinstance(value, bytes):
                        with contextlib.suppress(zlib.error):
                            yield f"{where} (inflated)", zlib.decompress(value)


def _messages(connection: str) -> Iterator[tuple[str, bytes]]:
    with QueueServiceClient.from_connection_string(connection) as service:
        for queue in service.list_queues():
            for message in service.get_queue_client(queue.name).peek_messages(max_messages=32):
                yield f"{queue.name} {message.id}", base64.b64decode(message.content)


def _blobs(connection: str) -> Iterator[tuple[str, bytes]]:
    with BlobServiceClient.from_connection_string(connection) as service:
        for container in service.list_containers():
            client = service.get_container_client(container.name)
            for blob in client.list_blobs():
                yield f"{container.name}/{blob.name}", client.download_blob(blob.name).readall()


def _messages_ever(azurite: Azurite) -> Iterator[tuple[str, bytes]]:
    """Every message that Azurite was given, hidden and deleted ones included: it appends them to files.

    Nothing but a job's id is in them.
    """
    for path in (azurite.data_dir / "__queuestorage__").iterdir():
        data = path.read_bytes()
        for at in range(0, len(data), MESSAGE_BYTES):
            message = base64.b64decode(data[at : at + MESSAGE_BYTES], validate=True)
            assert re.fullmatch(rb'\{"jobId": "[0-9a-f-]{36}"\}', message), message
            yield f"{path} at {at}", message


def at_most_once(site: Site, jobs: Iterable[Job], labels: Iterable[str]) -> None:
    """Of every label one job ran, no attempt of it twice, none beyond its attempts, none without an end."""
    by_id = {job.job_id: job for job in jobs}
    for label in labels:
        runs = site.runs(label)
        if not runs:
            continue
        assert len({run.job_id for run in runs}) == 1, label
        job = by_id[runs[0].job_id]
        attempts = [run.attempt for run in runs]
        assert attempts == sorted(set(attempts)), label
        assert len(runs) <= job.max_attempts, label
        if job.status is Status.COMPLETED:
            assert any(run.ended and run.attempt == job.attempt for run in runs), label
