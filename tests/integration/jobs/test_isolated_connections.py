"""A tool in a process of its own reaches its call's connections, as it does on a thread."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.dataverse.authority import App
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, EnvironmentSpec, StandIn
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.envelope import CallPlan
from shared.jobs.model import Job, Status
from shared.jobs.submit import submit
from shared.jobs.worker import Worker
from shared.tool.spec import ExecutionMode, Mode
from tests.unit.jobs.isolation_support import SEALER, SETTINGS, Bench, contract

pytestmark = pytest.mark.integration

SECRET = "sentinel-of-the-client-secret"
READS = """
async def invokeHeadless(input, context):
    connection = await toolboxAPI.connections.getActiveConnection()
    found = await dataverseAPI.queryData("accounts?$select=name&$top=2")
    from shared.redaction import _remembered
    context.logger.info(f"with {_remembered[0]}")
    rows = [row.name for row in found.value]
    return {"name": connection.name, "rows": rows, "tokens": sorted(set(_remembered))}
"""
READS_SYNC = """
def invokeHeadless(input, context):
    pages = dataverseAPI.iterateQuery("accounts?$select=name", pageSize=5).pages()
    secondary = toolboxAPI.connections.getSecondaryConnection()
    try:
        dataverseAPI.queryData("accounts", connectionTarget="secondary")
    except Exception as error:
        fault = str(error)
    return {"pages": [len(page.records) for page in pages], "secondary": secondary, "fault": fault}
"""


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    with StandIn.start([EnvironmentSpec("dev")], [App(CLIENT_ID, SECRET, TENANT)]) as stand_in:
        yield stand_in


@pytest.fixture
def bench(
    dataverse: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Bench, Environments]]:
    to = dataverse.connection("dev")
    auth = {"type": "clientSecret", "tenantId": to["tenantId"], "clientId": to["clientId"]}
    auth |= {"secretSetting": "DATAVERSE_SECRET", "authority": to["authority"]}
    connections = json.dumps([{"id": "dev", "name": "Dev", "url": to["url"], "auth": auth}])
    monkeypatch.setenv("CONNECTIONS", connections)
    monkeypatch.setenv("AzureWebJobsStorage", "")
    monkeypatch.setenv("DATAVERSE_SECRET", SECRET)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(dataverse.ca_file))
    monkeypatch.setenv("SSL_CERT_FILE", str(dataverse.ca_file))
    tools = tmp_path / "connected_tools"
    tools.mkdir()
    contract(tools / "reads", READS)
    contract(tools / "reads_sync", READS_SYNC)
    sys.path.append(str(tmp_path))
    yield Bench(tools), Environments(ConnectionBook(connections))
    sys.path.remove(str(tmp_path))


def run(bench: Bench, environments: Environments, name: str) -> Job:
    async def all_of_it() -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 60_000, None)
        spec = bench.found.tools[name].spec
        named = environments.named(["Dev"], "default", name)
        store = bench.store
        job = await submit(spec, {}, plan, owner="default", connections=named, store=store, sealer=SEALER)
        worker = Worker(
            bench.found.tools, store, SEALER, SETTINGS, homes=bench.homes, environments=environments
        )
        await worker.handle(store.messages.popleft())
        return job

    return asyncio.run(all_of_it())


def test_asynchronous_code_queries_and_its_tokens_stay_in_its_process(
    bench: tuple[Bench, Environments], dataverse: StandIn
) -> None:
    made, environments = bench
    ended = made.ended(run(made, environments, "reads"))
    assert ended.job.status is Status.COMPLETED, ended.job.error
    assert ended.result is not None
    assert set(ended.result.pop("tokens")) == {"[redacted]"}
    assert ended.result == {"name": "Dev", "rows": ["Account 00001", "Account 00002"]}
    assert "with [redacted]" in ended.lines
    stored: Any = f"{made.store.rows} {made.store.blobs}"
    assert not any(secret in stored for secret in (SECRET, *dataverse.authority._tokens))


def test_synchronous_code_reads_pages_and_knows_its_slots(bench: tuple[Bench, Environments]) -> None:
    made, environments = bench
    ended = made.ended(run(made, environments, "reads-sync"))
    assert ended.job.status is Status.COMPLETED, ended.job.error
    assert ended.result is not None
    assert (ended.result["pages"], ended.result["secondary"]) == ([5, 5, 2], None)
    assert "No secondary connection is available" in ended.result["fault"]
