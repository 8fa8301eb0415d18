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
from types import SimpleNamespace
from typing import Any, Final

import pytest
from azure.core.exceptions import ServiceRequestError
from hypothesis import given
from hypothesis import strategies as st

from shared import redaction
from shared.apis.connections import book as connection_book
from shared.apis.connections import reading, references
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
    st.lists(st.text("abc", min_size=1), min_size=1, max_size=3, unique=True),
    st.none() | st.lists(st.text("abc", min_size=1), min_size=1, max_size=3, unique=True),
)
def test_a_saved_connection_is_read_back(kind: AuthType, owners: list[str], tools: list[str] | None) -> None:
    signing_in = {
        AuthType.CLIENT_SECRET: Auth(kind, "t", "c", "SECRET_NAME", authority="https://login.example"),
        AuthType.CLIENT_CERTIFICATE: Auth(kind, "t", "c", "", "CERTIFICATE_NAME", "PASSWORD_NAME"),
        AuthType.MANAGED_IDENTITY: Auth(kind, client_id="c"),
        AuthType.DEFAULT: Auth(kind, "t", "c", authority="https://login.example"),
    }
    made = replace(
        one(),
        auth=signing_in[kind],
        owners=tuple(owners),
        tools=None if tools is None else tuple(tools),
    )
    faults: list[str] = []
    assert reading.read(json.loads(json.dumps(reading.to_json(made))), "$", faults) == made
    assert faults == []


@pytest.mark.parametrize(
    ("auth", "said"),
    [
        ({"type": "default", "secretSetting": "S"}, "auth.secretSetting: is not used with default"),
        ({"type": "managedIdentity", "tenantId": "t"}, "auth.tenantId: is not used with managedIdentity"),
        ({"type": "default", "password": "x"}, "auth.password: a secret does not stand here"),
        ({"type": "default", "user": "x"}, "auth: unknown field 'user'"),
        ({"type": "default", "clientId": "not an id"}, "auth.clientId: must be a GUID"),
        ({"type": "default", "authority": "http://login.example"}, "auth.authority: must be like https://"),
        (
            {"type": "clientSecret", "tenantId": "t", "clientId": "c", "secretSetting": f"{SECRET}~1"},
            "auth.secretSetting: must be the name of a setting, like PROD_SECRET, and never the secret itself",
        ),
    ],
)
def test_what_signing_in_makes_no_use_of_is_refused(auth: dict[str, str], said: str) -> None:
    faults: list[str] = []
    assert reading.read(entry(auth=auth), "$", faults) is None
    assert said in "; ".join(faults)
    assert SECRET not in "; ".join(faults)


@pytest.mark.parametrize("name", ["two\nlines", "bell\a", "half \ud800", "x" * 501, "\u202eright to left"])
def test_a_name_is_one_line_that_can_be_read(name: str) -> None:
    found = reading.entry_of(entry(name), "$[3]")
    got = f"string of {len(name)} characters" if isinstance(name, str) else "integer"
    assert found.faults == (f"$[3].name: must be a text of 1 to 500 characters on one line, not {got}",)
    assert found.name.isprintable()
    assert len(found.name) <= 80


@pytest.mark.parametrize(
    "text",
    [
        "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/s)",
        "@Microsoft.AppConfiguration(Key=k)",
    ],
)
def test_a_reference_that_nobody_resolved_is_no_file(text: str) -> None:
    with pytest.raises(SettingsError, match="CONNECTIONS is a reference that the platform could not resolve"):
        reading.read_setting(text)


def test_a_file_is_looked_for_beside_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "APP_ROOT", tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "connections.json").write_text(json.dumps([entry()]))
    monkeypatch.chdir("/")
    assert [one.name for one in reading.read_setting("@etc/connections.json")] == ["Prod"]


def test_every_entry_is_told_of_good_or_bad() -> None:
    source, entries = reading.setting_entries(json.dumps([entry(), entry("Bad", url="x"), entry(), 5]))
    assert source == "CONNECTIONS"
    assert [(one.path, one.name, one.connection is not None) for one in entries] == [
        ("$[0]", "Prod", True),
        ("$[1]", "Bad", False),
        ("$[2]", "Prod", False),
        ("$[3]", "", False),
    ]
    assert "two connections have the id" in entries[2].faults[0]
    with pytest.raises(SettingsError, match=r"\$\[1\]\.url.*\$\[2\].*\$\[3\]"):
        reading.read_setting(json.dumps([entry(), entry("Bad", url="x"), entry(), 5]))


