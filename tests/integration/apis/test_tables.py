"""What the APIs keep in tables: tools' settings, and the connections that an operator saved."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from infra.local.azurite import Azurite
from shared import ids
from shared.apis import ports
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.reading import read_setting
from shared.apis.connections.saved import SavedConnections
from shared.apis.toolbox import settings
from shared.apis.toolbox.settings_table import TableSettingsStore
from shared.errors import ConnectionsError, LostLeaseError
from shared.storage import Storage

pytestmark = pytest.mark.integration


def test_settings_are_replaced_only_in_the_version_that_was_read(azurite: Azurite) -> None:
    store, owner = TableSettingsStore(Storage(azurite.connection_string)), f"owner/{ids.new_id()}"
    assert store.read(owner, "tool") == ({}, "")
    store.write(owner, "tool", {"a": [1, {"漢": None}]}, "")
    values, version = store.read(owner, "tool")
    assert values == {"a": [1, {"漢": None}]}
    store.write(owner, "tool", {"b": 2}, version)
    for stale in (version, ""):
        with pytest.raises(LostLeaseError):
            store.write(owner, "tool", {"c": 3}, stale)
    assert store.read(owner, "tool")[0] == {"b": 2}
    assert store.read(owner, "other") == ({}, "")


def test_changes_at_once_are_all_kept(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    store, owner = TableSettingsStore(Storage(azurite.connection_string)), ids.new_id()
    monkeypatch.setattr(ports, "_open", lambda: store)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: settings._merge(owner, "tool", {f"k{n}": n}, False), range(4)))
    assert store.read(owner, "tool")[0] == {f"k{n}": n for n in range(4)}


def test_a_saved_connection_is_found_by_every_process_and_can_be_removed(azurite: Azurite) -> None:
    name = f"Saved {ids.new_id()}"
    entry = {
        "name": name,
        "url": "https://acme.crm.dynamics.com",
        "auth": {"type": "default"},
        "owners": ["ana"],
    }
    (connection,) = read_setting(json.dumps([entry]))
    storage = Storage(azurite.connection_string)
    operator = SavedConnections(storage)
    operator.add(connection)
    with pytest.raises(ConnectionsError, match="is saved already"):
        operator.add(connection)
    app = ConnectionBook("", Storage(azurite.connection_string))
    assert app.named([name.upper()], "ana", "any") == [connection]
    with pytest.raises(ConnectionsError, match="No saved connection found"):
        app.named([name], "ben", "any")
    (row,) = [row for row in operator.rows() if row.id == connection.id]
    assert operator.remove(row) is True
    assert operator.remove(row) is False
    operator.add(connection)
    assert operator.remove(row) is False  # another one by now
    (row,) = [row for row in operator.rows() if row.id == connection.id]
    assert operator.remove(row) is True
    with pytest.raises(ConnectionsError, match="No saved connection found"):
        ConnectionBook("", storage).named([name], "ana", "any")
