"""`dev.py connection`: its options, what it takes for a secret, and what it knows of two sources together."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ServiceRequestError

from infra.local.dev import cli, connection, connection_options, paths
from infra.local.dev.connection_inventory import Source, find, inventory, to_json
from infra.local.dev.connection_new import _AUTH_KEYS, looks_like_a_secret, new_connection
from infra.local.dev.connection_storage import Place, place_of, read_settings, storage_errors
from infra.local.dev.console import DevError
from shared.apis.connections.auth import OPTIONAL, REQUIRED
from shared.apis.connections.model import AuthType, EnvironmentKind
from shared.apis.connections.reading import Entry, entry_of, setting_entries
from shared.apis.connections.saved import Row
from shared.errors import SettingsError

SECRET = "sentinel~of~the~app"
URL = "https://acme.crm.dynamics.com"
APP = ["--tenant-id=t", "--client-id=c"]


def options(*arguments: str) -> argparse.Namespace:
    return cli._parser().parse_args(["connection", *arguments])


def add(*arguments: str) -> argparse.Namespace:
    return options("add", "Prod", f"--url={URL}", *arguments)


def raw(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "url": URL, "auth": {"type": "default"}, **values}


def configured(*entries: dict[str, Any]) -> list[Entry]:
    return setting_entries(json.dumps(entries))[1]


def row(identifier: str, entry: dict[str, Any]) -> Row:
    return Row(identifier, entry_of({**entry, "id": identifier}, "$"), "1")


# Options.


def test_the_words_of_the_command_line_are_the_models() -> None:
    assert tuple(str(kind) for kind in AuthType) == connection_options.AUTH_TYPES
    assert tuple(str(kind) for kind in EnvironmentKind) == connection_options.ENVIRONMENTS


def test_words_are_taken_in_any_case() -> None:
    given = add("--auth=MANAGEDIDENTITY", "--environment=production", "--client-id=c")
    found = new_connection(given, {})
    assert (found.auth.type, found.environment) == (AuthType.MANAGED_IDENTITY, EnvironmentKind.PRODUCTION)
    assert found.owners == ("default",)
    assert found.tools is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--auth=ropc"],
        ["--auth=default", "--environment=Live"],
        ["--auth=default", "--secret", SECRET],
        ["--auth=default", f"--client-secret={SECRET}"],
        ["--auth=default", f"--password={SECRET}"],
        ["--auth=default", "--secret-sett=X"],
    ],
)
def test_illegal_options_end_with_2_and_repeat_no_secret(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        add(*arguments)
    assert ended.value.code == 2
    assert SECRET not in capsys.readouterr().err


def test_every_field_that_the_app_knows_can_be_given() -> None:
    everything = {name for kind in AuthType for name in (*REQUIRED[kind], *OPTIONAL[kind])}
    signing_in = ["--auth=clientCertificate", *APP, "--authority=https://login.example"]
    signing_in += ["--certificate-setting=C", "--certificate-password-setting=P"]
    api = ["--power-platform-url=https://api.example", "--scope=https://api.example/.default"]
    callers = ["--owner=ana", "--owner=ben", "--tool=export"]
    found = new_connection(add(*signing_in, *api, *callers, "--category=Sales"), {})
    assert found.settings == ("C", "P")
    assert (found.owners, found.tools, found.category) == (("ana", "ben"), ("export",), "Sales")
    assert (found.power_platform_url, found.auth.authority) == ("https://api.example", "https://login.example")
    assert everything == set(_AUTH_KEYS.values()) - {"type"}


def test_faults_name_the_option() -> None:
    given = options("add", "  ", "--url=http://acme", "--auth=clientSecret", "--secret-setting=S", "--tool=")
    with pytest.raises(DevError) as raised:
        new_connection(given, {})
    for said in (
        "NAME: must be",
        "--url: must be like https://",
        "--tenant-id: required",
        "--tool: must be a list",
    ):
        assert said in raised.value.message
    assert raised.value.exit_code == 2


# Secrets.


@pytest.mark.parametrize(
    "value",
    [SECRET, "abc.def", "Xk7pQ2vR9sT4wY6zB1cD", "9f86d081884c7d659a2feaa0c55ad015", "0start", "", "a" * 129],
)
def test_what_looks_like_a_secret_is_refused_with_a_reason(value: str) -> None:
    assert looks_like_a_secret(value)
    with pytest.raises(DevError) as raised:
        new_connection(add("--auth=clientSecret", *APP, f"--secret-setting={value}"), {})
    assert "what was given looks like the secret itself. Nothing was saved." in raised.value.message
    assert "shell's history" in raised.value.hint
    if value:
        assert value not in raised.value.message + raised.value.hint


@pytest.mark.parametrize(
    "value",
    ["PROD_SECRET", "S", "DataverseProdSecret2025", "DATAVERSE_2024_01_15_SECRET", "Crm365Eu1ClientSecret"],
)
def test_what_looks_like_a_name_is_taken(value: str) -> None:
    assert not looks_like_a_secret(value)
    assert new_connection(add("--auth=clientSecret", *APP, f"--secret-setting={value}"), {}).settings == (
        value,
    )


def test_the_value_of_a_setting_is_refused_and_its_name_is_taken() -> None:
    settings = {"PROD_SECRET": "plainword", "x7y8z9x7y8z9x7y8z9": "a value"}
    with pytest.raises(DevError, match="looks like the secret itself"):
        new_connection(add("--auth=clientSecret", *APP, "--secret-setting=plainword"), settings)
    named = new_connection(add("--auth=clientSecret", *APP, "--secret-setting=x7y8z9x7y8z9x7y8z9"), settings)
    assert named.settings == ("x7y8z9x7y8z9x7y8z9",)


# Both sources.


def test_names_are_ambiguous_for_callers_who_see_several() -> None:
    listed = inventory(
        configured(raw("Prod", id="1"), raw("Prod", id="2", owners=["ana"]), raw("Dev", id="3", tools=["a"])),
        [row("4", raw(" PROD ")), row("5", raw("dev", tools=["b"])), row("6", raw("dev", tools=["b", "c"]))],
    )
    assert {one.id: one.ambiguous_with for one in listed if one.ambiguous_with} == {
        "1": ("4",),
        "4": ("1",),
        "5": ("6",),
        "6": ("5",),
    }


def test_the_setting_hides_a_row_of_the_same_id() -> None:
    listed = inventory(configured(raw("Prod", id="1")), [row("1", raw("Prod"))])
    assert [(one.source, one.hidden, one.ambiguous_with) for one in listed] == [
        (Source.SETTING, False, ()),
        (Source.TABLE, True, ()),
    ]
    assert [one.source for one in find(listed, "1")] == [Source.SETTING]


def test_what_is_shown_names_settings_and_tells_which_are_missing() -> None:
    auth = {"type": "clientSecret", "tenantId": "t", "clientId": "c", "secretSetting": "PROD_SECRET"}
    (one,) = inventory(configured(raw("Prod", auth=auth)), [])
    assert to_json(one, {})["missingSettings"] == ["PROD_SECRET"]
    shown = to_json(one, {"PROD_SECRET": SECRET})
    assert shown["missingSettings"] == []
    assert shown["auth"]["secretSetting"] == "PROD_SECRET"
    assert SECRET not in json.dumps(shown)


# Where it works.


@pytest.fixture
def local_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "local.settings.json"
    monkeypatch.setattr(paths, "LOCAL_SETTINGS", path)
    return path


def test_the_environment_wins_and_the_file_may_be_missing(local_settings: Path) -> None:
    assert read_settings({"CONNECTIONS": "x"}) == {"CONNECTIONS": "x"}
    local_settings.write_text(json.dumps({"Values": {"AzureWebJobsStorage": "file", "CONNECTIONS": "file"}}))
    assert read_settings({"CONNECTIONS": "x"}) == {"AzureWebJobsStorage": "file", "CONNECTIONS": "x"}
    by_identity = {"AzureWebJobsStorage__accountName": "acme"}
    assert read_settings(by_identity) == {**by_identity, "CONNECTIONS": "file"}


def test_an_account_by_identity_is_reached_by_its_name() -> None:
    place = place_of({"AzureWebJobsStorage__accountName": "acme"})
    assert place.label == "acme.table.core.windows.net"
    assert place.tables is not None
    assert place.tables.table("connections").url == "https://acme.table.core.windows.net"
    uris = {
        f"AzureWebJobsStorage__{service}ServiceUri": f"https://acme.{service}.core.usgovcloudapi.net"
        for service in ("blob", "queue", "table")
    }
    assert place_of(uris).label == "acme.table.core.usgovcloudapi.net"
    with pytest.raises(SettingsError, match="tableServiceUri must be an https address"):
        place_of({**uris, "AzureWebJobsStorage__tableServiceUri": "http://acme"})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ServiceRequestError("to acme;AccountKey=sentinel"), "cannot be reached (ServiceRequestError)"),
        (ClientAuthenticationError("sentinel"), "refuses"),
        (HttpResponseError("sentinel"), "answered HTTP"),
    ],
)
def test_storage_errors_are_told_without_their_text(error: Exception, said: str) -> None:
    with pytest.raises(DevError) as raised, storage_errors(Place(None, "acme")):
        raise error
    assert said in raised.value.message
    assert "sentinel" not in raised.value.message + raised.value.hint


def test_without_storage_the_setting_is_listed_and_nothing_can_be_saved(
    local_settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"CONNECTIONS": json.dumps([raw("Prod")])}
    assert connection.run(options("list"), environ) == 0
    assert "Prod" in capsys.readouterr().out
    with pytest.raises(DevError, match="AzureWebJobsStorage is not set"):
        connection.run(add("--auth=default"), environ)
    assert connection.run(options("remove", "Prod", "--json"), environ) == 1
    assert "AzureWebJobsStorage is not set" in json.loads(capsys.readouterr().out)["error"]


def test_an_unreadable_setting_is_a_fault_of_the_list(
    local_settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert connection.run(options("list", "--json"), {"CONNECTIONS": f"[{SECRET}"}) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["faults"] == ["CONNECTIONS must be a JSON list of connections; it is not JSON."]
    with pytest.raises(DevError, match="it is not JSON"):
        connection.run(options("test", "Prod"), {"CONNECTIONS": "["})
