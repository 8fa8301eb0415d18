"""`dev.py connection` as an operator uses it: a real table, a real token endpoint, and no secret anywhere."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from azure.core.exceptions import ResourceNotFoundError

from infra.local.azurite import Azurite
from infra.local.dataverse.authority import App
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, StandIn
from infra.local.dev import paths
from shared import ids
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.saved import PARTITION, TABLE
from shared.errors import ConnectionsError
from shared.storage import Storage

pytestmark = pytest.mark.acceptance

SECRET = "sentinel-4f1c-of-the-right-secret"
WRONG = "sentinel-4f1c-of-the-wrong-secret"
#: What every secret of these tests has in it.
SENTINEL = "sentinel-4f1c"


class Operator:
    """Runs the command; keeps all that it ever printed."""

    def __init__(self, azurite: Azurite, dataverse: StandIn) -> None:
        self.storage = azurite.connection_string
        self.dataverse = dataverse
        self.printed = ""
        self.environ = {
            **os.environ,
            "AzureWebJobsStorage": self.storage,
            "CONNECTIONS": "",
            "RIGHT_SECRET": SECRET,
            "WRONG_SECRET": WRONG,
            "REQUESTS_CA_BUNDLE": str(dataverse.ca_file),
            "SSL_CERT_FILE": str(dataverse.ca_file),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, str(paths.REPO / "dev.py"), "connection", *arguments],
            env={**self.environ, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
        self.printed += done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def json(self, *arguments: str, code: int = 0, **environ: str) -> Any:
        done = self.run(*arguments, "--json", **environ)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def options(self, setting: str = "RIGHT_SECRET", **changed: str) -> list[str]:
        to = self.dataverse.connection()
        given = {"url": to["url"], "auth": "clientsecret", "tenant-id": to["tenantId"]}
        given |= {"client-id": to["clientId"], "secret-setting": setting, "authority": to["authority"]}
        return [f"--{name}={value}" for name, value in (given | changed).items()]

    def rows(self) -> list[dict[str, Any]]:
        table = Storage(self.storage).table(TABLE)
        try:
            return [dict(row) for row in table.query_entities(f"PartitionKey eq '{PARTITION}'")]
        except ResourceNotFoundError:  # no test has added a connection yet
            return []


@pytest.fixture(scope="module")
def dataverse() -> Iterator[StandIn]:
    with StandIn.start(["dev"], [App(CLIENT_ID, SECRET, TENANT)]) as stand_in:
        yield stand_in


@pytest.fixture
def operator(azurite: Azurite, dataverse: StandIn) -> Iterator[Operator]:
    made = Operator(azurite, dataverse)
    yield made
    assert SENTINEL not in made.printed
    for token in dataverse.authority._tokens:
        assert token not in made.printed


def test_from_add_to_remove(operator: Operator) -> None:
    name = f"Prod {ids.new_id()}"
    added = operator.json(
        "add", f"  {name} ", *operator.options(), "--owner=ana", "--tool=export", "--tool=sync"
    )
    connection = added["connection"]
    assert (connection["name"], connection["source"], connection["ok"]) == (name, "table", True)
    assert (connection["owners"], connection["tools"]) == (["ana"], ["export", "sync"])
    assert connection["missingSettings"] == []

    shown = {one["id"]: one for one in operator.json("list")["connections"]}
    assert shown[connection["id"]] == connection

    tested = operator.json("test", name.upper())
    assert tested["ok"] is True
    assert tested["organizationId"] == operator.dataverse.environment().organization_id
    assert 3000 < tested["tokenExpiresInSeconds"] <= 3600
    text = operator.run("test", connection["id"]).stdout
    assert tested["userId"] in text
    assert "the token lasts 59 min" in text or "the token lasts 60 min" in text

    book = ConnectionBook("", Storage(operator.storage))
    (found,) = book.named([f" {name.lower()} "], "ana", "sync")
    assert found.id == connection["id"]
    with pytest.raises(ConnectionsError, match="No saved connection found"):
        book.named([name], "ana", "another")
    with pytest.raises(ConnectionsError, match="No saved connection found"):
        book.named([name], "default", "sync")

    (row,) = [row for row in operator.rows() if row["RowKey"] == connection["id"]]
    assert SENTINEL not in repr(row)
    assert "RIGHT_SECRET" in row["connection"]

    assert operator.json("remove", name)["removed"] == {"id": connection["id"], "name": name}
    gone = operator.json("remove", name, code=1)
    assert gone["error"] == f"No saved connection found with name '{name}'."
    assert connection["id"] not in {row["RowKey"] for row in operator.rows()}


def test_a_wrong_secret_is_told_and_not_shown(operator: Operator) -> None:
    name = f"Broken {ids.new_id()}"
    operator.json("add", name, *operator.options("WRONG_SECRET"))
    tested = operator.json("test", name, code=1)
    assert (tested["ok"], tested["signedIn"], tested["reason"]) == (False, False, "secret")
    done = operator.run("test", name)
    assert done.returncode == 1
    said = f"error: The connection '{name}' does not work: signing in failed: the client secret is wrong"
    assert done.stderr.startswith(said)
    operator.json("remove", name)


def test_a_secret_is_refused_wherever_it_is_typed(operator: Operator) -> None:
    name = f"Careless {ids.new_id()}"
    before = operator.rows()
    random = "Xk7pQ2vR9sT4wY6zB1cD"
    for options in (
        operator.options(SECRET),
        operator.options(random),
        [*operator.options(), f"--client-secret={SECRET}"],
        [*operator.options(), "--secret", SECRET],
        [*operator.options(), "--password", SECRET],
    ):
        done = operator.run("add", name, *options)
        assert done.returncode == 2
        assert "shell's history" in done.stderr
        assert random not in done.stdout + done.stderr
    assert operator.rows() == before


def test_one_name_is_there_once_in_both_places(operator: Operator) -> None:
    name = f"Twice {ids.new_id()}"
    operator.json("add", name, *operator.options())
    again = operator.json("add", f" {name.upper()}", *operator.options(), code=1)
    assert "already, in the table" in again["error"]
    configured = f"Configured {ids.new_id()}"
    entry = {"name": configured, "url": "https://acme.crm.dynamics.com", "auth": {"type": "default"}}
    setting = json.dumps([entry])
    again = operator.json("add", configured.lower(), *operator.options(), code=1, CONNECTIONS=setting)
    assert "already, in the setting CONNECTIONS" in again["error"]
    there = operator.json("remove", configured, code=1, CONNECTIONS=setting)
    assert "stands in the setting CONNECTIONS" in there["error"]
    operator.json("remove", name)


def test_a_list_tells_every_fault_and_what_is_ambiguous(operator: Operator) -> None:
    name = f"Listed {ids.new_id()}"
    added = operator.json("add", name, *operator.options())["connection"]
    good = {"url": "https://acme.crm.dynamics.com", "auth": {"type": "default"}}
    entries = [
        {**good, "name": name.upper(), "id": "same-name"},
        {**good, "name": name, "id": "for-ana", "owners": ["ana"]},
        {
            "name": "Bad",
            "url": "http://acme",
            "colour": "red",
            "auth": {"type": "clientSecret", "secret": SECRET},
        },
    ]
    listed = operator.json("list", code=1, CONNECTIONS=json.dumps(entries))
    assert listed["ok"] is False
    shown = {one["id"]: one for one in listed["connections"]}
    assert shown["same-name"]["ambiguousWith"] == [added["id"]]
    assert shown[added["id"]]["ambiguousWith"] == ["same-name"]
    assert shown["for-ana"]["ambiguousWith"] == []
    bad = next(one for one in listed["connections"] if one["name"] == "Bad")
    faults = " ".join(bad["faults"])
    for said in (
        "unknown field 'colour'",
        "$[2].url: must be like https://",
        "auth.secret: a secret does not",
        "tenantId",
    ):
        assert said in faults
    text = operator.run("list", CONNECTIONS=json.dumps(entries))
    assert text.returncode == 1
    assert "its name is ambiguous" in text.stdout
    assert "The app does not start with a fault in CONNECTIONS." in text.stdout
    ambiguous = operator.json("test", name, code=1, CONNECTIONS=json.dumps(entries[:2]))
    assert ambiguous["error"] == f"Multiple connections found with name '{name}'. Please make names unique."
    assert added["id"] in ambiguous["hint"]
    operator.json("remove", name, CONNECTIONS=json.dumps(entries))


def test_a_bad_row_is_listed_and_can_be_removed(operator: Operator) -> None:
    identifier = ids.new_id()
    operator.json("add", f"Maker {identifier}", *operator.options())  # so that there is a table
    table = Storage(operator.storage).table(TABLE)
    bad = json.dumps({"name": "Row", "url": "https://acme.crm.dynamics.com"})
    table.create_entity({"PartitionKey": PARTITION, "RowKey": identifier, "connection": bad})
    listed = operator.json("list", code=1)
    (shown,) = [one for one in listed["connections"] if one["id"] == identifier]
    assert shown["faults"] == ["$.auth: expected object, got null"]
    assert "illegal" in operator.json("test", identifier, code=1)["error"]
    assert operator.json("remove", identifier)["removed"]["id"] == identifier
    operator.json("remove", f"Maker {identifier}")


def test_storage_that_is_away_says_how_to_start_it(operator: Operator) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        away = operator.storage.replace(f":{_table_port(operator.storage)}/", f":{port}/")
        failed = operator.json("list", code=1, AzureWebJobsStorage=away)
        assert f"Azurite is not running: nothing listens on 127.0.0.1:{port}" in failed["error"]
        assert "python3 dev.py run" in failed["hint"]
    wrong = operator.json("list", code=1, AzureWebJobsStorage="no connection string")
    assert "AzureWebJobsStorage must be a connection string" in wrong["error"]


def _table_port(connection: str) -> str:
    return connection.partition("TableEndpoint=http://127.0.0.1:")[2].partition("/")[0]
