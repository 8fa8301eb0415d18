"""Clients of the app's storage account: made at first use, shared, with retry and connection settings of ours.

The SDKs' clients are synchronous on purpose: the asynchronous ones need aiohttp, which costs every cold start.
`run` calls them on threads of their own, so that neither the event loop nor the worker's small pool waits.

Why not the SDKs' defaults: the queue client waits 15 s before its first retry, the table client does not repeat
a transaction after a reset, and ten connections are kept for any number of threads. Storage drops idle
connections, so the first request after a pause meets a closed one as a matter of course.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from shared.account import STORAGE_SETTING as STORAGE_SETTING
from shared.account import StorageIdentity
from shared.errors import InputError, SettingsError

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from azure.core.pipeline.transport import RequestsTransport
    from azure.data.tables import TableClient
    from azure.storage.blob import ContainerClient
    from azure.storage.queue import QueueClient

THREADS: Final = 16
#: Seconds. A request that takes longer is given up and repeated.
CONNECT_TIMEOUT: Final = 5
READ_TIMEOUT: Final = 30
RETRIES: Final = 5
#: Seconds before the first retry that waits at all; doubled each time.
BACKOFF: Final = 0.2


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one account's clients try. Seconds, of one try of a request, and how often it is repeated."""

    connect: float = CONNECT_TIMEOUT
    read: float = READ_TIMEOUT
    retries: int = RETRIES

    def for_tables(self) -> dict[str, Any]:
        """As the table client takes it."""
        names = ("retry_total", "retry_connect", "retry_read", "retry_status")
        return {**dict.fromkeys(names, self.retries), "retry_backoff_factor": BACKOFF}


PATIENT: Final = Patience()
#: For who would rather hear that storage is away than wait. One repetition: idle connections are closed.
QUICK: Final = Patience(connect=2, read=2, retries=1)

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="storage")


async def run[**P, R](function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a blocking storage function on a thread of this module's pool."""
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool, call)


class Storage:
    """One storage account. Thread-safe. `account`: a connection string, or an account reached by identity.

    Raises `SettingsError` when it is empty.
    """

    def __init__(self, account: str | StorageIdentity, patience: Patience = PATIENT) -> None:
        if not account:
            raise SettingsError(
                f"{STORAGE_SETTING} is not set: jobs need a storage account. Set a connection string, "
                "UseDevelopmentStorage=true for the emulator, or, to use an identity, "
                f"{STORAGE_SETTING}__accountName."
            )
        self._account = account
        self._patience = patience
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str], Any] = {}

    def table(self, name: str) -> TableClient:
        def make() -> TableClient:
            from azure.data.tables import TableClient

            account, options = self._account, {"transport": self._transport, **self._patience.for_tables()}
            if isinstance(account, str):
                return TableClient.from_connection_string(account, name, **options)
            return TableClient(account.table, name, credential=self._credential, **options)

        return self._client("table", name, make)

    def queue(self, name: str) -> QueueClient:
        """Messages as the Functions host reads them: it sends one that is not base64 to the poison queue."""

        def make() -> QueueClient:
            from azure.storage.queue import TextBase64DecodePolicy, TextBase64EncodePolicy

            return self._queue_client(
                name,
                message_encode_policy=TextBase64EncodePolicy(),
                message_decode_policy=TextBase64DecodePolicy(),
            )

        return self._client("queue", name, make)

    def raw_queue(self, name: str) -> QueueClient:
        """Messages as they are, decodable or not."""
        return self._client("raw queue", name, lambda: self._queue_client(name))

    def _queue_client(self, name: str, **policies: Any) -> QueueClient:
        from azure.storage.queue import QueueClient

        account, options = (
            self._account,
            {"transport": self._transport, "retry_policy": _retry_policy(self._patience.retries), **policies},
        )
        if isinstance(account, str):
            return QueueClient.from_connection_string(account, name, **options)
        return QueueClient(account.queue, name, credential=self._credential, **options)

    def container(self, name: str) -> ContainerClient:
        def make() -> ContainerClient:
            from azure.storage.blob import ContainerClient

            account = self._account
            retries = _retry_policy(self._patience.retries)
            options: dict[str, Any] = {"transport": self._transport, "retry_policy": retries}
            if isinstance(account, str):
                return ContainerClient.from_connection_string(account, name, **options)
            return ContainerClient(account.blob, name, credential=self._credential, **options)

        return self._client("blob", name, make)

    @functools.cached_property
    def _credential(self) -> TokenCredential:
        """One for all services: its cache asks the platform for a token once."""
        account = self._account
        assert isinstance(account, StorageIdentity)
        return identity_credential(account)

    @functools.cached_property
    def _transport(self) -> RequestsTransport:
        """One pool of connections for all services, with room for every thread."""
        import requests
        from azure.core.pipeline.transport import RequestsTransport
        from requests.adapters import HTTPAdapter

        session = requests.Session()
        adapter = HTTPAdapter(pool_connections=8, pool_maxsize=4 * THREADS, max_retries=0)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        return RequestsTransport(
            session=session,
            session_owner=False,
            connection_timeout=self._patience.connect,
            read_timeout=self._patience.read,
        )

    def _client[C](self, kind: str, name: str, make: Callable[[], C]) -> C:
        with self._lock:
            key = (kind, name)
            if key not in self._clients:
                self._clients[key] = make()
            client: C = self._clients[key]
            return client


