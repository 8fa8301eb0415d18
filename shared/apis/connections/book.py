"""All saved connections: those of the setting, and those that an operator put into the table `connections`.

The table is read again after a minute, so that `dev.py connection add` needs no restart. Everybody who may not
use a connection is told what is told of one that does not exist.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from shared.apis.connections import reading
from shared.apis.connections.model import Connection, key_of
from shared.errors import ConnectionsError, SettingsError
from shared.storage import upsert

if TYPE_CHECKING:
    from shared.storage import Storage

_LOG = logging.getLogger(__name__)

TABLE: Final = "connections"
PARTITION: Final = "connection"
#: Seconds that what was read from the table counts.
FRESH: Final = 60.0


class ConnectionBook:
    """Looks connections up. `storage`: None without a storage account. All methods block."""

    def __init__(self, setting: str, storage: Storage | None = None) -> None:
        """Raises `SettingsError` when the setting is illegal."""
        self._configured = tuple(reading.read_setting(setting))
        self._storage = storage
        self._lock = threading.Lock()
        self._saved: tuple[Connection, ...] = ()
        self._read_at: float | None = None

    def all(self) -> tuple[Connection, ...]:
        """Every connection; one of the setting hides a saved one of the same id."""
        known = {connection.id for connection in self._configured}
        return (*self._configured, *(saved for saved in self._from_table() if saved.id not in known))

    def named(self, names: Sequence[str], owner: str, tool: str) -> list[Connection]:
        """The connections of these names. Raises `ConnectionsError` for an unknown or an ambiguous one."""
        open_ones = [connection for connection in self.all() if connection.open_to(owner, tool)]
        return [_only([one for one in open_ones if one.key == key_of(name)], name) for name in names]

    def by_id(self, identifier: str, owner: str, tool: str) -> Connection:
        """Raises `ConnectionsError` when it is not there any more, or not for this owner and tool."""
        for connection in self.all():
            if connection.id == identifier and connection.open_to(owner, tool):
                return connection
        raise ConnectionsError("The connection that the job was accepted with is not available any more.")

    def save(self, connection: Connection) -> None:
        """Adds a connection to the table, over one of the same id."""
        row = {
            "PartitionKey": PARTITION,
            "RowKey": connection.id,
            "connection": json.dumps(reading.to_json(connection), ensure_ascii=False),
        }
        upsert(self._table(), row)
        self._read_at = None

    def remove(self, identifier: str) -> bool:
        """Removes a connection from the table; False: it was not there."""
        from azure.core.exceptions import ResourceNotFoundError

        if all(saved.id != identifier for saved in self._from_table()):
            return False
        try:
            self._table().delete_entity(PARTITION, identifier)
        except ResourceNotFoundError:
            return False
        self._read_at = None
        return True

    def _from_table(self) -> tuple[Connection, ...]:
        if self._storage is None:
            return ()
        with self._lock:
            now = time.monotonic()
            if self._read_at is None or now - self._read_at >= FRESH:
                self._saved = tuple(self._read_table())
                self._read_at = now
            return self._saved

    def _read_table(self) -> list[Connection]:
        from azure.core.exceptions import ResourceNotFoundError

        found: list[Connection] = []
        try:
            rows = list(self._table().query_entities(f"PartitionKey eq '{PARTITION}'"))
        except ResourceNotFoundError:
            return []  # none was ever saved
        for row in rows:
            faults: list[str] = []
            connection = reading.read(_json(row.get("connection")), "$", faults)
            if connection is None:
                _LOG.error("the saved connection '%s' is left out: %s", row["RowKey"], "; ".join(faults))
            else:
                found.append(connection)
        return found

    def _table(self) -> Any:
        if self._storage is None:
            raise SettingsError("AzureWebJobsStorage is not set: connections cannot be saved.")
        return self._storage.table(TABLE)


def _only(found: list[Connection], name: str) -> Connection:
    if not found:
        raise ConnectionsError(f"No saved connection found with name '{name}'.")
    if len(found) > 1:
        raise ConnectionsError(f"Multiple connections found with name '{name}'. Please make names unique.")
    return found[0]


def _json(text: object) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        return None
