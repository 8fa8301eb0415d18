"""One storage account, by connection string or by identity: which settings mean what, what the clients do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from shared import settings
from shared.account import StorageIdentity, storage_account
from shared.errors import SettingsError
from shared.storage import Storage, identity_credential

S = "AzureWebJobsStorage"
REAL = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a2V5;EndpointSuffix=core.windows.net"
URIS = {f"{S}__{name}ServiceUri": f"https://acme.{name}.example.cloud/" for name in ("blob", "queue", "table")}


def identity(environ: Mapping[str, str]) -> StorageIdentity:
    found = storage_account(environ)
    assert isinstance(found, StorageIdentity)
    return found


def test_an_account_name_gives_all_addresses() -> None:
    assert identity({f"{S}__accountName": "acme01"}) == StorageIdentity(
        blob="https://acme01.blob.core.windows.net",
        queue="https://acme01.queue.core.windows.net",
        table="https://acme01.table.core.windows.net",
    )


def test_addresses_win_over_the_name_one_by_one() -> None:
    found = identity({f"{S}__accountName": "acme01", f"{S}__queueServiceUri": "https://q.example.cloud"})
    assert (found.blob, found.queue) == ("https://acme01.blob.core.windows.net", "https://q.example.cloud")
    assert identity(URIS).table == "https://acme.table.example.cloud"


def test_a_connection_string_wins() -> None:
    assert storage_account({S: REAL, f"{S}__accountName": "other"}) == REAL
    assert storage_account({}) == ""


def test_identity_settings_are_those_of_the_host() -> None:
    found = identity({**URIS, f"{S}__clientId": " c1 ", f"{S}__credential": "managedIdentity"})
    assert (found.client_id, found.managed) == ("c1", True)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (f"{S}__accountName", "Acme_01", "3 to 24"),
        (f"{S}__accountName", "evil.example/#", "3 to 24"),
        (f"{S}__tableServiceUri", "http://acme.table.core.windows.net", "https"),
        (f"{S}__tableServiceUri", "acme.table.core.windows.net", "https"),
        (f"{S}__tableServiceUri", "https://acme.table.core.windows.net/?sig=abc", "without a key"),
        (f"{S}__tableServiceUri", "https://acme.table.core.windows.net", "all three"),
        (f"{S}__credential", "clientsecret", "managedidentity"),
    ],
)
def test_a_fault_names_its_setting_and_repeats_no_value(name: str, value: str, said: str) -> None:
    environ = {name: value} if name != f"{S}__credential" else {**URIS, name: value}
    with pytest.raises(SettingsError) as caught:
        settings.load(environ)
    assert name.split("__")[1] in caught.value.message
    assert said in caught.value.message
    assert "sig=abc" not in caught.value.message


def test_placeholders_are_refused_with_an_account_by_identity() -> None:
    with pytest.raises(SettingsError, match="placeholder"):
        settings.load({f"{S}__accountName": "devstoreaccount1", "MCP_AUTH_TOKEN": settings.PLACEHOLDER_TOKEN})


def test_all_settings_reach_the_processes_of_tools() -> None:
    assert settings.connection_settings({"CONNECTIONS": "[]", **URIS}) == ("[]", identity(URIS))


def test_every_client_goes_to_its_address_with_one_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1/token")
    storage = Storage(identity({**URIS, f"{S}__clientId": "c1"}))
    clients: list[Any] = [
        storage.table("jobs"),
        storage.queue("jobs"),
        storage.raw_queue("jobs"),
        storage.container("jobs"),
    ]
    assert [client.url for client in clients] == [
        "https://acme.table.example.cloud",
        "https://acme.queue.example.cloud/jobs",
        "https://acme.queue.example.cloud/jobs",
        "https://acme.blob.example.cloud/jobs",
    ]
    assert len({id(client.credential) for client in clients}) == 1
    assert storage.table("jobs") is clients[0]


@pytest.mark.parametrize(
    "account", [REAL, StorageIdentity("https://b.example", "https://q.example", "https://t.example")]
)
def test_both_kinds_have_the_same_retries_and_the_same_messages(account: str | StorageIdentity) -> None:
    from azure.storage.queue import TextBase64EncodePolicy

    storage = Storage(account)
    queue: Any = storage.queue("jobs")
    others: list[Any] = [storage.raw_queue("jobs"), storage.container("jobs")]
    assert isinstance(queue._message_encode_policy, TextBase64EncodePolicy)
    for client in (queue, *others):
        policy = client._config.retry_policy
        assert (policy.total_retries, policy.get_backoff_time({"count": 1})) == (5, 0.0)
    table: Any = storage.table("jobs")
    policies = table._client._client._pipeline._impl_policies
    (table_policy,) = [policy for policy in policies if hasattr(policy, "total_retries")]
    assert (table_policy.total_retries, table_policy.backoff_factor) == (5, 0.2)


def test_the_platform_is_asked_alone_where_there_is_one() -> None:
    """Trying the other ways first costs seconds; falling back to them would hide a missing identity."""
    somewhere = StorageIdentity("https://b.example", "https://q.example", "https://t.example", "c1")
    kinds = {
        "ManagedIdentityCredential": [
            identity_credential(somewhere, {"IDENTITY_ENDPOINT": "http://127.0.0.1:1"}),
            identity_credential(identity({**URIS, f"{S}__credential": "managedidentity"}), {}),
        ],
        "DefaultAzureCredential": [identity_credential(somewhere, {})],
    }
    for kind, credentials in kinds.items():
        assert {type(credential).__name__ for credential in credentials} == {kind}


def test_nothing_is_loaded_before_the_first_client() -> None:
    code = (
        "import sys; from shared.storage import Storage; from shared.account import StorageIdentity;"
        "Storage(StorageIdentity('https://b.x', 'https://q.x', 'https://t.x'));"
        "print([name for name in sys.modules if name.startswith(('azure.identity', 'azure.data'))])"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_no_storage_says_what_to_set() -> None:
    with pytest.raises(SettingsError, match="accountName"):
        Storage("")
