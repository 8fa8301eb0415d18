"""Tools that read Dataverse, run by the real worker against the stand-in: sign-in, pages, repeats, files."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.dataverse.authority import App
from infra.local.dataverse.faults import Fault, Kind
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, EnvironmentSpec, StandIn
from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.contract.tool import check_contract
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.tool.handler import ToolEntry
    from shared.tool.result import ToolResult
    from shared.tool.spec import JsonObject

TOOLS = Path(__file__).resolve().parents[3] / "tools"
SECRET = "sentinel-of-the-right-secret"
WRONG = "sentinel-of-the-wrong-secret"
MANY = 12_000

#: The documentation's example, line by line.
EXAMPLE = """
async def invokeHeadless(input, context):
    # toolboxAPI - connections, utils, settings, terminal, events, invocation
    connection = await toolboxAPI.connections.getActiveConnection()

    # dataverseAPI - exposed separately, same as window.dataverseAPI in windowed mode
    topAccounts = await dataverseAPI.queryData("accounts?$select=name&$top=5")

    return {
        "toolName": context.toolName,
        "invocationMode": context.invocationMode,
        "connectionName": connection.name if connection else None,
        "rows": topAccounts.value or [],
    }
"""


class Bench:
    """Tools of the app and connections to the stand-in, on a store in memory."""

    def __init__(self, dataverse: StandIn) -> None:
        self.dataverse = dataverse
        self.store = MemoryJobStore()
        self.tools: dict[str, ToolEntry] = {}
        environments = Environments(ConnectionBook(json.dumps(_connections(dataverse))))
        use_resolver(environments.resolve)
        settings = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
        sealer = Sealer((bytes(32),))
        self.invoker = Invoker(settings, sealer, lambda: self.store, environments=environments)
        self.worker = Worker(self.tools, self.store, sealer, settings, environments=environments)

    def load(self, folder: Path) -> str:
        """The name of a folder's tool."""
        checked = check_contract(folder)
        assert checked.errors == []
        assert checked.tool is not None
        name = checked.tool.spec.name
        self.tools[name] = checked.tool
        return name

    async def _answer(self, tool: str, arguments: JsonObject) -> ToolResult:
        payload = json.dumps({"name": tool, "arguments": arguments})
        answering = asyncio.create_task(self.invoker.answer(self.tools[tool], payload))
        while not answering.done():
            while self.store.messages:
                await self.worker.handle(self.store.messages.popleft())
            await asyncio.sleep(0.001)
        return await answering

    def answer(self, tool: str, arguments: JsonObject, connection: str = "Dev", **envelope: Any) -> ToolResult:
        """The answer to a call."""
        asked = {**arguments, "__pptb": {"connectionName": connection, **envelope}}
        return asyncio.run(self._answer(tool, asked))

    def call(self, tool: str, arguments: JsonObject, connection: str = "Dev", **envelope: Any) -> Any:
        """The result of a call that succeeds."""
        result = self.answer(tool, arguments, connection, **envelope)
        assert not result.is_error, result.text
        return result.structured

    def refused(self, tool: str, arguments: JsonObject, connection: str = "Dev") -> str:
        """The text of a call that fails."""
        result = self.answer(tool, arguments, connection)
        assert result.is_error
        return result.text

    def csv(self) -> list[dict[str, str]]:
        """The rows of the one file that was kept."""
        (data,) = [self.store.blobs[name] for name in self.store.mime_types if name.endswith(".csv")]
        return list(csv.DictReader(io.StringIO(data.decode())))


