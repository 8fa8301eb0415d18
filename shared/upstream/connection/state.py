"""The states of a connection.

    created -> connecting -> connected -> disconnected -> error (closing it failed)
       |           |             +-> error (the server went away, or closing it failed)
       |           +-> error (could not be opened)
       +-----------+-> disconnected

`disconnected` and `error` are ends: a reconnect is a new connection object.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ServerState(StrEnum):
    CREATED = "created"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    ERROR = "error"

    @property
    def ended(self) -> bool:
        return self in (ServerState.DISCONNECTED, ServerState.ERROR)

    def may_become(self, to: ServerState) -> bool:
        return to in _MOVES[self]


_MOVES: Final[Mapping[ServerState, frozenset[ServerState]]] = {
    ServerState.CREATED: frozenset({ServerState.CONNECTING, ServerState.DISCONNECTED}),
    ServerState.CONNECTING: frozenset({ServerState.CONNECTED, ServerState.DISCONNECTED, ServerState.ERROR}),
    # To itself: the lists were read again.
    ServerState.CONNECTED: frozenset({ServerState.CONNECTED, ServerState.DISCONNECTED, ServerState.ERROR}),
    ServerState.DISCONNECTED: frozenset({ServerState.ERROR}),
    ServerState.ERROR: frozenset(),
}


class IllegalMoveError(RuntimeError):
    """A programming fault of this package: no caller can bring it about."""


def moved(state: ServerState, to: ServerState) -> ServerState:
    """The new state."""
    if not state.may_become(to):
        raise IllegalMoveError(f"A connection cannot go from {state} to {to}.")
    return to
