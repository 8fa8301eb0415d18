"""All saved connections: those of the setting, and those that an operator put into the table `connections`.

The table is read again after a minute, so that `dev.py connection add` needs no restart. Everybody who may not
use a connection is told what is told of one that does not exist.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from shared.apis.connections import reading
from shared.apis.connections.model import Connection, key_of
from shared.apis.connections.saved import SavedConnections, Tables
from shared.errors import ConnectionsError

_LOG = logging.getLogger(__name__)

#: Seconds that what was read from the table counts.
FRESH: Final = 60.0
#: Seconds until it is tried again after storage did not answer.
AGAIN: Final = 5.0


class ConnectionBook:
    """Looks connections up. `storage`: None without a storage account. All methods block."""

    def __init__(self, setting: str, storage: Tables | None = None) -> None:
        """Raises `SettingsError` when the setting is illegal."""
        self._configured = tuple(reading.read_setting(setting))
        self._table = None if storage is None else SavedConnections(storage)
        self._lock = threading.Lock()
        self._saved: tuple[Connection, ...] = ()
        self._read_before = False
        #: On the clock of `time.monotonic()`: what was read counts until then.
        self._good_until = 0.0

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

    def _from_table(self) -> tuple[Connection, ...]:
        if self._table is None:
            return ()
        with self._lock:
            if time.monotonic() >= self._good_until:
                self._read(self._table)
            return self._saved

    def _read(self, table: SavedConnections) -> None:
        from azure.core.exceptions import AzureError

        try:
            rows = table.rows()
        except AzureError as error:
            _LOG.warning("the saved connections cannot be read: %s", type(error).__name__)
            if not self._read_before:
                raise ConnectionsError(
                    "The saved connections cannot be read now: storage does not answer, or refuses."
                ) from error
            self._good_until = time.monotonic() + AGAIN
            return
        for row in rows:
            if row.entry.faults:
                _LOG.error("the saved connection '%s' is left out: %s", row.id, "; ".join(row.entry.faults))
        self._saved = tuple(row.entry.connection for row in rows if row.entry.connection is not None)
        self._read_before = True
        self._good_until = time.monotonic() + FRESH


def not_one(several: bool, name: str) -> ConnectionsError:
    """The original's texts for a name that several connections have, and for one that none has."""
    if several:
        return ConnectionsError(f"Multiple connections found with name '{name}'. Please make names unique.")
    return ConnectionsError(f"No saved connection found with name '{name}'.")


def _only(found: Sequence[Connection], name: str) -> Connection:
    if len(found) != 1:
        raise not_one(bool(found), name)
    return found[0]
