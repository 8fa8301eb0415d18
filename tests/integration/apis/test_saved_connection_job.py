"""A connection that an operator saves is what the next job signs in with, and its secret is stored nowhere."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.local.dataverse.authority import App
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, StandIn
from infra.local.dev import cli, connection
from shared import ids
from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.connections.saved import TABLE
from shared.apis.environment import use_resolver
from shared.contract.tool import check_contract
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool.handler import ToolEntry
from shared.tool.result import ToolResult

pytestmark = pytest.mark.integration

SECRET = "sentinel-77aa-of-the-app"
TOOL = Path(__file__).resolve().parents[3] / "tools" / "entity_picker"


@pytest.fixture(scope="module")
def storage(new_storage: Callable[[], str]) -> str:
    """Of this test alone: an app that shares the queue would take the job's message."""
    return new_storage()


@pytest.fixture
def dataverse(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with StandIn.start(["dev"], [App(CLIENT_ID, SECRET, TENANT)]) as stand_in:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(stand_in.ca_file))
        monkeypatch.setenv("SSL_CERT_FILE", str(stand_in.ca_file))
        monkeypatch.setenv("DATAVERSE_SECRET", SECRET)
        yield stand_in
        use_resolver(None)


class AppProcess:
    """The parts of the app that answer a call, with the connections of a storage account."""

    def __init__(self, storage: str) -> None:
        checked = check_contract(TOOL)
        assert checked.tool is not None
        self.tool: ToolEntry = checked.tool
        self.store = MemoryJobStore()
        environments = Environments(ConnectionBook("", Storage(storage)))
        use_resolver(environments.resolve)
        settings, sealer = app_settings.load({"AzureWebJobsStorage": storage}), Sealer((bytes(32),))
        tools = {self.tool.spec.name: self.tool}
        self.invoker = Invoker(settings, sealer, lambda: self.store, environments=environments)
        self.worker = Worker(tools, self.store, sealer, settings, environments=environments)

    def call(self, connection_name: str) -> ToolResult:
        """One call as a job, which this process works on itself."""
        options = {"connectionName": connection_name, "executionMode": "headless", "mode": "two-way"}
        arguments = {"entityName": "account", "search": "00002", "__pptb": options}

        async def answer() -> ToolResult:
            payload = json.dumps({"name": self.tool.spec.name, "arguments": arguments})
            answering = asyncio.create_task(self.invoker.answer(self.tool, payload))
            while not answering.done():
                while self.store.messages:
                    await self.worker.handle(self.store.messages.popleft())
                await asyncio.sleep(0.001)
            return await answering

        return asyncio.run(answer())


def test_a_job_signs_in_with_what_was_saved(
    storage: str, dataverse: StandIn, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    environ = {"AzureWebJobsStorage": storage, "CONNECTIONS": "", "DATAVERSE_SECRET": SECRET}

    def command(*arguments: str) -> Any:
        options = cli._parser().parse_args(["connection", *arguments, "--json"])
        assert connection.run(options, environ) == 0
        return json.loads(capsys.readouterr().out)

    name, to = f"Saved {ids.new_id()}", dataverse.connection()
    signing_in = [
        f"--tenant-id={to['tenantId']}",
        f"--client-id={to['clientId']}",
        f"--authority={to['authority']}",
    ]
    signing_in += ["--auth=clientSecret", "--secret-setting=DATAVERSE_SECRET"]
    app = AppProcess(storage)
    added = command("add", name, f"--url={to['url']}", *signing_in, f"--tool={app.tool.spec.name}")

    result = app.call(name.lower())
    assert not result.is_error, result.text
    assert result.structured is not None
    assert result.structured["selectedName"] == "Account 00002"
    assert [request.app for request in dataverse.requests("accounts")] == [CLIENT_ID]

    rows = list(Storage(storage).table(TABLE).list_entities())
    assert added["connection"]["id"] in {row["RowKey"] for row in rows}
    written = [repr(rows), repr(app.store.rows), caplog.text, json.dumps(added)]
    for secret in (SECRET, *dataverse.authority._tokens):
        assert not any(secret in text for text in written)

    command("remove", name)
    gone = AppProcess(storage).call(name)
    assert gone.is_error
    assert f"No saved connection found with name '{name}'." in gone.text
