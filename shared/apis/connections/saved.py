"""The table `connections`: one row for each that an operator saved. All methods block.

    PartitionKey "connection", RowKey the connection's id, connection: its JSON, which holds no secret

Rows are added and removed, never written over: whoever comes second is told, and nobody's change is lost.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from shared.apis.connections import reading
from shared.apis.connections.model import Connection
from shared.errors import ConnectionsError
from shared.storage import make

if TYPE_CHECKING:
    from azure.data.tables import TableClient

TABLE: Final = "connections"
PARTITION: Final = "connection"


class Tables(Protocol):
    """A storage account, as far as it is needed here."""

    def table(self, name: str) -> TableClient: ...


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read."""

    id: str
    entry: reading.Entry
    etag: str


class SavedConnections:
    """Raises azure-core's errors when storage does not answer or refuses."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def rows(self) -> list[Row]:
        """Every row, with what is wrong with it."""
        from azure.core.exceptions import ResourceNotFoundError

        try:
            found = list(self._table.query_entities(f"PartitionKey eq '{PARTITION}'"))
        except ResourceNotFoundError:
            return []  # none was ever saved
        return [Row(row["RowKey"], _entry(row), str(row.metadata.get("etag", ""))) for row in found]

    def add(self, connection: Connection) -> None:
        """Raises `ConnectionsError` when there is one of this id."""
        from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

        row = {
            "PartitionKey": PARTITION,
            "RowKey": connection.id,
            "connection": json.dumps(reading.to_json(connection), ensure_ascii=False),
        }
        try:
            try:
                self._table.create_entity(row)
            except ResourceNotFoundError:
                make(self._table.create_table)
                self._table.create_entity(row)
        except ResourceExistsError:
            raise ConnectionsError(
                f"A connection with the name '{connection.name}' is saved already."
            ) from None

    def remove(self, row: Row) -> bool:
        """Removes the row as it was read. False: it is gone, or another one by now."""
        from azure.core import MatchConditions
        from azure.core.exceptions import HttpResponseError

        # As a transaction: `delete_entity` is silent about a row that is not there.
        unchanged = {"etag": row.etag, "match_condition": MatchConditions.IfNotModified}
        keys = {"PartitionKey": PARTITION, "RowKey": row.id}
        try:
            self._table.submit_transaction([("delete", keys, unchanged)])
        except HttpResponseError as error:
            if error.status_code in (404, 412):
                return False
            raise
        return True

    @property
    def _table(self) -> TableClient:
        return self._tables.table(TABLE)


def _entry(row: dict[str, Any]) -> reading.Entry:
    try:
        raw = json.loads(str(row.get("connection")))
    except (ValueError, RecursionError):
        return reading.Entry("$", "", None, ("$: is not JSON",))
    if isinstance(raw, dict):
        raw.setdefault("id", row["RowKey"])
    entry = reading.entry_of(raw, "$")
    if entry.connection is not None and entry.connection.id != row["RowKey"]:
        return reading.Entry("$", entry.name, None, ("$.id: must be the row's RowKey",))
    return entry
