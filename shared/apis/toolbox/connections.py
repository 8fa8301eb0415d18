"""`toolboxAPI.connections`: which environments this call may use."""

from __future__ import annotations

from typing import Any

from shared.apis.bridge import settled
from shared.apis.connections.environments import slot_of
from shared.apis.connections.model import Connection
from shared.apis.environment import Target
from shared.apis.launch import current
from shared.apis.record import Record, wrap
from shared.apis.toolbox.spelling import TwoSpellings
from shared.tool.context import ConnectionInfo

_WHAT = "toolboxAPI.connections"


class ConnectionsApi(TwoSpellings):
    """They give `{id, name, url, environment, …}`, no way to sign in; None for an empty slot."""

    def get_active_connection(self) -> Any:
        return settled(_in_slot(0))

    def get_secondary_connection(self) -> Any:
        return settled(_in_slot(1))

    def get_connection(self, target: Target = None) -> Any:
        return settled(_in_slot(slot_of(target)[0]))

    def get_connections(self) -> Any:
        """All of them, by slot."""
        return settled([_wire(connection) for connection in current(_WHAT).connections])


def _in_slot(number: int) -> Record | None:
    connections = current(_WHAT).connections
    return _wire(connections[number]) if number < len(connections) else None


def _wire(info: ConnectionInfo) -> Record:
    if isinstance(info.origin, Connection):
        return Record(wrap(info.origin.to_wire()))
    return Record(id=info.id, name=info.name, url=info.url)
