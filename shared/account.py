"""The app's storage account as settings name it: by a connection string, or by identity.

The settings are those of the Functions host ("identity-based connections"), so that the app and the host reach
one account with one set of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from shared.errors import SettingsError

#: The setting that names the account; `__accountName` and the like behind it for an identity.
STORAGE_SETTING: Final = "AzureWebJobsStorage"

_EMULATOR_ACCOUNT: Final = "devstoreaccount1"
_ACCOUNT_NAME: Final = r"[a-z0-9]{3,24}"
#: A Key Vault reference that the platform could not resolve reaches the app as it stands in the configuration.
_REFERENCE: Final = "@microsoft.keyvault("


class StorageIdentity(NamedTuple):
    """A storage account that is reached by an identity, without a key."""

    #: `https://…` addresses of the account's services.
    blob: str
    queue: str
    table: str
    #: The user-assigned identity; empty: the system-assigned one, or whoever is signed in on this machine.
    client_id: str = ""
    #: Whether only the platform's managed identity may be used (`__credential=managedidentity`).
    managed: bool = False


#: Each connection string has one of these: which account it means, or the addresses of its services.
_NAMES_AN_ACCOUNT: Final = frozenset(
    {"usedevelopmentstorage", "accountname", "blobendpoint", "queueendpoint", "tableendpoint"}
)


def _parts(connection: str) -> dict[str, str]:
    """The parts of a connection string; names in lower case."""
    pieces = (piece.partition("=") for piece in connection.split(";"))
    return {name.strip().lower(): value.strip() for name, equals, value in pieces if equals}


def is_emulator(connection: str | StorageIdentity) -> bool:
    """Whether a storage connection string means the development emulator (Azurite)."""
    if isinstance(connection, StorageIdentity):
        return False
    parts = _parts(connection)
    return (
        parts.get("usedevelopmentstorage", "").lower() == "true"
        or parts.get("accountname", "") == _EMULATOR_ACCOUNT
    )


def storage_account(environ: Mapping[str, str]) -> str | StorageIdentity:
    """The app's storage account: a connection string, or what `AzureWebJobsStorage__…` settings name.

    `__accountName` gives all three addresses; `__blobServiceUri`, `__queueServiceUri` and `__tableServiceUri`
    give one each and win. `""` when nothing is set. Raises `SettingsError`.
    """
    connection = environ.get("AzureWebJobsStorage", "").strip()
    if connection:
        refuse_reference("AzureWebJobsStorage", connection)
        if not _NAMES_AN_ACCOUNT & _parts(connection).keys():
            raise SettingsError(
                "AzureWebJobsStorage must be a connection string, like UseDevelopmentStorage=true or "
                f"AccountName=…;AccountKey=…, not another text of {len(connection)} characters."
            )
        return connection
    name = "AzureWebJobsStorage__accountName"
    account = environ.get(name, "").strip()
    if account and not re.fullmatch(_ACCOUNT_NAME, account):
        raise SettingsError(
            f"{name} must be the name of a storage account: 3 to 24 of the characters a-z 0-9, "
            f"not another text of {len(account)} characters."
        )
    blob, queue, table = (_service_address(environ, service, account) for service in ("blob", "queue", "table"))
    if not (blob or queue or table):
        return ""
    if not (blob and queue and table):
        raise SettingsError(
            "AzureWebJobsStorage__blobServiceUri, __queueServiceUri and __tableServiceUri belong together: "
            f"set all three, or {name} alone."
        )
    return StorageIdentity(
        blob,
        queue,
        table,
        client_id=environ.get("AzureWebJobsStorage__clientId", "").strip(),
        managed=_managed_only(environ),
    )


def _service_address(environ: Mapping[str, str], service: str, account: str) -> str:
    name = f"AzureWebJobsStorage__{service}ServiceUri"
    text = environ.get(name, "").strip()
    if not text:
        return f"https://{account}.{service}.core.windows.net" if account else ""
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.query or parts.fragment:
        # Without https the client would refuse to send its token; a key in the address would be no identity.
        raise SettingsError(
            f"{name} must be an https address without a key, like https://NAME.{service}.core.windows.net, "
            f"not another text of {len(text)} characters."
        )
    return text.rstrip("/")


def _managed_only(environ: Mapping[str, str]) -> bool:
    name = "AzureWebJobsStorage__credential"
    text = environ.get(name, "").strip().lower()
    if text not in ("", "managedidentity"):
        raise SettingsError(f"{name} must be managedidentity, or be left out; it is another text.")
    return bool(text)


def refuse_reference(name: str, value: str) -> None:
    """A reference that was not resolved must never pass for the value: its text is no secret."""
    if value.strip().casefold().startswith(_REFERENCE):
        raise SettingsError(
            f"{name} is a Key Vault reference that the platform could not resolve: check that the secret "
            "exists, and that the app's identity has the role Key Vault Secrets User."
        )