def identity_credential(account: StorageIdentity, environ: Mapping[str, str] = os.environ) -> TokenCredential:
    """How an account is reached without a key; azure-identity is loaded here.

    On the platform it is the managed identity alone: trying other ways first would cost seconds of every cold
    start. Elsewhere it is whoever is signed in, for instance with `az login`.
    """
    from azure.identity import DefaultAzureCredential, ManagedIdentityCredential

    bounds: dict[str, Any] = {"connection_timeout": CONNECT_TIMEOUT, "read_timeout": READ_TIMEOUT}
    client_id = account.client_id or None
    if account.managed or environ.get("IDENTITY_ENDPOINT"):
        return ManagedIdentityCredential(client_id=client_id, **bounds)
    return DefaultAzureCredential(managed_identity_client_id=client_id, **bounds)


def _retry_policy(retries: int) -> Any:
    """The queue and blob clients' retries. Theirs wait whole seconds even after a closed idle connection."""
    import random

    from azure.storage.queue import ExponentialRetry

    class QuickFirst(ExponentialRetry):
        def get_backoff_time(self, settings: dict[str, Any]) -> float:
            retries_before = max(settings["count"] - 1, 0)
            if retries_before == 0:
                return 0.0
            return float(BACKOFF * 2**retries_before * random.uniform(0.5, 1.5))  # noqa: S311 - jitter

    return QuickFirst(retry_total=retries, retry_connect=retries, retry_read=retries, retry_status=retries)


def make(create: Callable[[], Any]) -> None:
    """Makes a table, a queue or a container that was missed."""
    from azure.core.exceptions import ResourceExistsError

    # Another process may have been quicker.
    with contextlib.suppress(ResourceExistsError):
        create()


def upsert(table: TableClient, row: dict[str, Any]) -> None:
    """Puts a row in the place of whatever stands there. Makes the table when it is missed."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.data.tables import UpdateMode

    try:
        table.upsert_entity(row, mode=UpdateMode.REPLACE)
    except ResourceNotFoundError:
        make(table.create_table)
        table.upsert_entity(row, mode=UpdateMode.REPLACE)


def delete_rows(table: TableClient, partition: str, row_keys: Sequence[str]) -> int:
    """Removes rows of one partition, at most 100, together. How many; 0 when somebody else removes the same."""
    from azure.core.exceptions import HttpResponseError

    operations = [("delete", {"PartitionKey": partition, "RowKey": key}) for key in row_keys]
    try:
        table.submit_transaction(operations)
    except HttpResponseError as error:
        if error.status_code != 404:
            raise
        return 0
    return len(row_keys)


def continuation(token: str | None) -> Any:
    """Where a table's scan goes on: the service's two markers, which say nothing to anybody else.

    `token`: JSON of what the SDK gave at the end of a page. Raises `InputError` for what no page gave.
    """
    if token is None:
        return None
    try:
        found = json.loads(token)
        markers = {name: found[name] for name in ("PartitionKey", "RowKey")}
    except (ValueError, TypeError, KeyError):
        markers = {}
    # The service may give the first without the second.
    if isinstance(markers.get("PartitionKey"), str) and isinstance(markers["RowKey"], str | None):
        return markers
    raise InputError("the scan cannot go on from there")


def may_pass(error: Exception) -> bool:
    """Whether the same request may go through later: storage is away or busy, and did not refuse it."""
    from azure.core.exceptions import AzureError

    status = getattr(error, "status_code", None)
    if status is None:
        return isinstance(error, OSError | AzureError)
    return status in (408, 429) or status >= 500


def error_code(error: Any) -> str:
    """The service's own word for what went wrong, such as `TableNotFound`; empty when it gave none.

    A failed transaction is an error of its own kind, also when the table is missing.
    """
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")
