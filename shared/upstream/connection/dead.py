"""The one thing that a pool must know of a failed call beyond its text: whether the server may have begun with
it."""

from __future__ import annotations

from shared.errors import MCPConnectionError


class DeadConnectionError(MCPConnectionError):
    """The connection is of no use any more. `sent`: False when the server certainly has not begun with the
    call."""

    def __init__(self, message: str, server: str | None, command: str | None = None, *, sent: bool) -> None:
        super().__init__(message, server, command)
        self.sent = sent