def _connections(dataverse: StandIn) -> list[JsonObject]:
    def entry(name: str, environment: str, setting: str = "DATAVERSE_SECRET") -> JsonObject:
        to = dataverse.connection(environment)
        auth = {"type": "clientSecret", "tenantId": to["tenantId"], "clientId": to["clientId"]}
        auth |= {"secretSetting": setting, "authority": to["authority"]}
        return {"id": name, "name": name, "url": to["url"], "auth": auth}

    return [entry("Dev", "dev"), entry("Many", "many"), entry("Locked", "dev", "WRONG_SECRET")]


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    """One for all of them: what they change is only the faults."""
    specs = [EnvironmentSpec("dev"), EnvironmentSpec("many", accounts=0)]
    with StandIn.start(specs, [App(CLIENT_ID, SECRET, TENANT)]) as stand_in:
        many = stand_in.environment("many")
        for number in range(MANY):
            many.insert("account", {"name": f"Account {number:05}", "numberofemployees": number})
        yield stand_in


@pytest.fixture
def bench(dataverse: StandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # azure-identity asks by requests, the APIs by httpx.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(dataverse.ca_file))
    monkeypatch.setenv("SSL_CERT_FILE", str(dataverse.ca_file))
    monkeypatch.setenv("DATAVERSE_SECRET", SECRET)
    monkeypatch.setenv("WRONG_SECRET", WRONG)
    dataverse.clear_requests()
    yield Bench(dataverse)
    dataverse.faults.clear()
    use_resolver(None)


def test_the_example_gives_its_four_fields(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "top_accounts"
    folder.mkdir()
    config = {"agents": {"version": "1.0.0", "invokable": True, "modes": ["one-way", "two-way"]}}
    (folder / "pptb.config.json").write_text(json.dumps(config))
    (folder / "headless.py").write_text(EXAMPLE)
    name = bench.load(folder)
    found = bench.call(name, {}, executionMode="headless", mode="two-way")
    assert (found["toolName"], found["invocationMode"], found["connectionName"]) == (name, "two-way", "Dev")
    assert [row["name"] for row in found["rows"]] == [f"Account {number:05}" for number in range(1, 6)]
    assert set(found) == {"toolName", "invocationMode", "connectionName", "rows"}


def test_a_query_in_the_call_is_one_page(bench: Bench) -> None:
    name = bench.load(TOOLS / "dataverse_query")
    found = bench.call(name, {"entityName": "account"}, "Many")
    assert (found["rowCount"], found["more"], len(found["rows"])) == (50, True, 50)
    assert set(found["rows"][0]) == {"accountid", "name"}
    pages = bench.dataverse.requests("accounts", "GET")
    assert [page.headers["prefer"].partition("maxpagesize=")[2] for page in pages] == ["50"]
    few = bench.call(name, {"odata": "accounts?$select=name", "pageSize": 20})
    assert (few["rowCount"], few["more"]) == (12, False)


def test_a_query_as_a_job_reads_every_row_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    name = bench.load(TOOLS / "dataverse_query")
    bench.dataverse.arm(Fault(Kind.THROTTLED, path="/accounts", nth=(1, 3, 5), retry_after="0.1"))
    bench.dataverse.arm(Fault(Kind.EXPIRED, path="/accounts", nth=(4,)))
    issued = bench.dataverse.authority.issued
    arguments = {"entityName": "account", "columns": ["name", "numberofemployees"]}
    found = bench.call(name, arguments, "Many", executionMode="headless")
    answered = [request.status for request in bench.dataverse.requests("accounts", "GET")]
    assert answered == [429, 200, 429, 401, 429, 200, 200]
    assert bench.dataverse.authority.issued == issued + 2
    assert (found["rowCount"], found["more"], found["artifact"]["name"]) == (MANY, False, f"{name}.csv")
    rows = bench.csv()
    assert [row["accountid"] for row in rows] == bench.dataverse.environment("many").ids("account")
    assert [row["numberofemployees"] for row in rows] == [str(number) for number in range(MANY)]
    _nothing_secret(bench, caplog)


def test_a_column_that_only_a_later_page_has_is_in_the_file(bench: Bench) -> None:
    name = bench.load(TOOLS / "dataverse_query")
    environment = bench.dataverse.environment("dev")
    environment.clear("contact")
    for number in range(5):
        given = {"firstname": "Ana"} if number == 4 else {}
        environment.insert("contact", {"lastname": f"={number}", **given})
    columns = "<attribute name='firstname'/><attribute name='lastname'/>"
    fetch = f"<fetch><entity name='contact'>{columns}</entity></fetch>"
    found = bench.call(name, {"fetchXml": fetch, "pageSize": 2}, executionMode="headless")
    assert found["rowCount"] == 5
    rows = bench.csv()
    assert [row["firstname"] for row in rows] == ["", "", "", "", "Ana"]
    assert [row["lastname"] for row in rows] == [f"'={number}" for number in range(5)]


def test_a_file_of_json_lines(bench: Bench) -> None:
    name = bench.load(TOOLS / "dataverse_query")
    arguments = {"odata": "accounts?$select=name", "pageSize": 5, "format": "jsonl"}
    bench.call(name, arguments, executionMode="headless")
    (data,) = [bench.store.blobs[blob] for blob in bench.store.mime_types]
    assert [json.loads(line)["name"] for line in data.splitlines()] == [f"Account {n:05}" for n in range(1, 13)]


def test_one_record_is_picked(bench: Bench) -> None:
    name = bench.load(TOOLS / "entity_picker")
    (_, second, *_) = bench.dataverse.environment("dev").ids("account")
    found = bench.call(name, {"entityName": "account", "search": "00002"})
    assert found == {"selectedId": second, "selectedName": "Account 00002"}


def test_several_records_are_picked_when_they_may_be(bench: Bench) -> None:
    name = bench.load(TOOLS / "entity_picker")
    ids = bench.dataverse.environment("dev").ids("account")
    found = bench.call(name, {"entityName": "account", "search": "account 0001", "allowMultiSelect": True})
    assert found == {
        "selectedIds": ids[9:],
        "selectedNames": [f"Account {number:05}" for number in (10, 11, 12)],
    }


def test_which_record_is_meant_must_be_clear(bench: Bench) -> None:
    name = bench.load(TOOLS / "entity_picker")
    text = bench.refused(name, {"entityName": "account", "search": "t 0001"})
    assert "several account records match 't 0001': Account 00010 (" in text
    assert "no account has a name that contains 'Nobody'" in bench.refused(
        name, {"entityName": "account", "search": "Nobody"}
    )


def test_a_whole_name_is_found_behind_many_that_contain_it(bench: Bench) -> None:
    name = bench.load(TOOLS / "entity_picker")
    environment = bench.dataverse.environment("dev")
    for number in range(60):
        environment.insert("sample_project", {"sample_name": f"A depot's plan {number:02}"})
    wanted = environment.insert("sample_project", {"sample_name": "depot's plan"})
    found = bench.call(name, {"entityName": "sample_project", "search": "Depot's plan"})
    assert found == {"selectedId": wanted, "selectedName": "depot's plan"}


def test_a_sign_in_that_fails_shows_no_secret(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    name = bench.load(TOOLS / "entity_picker")
    text = bench.refused(name, {"entityName": "account"}, "Locked")
    assert "Signing in for the connection 'Locked' failed (ClientAuthenticationError)." in text
    _nothing_secret(bench, caplog)


def _nothing_secret(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """No secret and no token in a row, a file, a line for the owner, or the app's log."""
    store = bench.store
    job_ids = {row["jobId"] for row in store.rows.values() if "jobId" in row}
    assert job_ids
    logs = [store.with_logs(job_id) for job_id in job_ids]
    written = [repr(store.rows), repr(logs), repr(store.poison), caplog.text]
    written += [data.decode("latin-1") for data in store.blobs.values()]
    assert caplog.records
    for secret in (SECRET, WRONG, *bench.dataverse.authority._tokens):
        assert not any(secret in text for text in written)
