"""Saved connections: what a setting may hold, who may use one, and tokens that are asked for once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.apis.connections import reading
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.credentials import TokenSource, credential
from shared.apis.connections.environments import Slot
from shared.apis.connections.model import Auth, AuthType, Connection, EnvironmentKind
from shared.errors import ConnectionsError, SettingsError

SECRET = "sentinel-client-secret"


def entry(name: str = "Prod", **values: Any) -> dict[str, Any]:
    return {
        "name": name,
        "url": "https://acme.crm.dynamics.com",
        "environment": "Production",
        "auth": {"type": "clientSecret", "tenantId": "t", "clientId": "c", "secretSetting": "PROD_SECRET"},
        **values,
    }


def book(*entries: dict[str, Any]) -> ConnectionBook:
    return ConnectionBook(json.dumps(entries))


def one(**values: Any) -> Connection:
    (connection,) = reading.read_setting(json.dumps([entry(**values)]))
    return connection


def test_a_connection_has_what_the_setting_says() -> None:
    found = one(
        category="Sales", scopes=["s"], owners=["ana"], tools=["export"], url="https://acme.crm.dynamics.com/"
    )
    assert (found.name, found.url, found.environment) == (
        "Prod",
        "https://acme.crm.dynamics.com",
        EnvironmentKind.PRODUCTION,
    )
    assert found.auth == Auth(AuthType.CLIENT_SECRET, "t", "c", "PROD_SECRET")
    assert (found.owners, found.tools, found.scopes) == (("ana",), ("export",), ("s",))
    assert found.id == one(category="Other").id  # the same in every process
    assert one(name="Other").id != found.id


def test_what_tools_see_tells_no_way_to_sign_in() -> None:
    shown = json.dumps(one(scopes=["s"]).to_wire()) + repr(one())
    assert "PROD_SECRET" not in shown
    assert "clientSecret" not in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is not JSON"),
        ("{}", "must be a JSON list of connections, not object"),
        ("[5]", "$[0]: expected object, got integer"),
        (json.dumps([entry(url="http://acme.crm.dynamics.com")]), "$[0].url: must be like https://"),
        (json.dumps([entry(url="https://u:p@acme.crm.dynamics.com")]), "$[0].url: must be like https://"),
        (json.dumps([entry(url="https://acme.crm.dynamics.com/x")]), "$[0].url: must be like https://"),
        (json.dumps([entry(url="https://acme:99999")]), "$[0].url: must be like https://"),
        (json.dumps([entry(name=" ")]), "$[0].name: must be a text"),
        (
            json.dumps([entry(environment="prod")]),
            "$[0].environment: must be one of Dev, Test, UAT, Production",
        ),
        (json.dumps([entry(owners=[])]), "$[0].owners: must be a list of one or more texts"),
        (json.dumps([entry(auth={"type": "ropc"})]), "$[0].auth.type: must be one of clientSecret"),
        (json.dumps([entry(auth={"type": "clientSecret"})]), "$[0].auth.tenantId: required field is missing"),
        (json.dumps([entry(colour="red")]), "unknown field 'colour'"),
        (json.dumps([entry(id="x"), entry("Other", id="x")]), "two connections have the id 'x'"),
        ("@nowhere.json", "the file nowhere.json"),
    ],
)
def test_what_is_illegal_is_named(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        reading.read_setting(text)
    assert raised.value.message.startswith("CONNECTIONS")
    assert said in raised.value.message


def test_a_secret_in_the_setting_is_refused_and_not_repeated() -> None:
    auth = {"type": "clientSecret", "tenantId": "t", "clientId": "c", "clientSecret": SECRET}
    with pytest.raises(SettingsError) as raised:
        reading.read_setting(json.dumps([entry(auth=auth)]))
    assert "$[0].auth.clientSecret: a secret does not stand here" in raised.value.message
    assert "$[0].auth.secretSetting: required field is missing" in raised.value.message
    assert SECRET not in raised.value.message


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "connections.json"
    file.write_text(json.dumps([entry()]))
    (found,) = reading.read_setting(f"@{file}")
    assert found.name == "Prod"


@given(
    st.sampled_from(AuthType),
    st.lists(st.text("abc", min_size=1), min_size=1, max_size=3),
    st.none() | st.lists(st.text("abc", min_size=1), min_size=1, max_size=3),
)
def test_a_saved_connection_is_read_back(kind: AuthType, owners: list[str], tools: list[str] | None) -> None:
    made = replace(
        one(),
        auth=Auth(kind, "t", "c", "SECRET_NAME", "CERTIFICATE_NAME", "https://login.example"),
        owners=tuple(owners),
        tools=None if tools is None else tuple(tools),
    )
    faults: list[str] = []
    assert reading.read(json.loads(json.dumps(reading.to_json(made))), "$", faults) == made
    assert faults == []


# Who may use one.


def test_names_are_compared_without_case_and_blanks() -> None:
    (found,) = book(entry("Prod")).named(["  pROD "], "default", "t")
    assert found.name == "Prod"


@pytest.mark.parametrize(("owner", "tool"), [("ben", "export"), ("ana", "other"), ("default", "export")])
def test_who_may_not_use_one_is_told_what_is_told_of_an_unknown_one(owner: str, tool: str) -> None:
    guarded = book(entry(owners=["ana"], tools=["export"]))
    with pytest.raises(ConnectionsError, match="No saved connection found with name"):
        guarded.named(["Prod"], owner, tool)
    with pytest.raises(ConnectionsError, match="is not available any more"):
        guarded.by_id(guarded.all()[0].id, owner, tool)
    assert guarded.named(["prod"], "ana", "export") == [guarded.all()[0]]


def test_without_owners_a_connection_serves_the_default_owner_only() -> None:
    with pytest.raises(ConnectionsError):
        book(entry()).named(["Prod"], "ana", "t")


def test_an_ambiguous_name_is_refused_but_not_for_an_owner_who_sees_one_of_them() -> None:
    both = book(entry("Prod", id="1"), entry("PROD", id="2"), entry("prod", id="3", owners=["ana"]))
    with pytest.raises(ConnectionsError, match="Multiple connections found with name"):
        both.named(["Prod"], "default", "t")
    assert both.named(["Prod"], "ana", "t")[0].id == "3"


# Tokens.


@dataclass
class Given:
    token: str
    expires_on: float


class Service:
    """A sign-in service that counts."""

    def __init__(self, lifetime: float = 3600) -> None:
        self.asked: list[str] = []
        self.made = 0
        self.lifetime = lifetime
        self.gate = threading.Event()
        self.gate.set()

    def make(self, connection: Connection, environ: Mapping[str, str]) -> Service:
        self.made += 1
        return self

    def get_token(self, *scopes: str) -> Given:
        self.gate.wait(10)
        self.asked += scopes
        return Given(f"token-{len(self.asked)}", time.time() + self.lifetime)


def test_a_token_is_kept_until_a_minute_before_its_end() -> None:
    service = Service()
    source = TokenSource(one(), {}, service.make)
    assert [source.get("a"), source.get("a"), source.get("b")] == ["token-1", "token-1", "token-2"]
    short = Service(lifetime=59)
    source = TokenSource(one(), {}, short.make)
    assert [source.get("a"), source.get("a")] == ["token-1", "token-2"]


def test_threads_that_come_together_ask_once() -> None:
    service = Service()
    service.gate.clear()
    source = TokenSource(one(), {}, service.make)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(source.get, "a") for _ in range(8)]
        service.gate.set()
        assert {future.result(10) for future in waiting} == {"token-1"}
    assert service.asked == ["a"]


def test_a_rejected_token_is_fetched_again_once() -> None:
    service = Service()
    source = TokenSource(one(), {}, service.make)
    first = source.get("a")
    second = source.get("a", rejected=first)
    assert second != first
    # Another thread that was refused with the same old token gets the new one.
    assert source.get("a", rejected=first) == second
    assert source.kept("a") == second
    assert source.kept("a", rejected=second) is None


def test_a_failed_sign_in_says_which_and_nothing_more() -> None:
    class Refusing(Service):
        def get_token(self, *scopes: str) -> Given:
            raise ValueError(f"AADSTS7000215: invalid secret {SECRET}")

    with pytest.raises(ConnectionsError) as raised:
        TokenSource(one(), {}, Refusing().make).get("a")
    assert raised.value.message == "Signing in for the connection 'Prod' failed (ValueError)."


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "needs the setting PROD_SECRET, which is not set"),
        (
            "@Microsoft.KeyVault(VaultName=v;SecretName=s)",
            "Key Vault reference that the platform could not resolve",
        ),
    ],
)
def test_a_missing_secret_names_its_setting(value: str | None, said: str) -> None:
    pytest.importorskip("azure.identity")
    with pytest.raises(ConnectionsError, match=said):
        credential(one(), {} if value is None else {"PROD_SECRET": value})


def test_a_token_that_is_there_waits_for_no_sign_in_of_another_scope() -> None:
    service = Service()
    source = TokenSource(one(), {}, service.make)
    slot = Slot(one(), source, None)
    assert asyncio.run(slot.token("a")) == "token-1"
    service.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(source.get, "b")
        try:
            assert asyncio.run(asyncio.wait_for(slot.token("a"), 2)) == "token-1"
        finally:
            service.gate.set()
        assert hanging.result(10) == "token-2"
    assert asyncio.run(slot.token("a", renew=True)) == "token-3"