def test_owners_and_tools_are_trimmed_and_counted_once() -> None:
    found = one(owners=[" ana ", "ana", "ben"], tools=["export "])
    assert (found.owners, found.tools) == (("ana", "ben"), ("export",))
    faults: list[str] = []
    assert reading.read(entry(tools=[" "]), "$", faults) is None
    assert faults == ["$.tools: must be a list of one or more texts, not one with string of 1 character"]


def test_an_address_is_kept_as_it_is_asked() -> None:
    assert one(url="https://ACME.crm.dynamics.com:443/").url == "https://acme.crm.dynamics.com"
    for url in ("https://acme.crm.dynamics.com//", "https://bücher.example", "https://acme.crm.dynamics.com?x"):
        faults: list[str] = []
        assert reading.read(entry(url=url), "$", faults) is None
        assert len(faults) == 1


# Who may use one.


def test_names_are_compared_without_case_and_blanks() -> None:
    (found,) = book(entry(" Prod ")).named(["  pROD "], "default", "t")
    assert found.name == "Prod"
    # An accent as one character, and as a letter with a mark.
    (found,) = book(entry("Caf\u00e9")).named(["CAFE\u0301"], "default", "t")
    assert found.id == one(name="cafe\u0301").id


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


class Account:
    """A table that answers, until it does not."""

    def __init__(self, *entries: dict[str, Any]) -> None:
        self.found = [Found({"RowKey": str(n), "connection": json.dumps(raw)}) for n, raw in enumerate(entries)]
        self.error: Exception | None = None
        self.reads = 0

    def table(self, name: str) -> Any:
        assert name == "connections"
        return self

    def query_entities(self, _query: str) -> list[Found]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.found


class Found(dict[str, Any]):
    metadata: Final = {"etag": "1"}


def test_one_bad_row_takes_no_other_with_it(caplog: pytest.LogCaptureFixture) -> None:
    account = Account(entry("Good"), entry("Bad", url="x"), entry("Odd", id="another"))
    assert [one.name for one in ConnectionBook("", account).all()] == ["Good"]
    told = caplog.text
    assert "the saved connection '1' is left out: $.url: must be like" in told
    assert "the saved connection '2' is left out: $.id: must be the row's RowKey" in told


def test_what_was_read_outlives_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(connection_book, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    account = Account(entry("Good"))
    reader = ConnectionBook("", account)
    account.error = ServiceRequestError("away")
    with pytest.raises(ConnectionsError, match="cannot be read now: storage does not answer"):
        reader.named(["good"], "default", "t")
    account.error = None
    assert reader.named(["good"], "default", "t")
    assert account.reads == 2
    clock[0] += 59
    reader.all()
    assert account.reads == 2
    clock[0] += 2
    account.error = ServiceRequestError("away")
    assert reader.named(["good"], "default", "t")
    assert account.reads == 3
    account.error, account.found = None, []
    clock[0] += 6
    assert reader.all() == ()


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


def test_what_azure_identity_refuses_names_the_connection_and_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd = replace(one(), auth=replace(one().auth, tenant_id="no tenant"))
    source = TokenSource(odd, {"PROD_SECRET": SECRET})
    with pytest.raises(ConnectionsError, match=r"Signing in for the connection 'Prod' failed \(ValueError\)"):
        source.get("a")
    assert "signing in for the connection 'Prod' failed" in caplog.text
    assert SECRET not in caplog.text
    # From here on it would be taken out of whatever a tool writes.
    assert redaction.Redactor()(f"it is {SECRET}!") == "it is [redacted]!"


def test_after_a_failure_the_secret_is_read_again() -> None:
    class Strict(Service):
        def make(self, connection: Connection, environ: Mapping[str, str]) -> Service:
            self.secret = environ["PROD_SECRET"]
            return super().make(connection, environ)

        def get_token(self, *scopes: str) -> Given:
            if self.secret != "new":
                raise ValueError("old")
            return super().get_token(*scopes)

    environ = {"PROD_SECRET": "old"}
    source = TokenSource(one(), environ, Strict().make)
    with pytest.raises(ConnectionsError):
        source.get("a")
    environ["PROD_SECRET"] = "new"
    assert source.get("a") == "token-1"
    assert (source.expires_on("a") or 0) > time.time() + 3000
    assert source.expires_on("b") is None


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
