"""Jobs of `tools/dataverse_query` on a real storage account, run by processes that may be killed."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.envelope import CallPlan
from shared.contract.tool import check_contract
from shared.jobs import answers, artifacts, keys
from shared.jobs.checkpoint import Kept, open_kept
from shared.jobs.model import Job, utc_now
from shared.jobs.payload import Sealer
from shared.jobs.store import CONTAINER, TABLE
from shared.jobs.submit import submit
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from shared.tool.handler import ToolEntry
from shared.tool.spec import ExecutionMode, JsonObject, Mode

if TYPE_CHECKING:  # a worker's process does without it
    from infra.local.dataverse.stand_in import StandIn

ROOT: Final = Path(__file__).resolve().parents[3]
SEALER: Final = Sealer((bytes(range(32)),))
LEASE_MS: Final = 2_000


def query_tool() -> ToolEntry:
    checked = check_contract(ROOT / "tools" / "dataverse_query")
    assert checked.tool is not None, checked.errors
    return checked.tool


class Queries:
    """Makes jobs, and runs attempts of them. `dataverse`: where their connection leads."""

    def __init__(self, storage: str, dataverse: StandIn, environment: str) -> None:
        self.connection = storage
        self.storage = Storage(storage)
        self.store = TableJobStore(self.storage)
        self.entry = query_tool()
        to = dataverse.connection(environment)
        auth = {"type": "clientSecret", "tenantId": to["tenantId"], "clientId": to["clientId"]}
        auth |= {"secretSetting": "DATAVERSE_SECRET", "authority": to["authority"]}
        self.connections = json.dumps([{"id": "many", "name": "Many", "url": to["url"], "auth": auth}])
        self.environ = {
            **os.environ,
            "AzureWebJobsStorage": storage,
            "CONNECTIONS": self.connections,
            "TOOLBOX_LEASE_MS": str(LEASE_MS),
            "TOOLBOX_LEASE_RENEW_MS": "500",
            "DATAVERSE_SECRET": to["clientSecret"],
            "REQUESTS_CA_BUNDLE": str(dataverse.ca_file),
            "SSL_CERT_FILE": str(dataverse.ca_file),
        }

    def submit(self, arguments: JsonObject) -> Job:
        environments = Environments(ConnectionBook(self.connections))
        connections = environments.named(["Many"], "default", self.entry.spec.name)
        plan = CallPlan(Mode.ONE_WAY, ExecutionMode.HEADLESS, 120_000, None)
        made = submit(
            self.entry.spec,
            arguments,
            plan,
            owner="default",
            connections=connections,
            store=self.store,
            sealer=SEALER,
        )
        return asyncio.run(made)

    @contextlib.contextmanager
    def attempt(self, job: Job) -> Iterator[subprocess.Popen[bytes]]:
        """A process that runs the job. It is killed when the block ends, if it has not ended by then."""
        command = [sys.executable, "-m", "tests.integration.jobs.worker_process", job.job_id]
        with subprocess.Popen(command, cwd=ROOT, env=self.environ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, job: Job) -> Job:
        """An attempt to its end."""
        with self.attempt(job) as process:
            assert process.wait(60) == 0
        return self.job(job)

    def job(self, job: Job) -> Job:
        found = self.store.get(job.job_id)
        assert found is not None
        return found

    def kept(self, job: Job) -> Kept:
        opened = self.store.open(job.job_id)
        assert opened is not None
        return open_kept(opened.job, opened.kept, SEALER)

    def kept_pages(self, job: Job) -> int:
        value = self.kept(job).value
        return 0 if value is None else int(value["pages"])

    def lease_ends(self, job: Job) -> None:
        """Waits until the killed worker is known to be lost."""
        wait_until(lambda: self.job(job).lease_expired(utc_now()))

    def lines(self, job: Job) -> list[str]:
        found = self.store.with_logs(job.job_id)
        assert found is not None
        return [line.message for line in found[1]]

    def result(self, job: Job) -> Any:
        return answers.result_of(self.job(job), self.store).structured

    def rows(self, job: Job) -> list[dict[str, Any]]:
        """The rows of the job's file, as its owner reads it."""
        name = str(self.result(job)["artifact"]["name"])
        file = artifacts.read(self.job(job), name, self.store)
        assert file is not None
        text = file.data.decode()
        if name.endswith(".csv"):
            return list(csv.DictReader(io.StringIO(text)))
        return [json.loads(line) for line in text.splitlines()]

    def stored(self, job: Job) -> dict[str, bytes]:
        """Blobs of the job, and its rows as text."""
        container = self.storage.container(CONTAINER)
        names = container.list_blob_names(name_starts_with=keys.blob_prefix(job.job_id))
        found = {name: container.download_blob(name).readall() for name in names}
        query = f"PartitionKey eq '{keys.partition_key(job.job_id)}'"
        for row in self.storage.table(TABLE).query_entities(query):
            found[row["RowKey"]] = repr(dict(row)).encode()
        return found

    def close(self) -> None:
        session = self.storage._transport.session
        if session is not None:
            session.close()


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
