"""All connections of both sources, good and bad, and what an operator has to know of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from shared.apis.connections import auth
from shared.apis.connections.model import Connection, key_of
from shared.apis.connections.reading import Entry
from shared.apis.connections.saved import Row


class Source(StrEnum):
    SETTING = "setting"
    TABLE = "table"


@dataclass(frozen=True)
class Listed:
    """One entry, bad ones included."""

    source: Source
    entry: Entry
    #: The row it was read from, for those of the table.
    row: Row | None = None
    #: A connection of the setting has the same id, and counts instead.
    hidden: bool = False
    #: Ids of others that the same callers could mean by its name.
    ambiguous_with: tuple[str, ...] = ()

    @property
    def connection(self) -> Connection | None:
        return self.entry.connection

    @property
    def id(self) -> str:
        if self.connection is not None:
            return self.connection.id
        return self.row.id if self.row is not None else self.entry.path

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def healthy(self) -> bool:
        return self.connection is not None and not self.hidden and not self.ambiguous_with


def inventory(configured: Sequence[Entry], rows: Sequence[Row]) -> list[Listed]:
    """Those of the setting, then those of the table by name."""
    listed = [Listed(Source.SETTING, entry) for entry in configured]
    known = {one.connection.id for one in listed if one.connection is not None}
    for row in sorted(rows, key=lambda row: (key_of(row.entry.name), row.id)):
        connection = row.entry.connection
        hidden = connection is not None and connection.id in known
        listed.append(Listed(Source.TABLE, row.entry, row, hidden))
    counting = [one.connection for one in listed if one.connection is not None and not one.hidden]
    return [
        replace(one, ambiguous_with=_ambiguous(one.connection, counting))
        if one.connection is not None and not one.hidden
        else one
        for one in listed
    ]


def find(listed: Sequence[Listed], name_or_id: str) -> list[Listed]:
    """Those of this id, else those of this name."""
    by_id = [one for one in listed if one.id == name_or_id.strip() and not one.hidden]
    return by_id or [one for one in listed if one.name and key_of(one.name) == key_of(name_or_id)]


def to_json(one: Listed, settings: Mapping[str, str]) -> dict[str, Any]:
    """What is shown of it: names of settings, and no value of any."""
    shown: dict[str, Any] = {"source": str(one.source), "id": one.id, "name": one.name, "ok": one.healthy}
    if (connection := one.connection) is not None:
        shown |= connection.to_wire()
        shown["auth"] = auth.to_json(connection.auth)
        shown["owners"] = list(connection.owners)
        shown["tools"] = None if connection.tools is None else list(connection.tools)
        shown["missingSettings"] = missing(connection, settings)
    shown["ambiguousWith"] = list(one.ambiguous_with)
    shown["hiddenBySetting"] = one.hidden
    shown["faults"] = list(one.entry.faults)
    return shown


def missing(connection: Connection, settings: Mapping[str, str]) -> list[str]:
    """Settings that signing in needs and that are not set here."""
    return [name for name in connection.settings if not settings.get(name, "").strip()]


def _ambiguous(connection: Connection, others: Sequence[Connection]) -> tuple[str, ...]:
    return tuple(
        other.id
        for other in others
        if other is not connection and other.key == connection.key and _same_callers(connection, other)
    )


def _same_callers(one: Connection, other: Connection) -> bool:
    if set(one.owners).isdisjoint(other.owners):
        return False
    return one.tools is None or other.tools is None or not set(one.tools).isdisjoint(other.tools)
