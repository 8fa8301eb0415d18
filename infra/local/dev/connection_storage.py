"""Where `dev.py connection` works: the settings that count, and the storage account that they name."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from infra.local.dev import paths
from infra.local.dev.console import DevError
from infra.local.dev.settings import effective_settings
from shared.account import StorageIdentity, storage_account
from shared.apis.connections.saved import TABLE, SavedConnections, Tables
from shared.storage import STORAGE_SETTING, Storage, error_code

ACCOUNT_SETTING = f"{STORAGE_SETTING}__accountName"
START_AZURITE = (
    "Start it: `python3 dev.py run` in another terminal, or "
    "`docker compose -f infra/local/docker-compose.yml up --detach`. "
    f"For another account set {STORAGE_SETTING} or {ACCOUNT_SETTING} in the environment."
)
_CONNECT_SECONDS = 3.0


def read_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """local.settings.json, when there is one, with environment variables on top. Raises `DevError`.

    An account that the environment names by identity counts, even if the file has a connection string.
    """
    settings = (
        effective_settings(paths.LOCAL_SETTINGS, environ) if paths.LOCAL_SETTINGS.exists() else dict(environ)
    )
    by_identity = any(value for name, value in environ.items() if name.startswith(f"{STORAGE_SETTING}__"))
    if by_identity and not environ.get(STORAGE_SETTING):
        settings.pop(STORAGE_SETTING, None)
    return settings


@dataclass(frozen=True)
class Place:
    """`tables`: None when no storage is set."""

    tables: Tables | None
    #: How a person knows it, without a key.
    label: str

    def saved(self) -> SavedConnections:
        """Raises `DevError` when there is nowhere to save."""
        if self.tables is None:
            raise DevError(
                f"{STORAGE_SETTING} is not set: there is no table to keep connections in.",
                f"`python3 dev.py run` makes local.settings.json; or set that or {ACCOUNT_SETTING}.",
            )
        return SavedConnections(self.tables)


def place_of(settings: Mapping[str, str]) -> Place:
    """The storage that settings name. Raises `DevError` when it is no account, or an emulator that is away.

    Raises `SettingsError` as the app does.
    """
    account = storage_account(settings)
    if not account:
        return Place(None, "none")
    if isinstance(account, StorageIdentity):
        # Here it is whoever runs the command: the app's own identity is there on Azure only.
        account = account._replace(managed=False)
    storage = Storage(account)
    try:
        address = storage.table(TABLE).url
    except ValueError:
        raise DevError(
            f"{STORAGE_SETTING} is no connection string of a storage account.",
            "Copy it from the account's access keys, or write UseDevelopmentStorage=true for the emulator.",
        ) from None
    _look_for_emulator(address)
    return Place(storage, _host(address))


@contextlib.contextmanager
def storage_errors(place: Place, roles: str = "role Storage Table Data Contributor") -> Iterator[None]:
    """What storage answers, as a `DevError` that says what to do. `roles`: those that the command needs."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

    try:
        yield
    except ClientAuthenticationError as error:
        raise DevError(
            f"The storage account ({place.label}) refuses: {error_code(error) or type(error).__name__}.",
            f"Check the key in {STORAGE_SETTING}. With {ACCOUNT_SETTING} sign in (`az login`), with the "
            f"{roles}.",
        ) from error
    except HttpResponseError as error:
        refused = error.status_code == 403
        answer = f"HTTP {error.status_code} {error_code(error)}".strip()
        raise DevError(
            f"The storage account ({place.label}) answered {answer}.",
            f"The {roles} and the account's firewall decide who may." if refused else "",
        ) from error
    except AzureError as error:
        raise DevError(
            f"The storage account ({place.label}) cannot be reached ({type(error).__name__}).",
            f"Check {STORAGE_SETTING} and the network.",
        ) from error


def _look_for_emulator(address: str) -> None:
    """An emulator that is not there is told of at once: the client would try for long."""
    parts = urlsplit(address)
    if parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), _CONNECT_SECONDS).close()
    except OSError:
        raise DevError(f"Azurite is not running: nothing listens on {_host(address)}.", START_AZURITE) from None


def _host(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


def use_settings(settings: Mapping[str, str]) -> None:
    """Let libraries see them as in the app, where every setting is an environment variable."""
    os.environ.update({name: value for name, value in settings.items() if name and "=" not in name})
