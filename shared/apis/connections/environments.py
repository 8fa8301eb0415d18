"""What the APIs reach in a running call: its connections, by slot, with tokens that are fetched when needed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Final

from shared import redaction
from shared.account import StorageIdentity
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.credentials import TokenSource
from shared.apis.connections.model import Connection
from shared.apis.environment import PRIMARY, PowerPlatform, Target
from shared.apis.launch import current
from shared.errors import NoConnectionError, ToolError
from shared.storage import Storage
from shared.text import shape_of
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.context import ConnectionInfo, Context
from shared.tool.spec import ExecutionMode

SLOTS: Final = (PRIMARY, "secondary")
#: Connections that one call may name.
MOST: Final = 10


class Environments:
    """Resolves slots of the running invocation. One per process."""

    def __init__(
        self, book: ConnectionBook, make_source: Callable[[Connection], TokenSource] = TokenSource
    ) -> None:
        self._book = book
        self._make_source = make_source
        self._sources: dict[Connection, TokenSource] = {}
        self._lock = threading.Lock()

    def named(self, names: Sequence[str], owner: str, tool: str) -> tuple[ConnectionInfo, ...]:
        """The connections that a call names. Blocks. Raises `ConnectionsError`."""
        return tuple(map(_info, self._book.named(names, owner, tool)))

    def of_ids(self, ids: Sequence[str], owner: str, tool: str) -> tuple[ConnectionInfo, ...]:
        """The connections that a job was accepted with. Blocks. Raises `ConnectionsError`."""
        return tuple(_info(self._book.by_id(identifier, owner, tool)) for identifier in ids)

    def resolve(self, target: Target) -> Slot:
        """The environment in a slot of the running call. Raises `NoConnectionError` when there is none."""
        context = current("A connection")
        number, word = slot_of(target)
        if number >= len(context.connections):
            raise NoConnectionError(_nothing_in(number, word, context))
        connection = context.connections[number].origin
        assert isinstance(connection, Connection)
        with self._lock:
            source = self._sources.get(connection)
            if source is None:
                source = self._sources[connection] = self._make_source(connection)
        return Slot(connection, source, context.deadline)


def from_settings(connections: str, storage: str | StorageIdentity) -> Environments:
    """The connections that settings tell. Raises `SettingsError`."""
    return Environments(ConnectionBook(connections, Storage(storage) if storage else None))


class Slot:
    """An `Environment`: one connection as one invocation reaches it."""

    def __init__(self, connection: Connection, source: TokenSource, deadline: float | None) -> None:
        self._connection = connection
        self._source = source
        self._deadline = deadline
        #: What was given last, by scope: the one that a refusal is about.
        self._given: dict[str, str] = {}

    @property
    def id(self) -> str:
        return self._connection.id

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def url(self) -> str:
        return self._connection.url

    @property
    def power_platform(self) -> PowerPlatform:
        public = PowerPlatform()
        # An app signs in for all that it was granted. Other scopes are what a person would be asked for.
        scopes = [scope for scope in self._connection.scopes if scope.endswith("/.default")]
        url = self._connection.power_platform_url or public.url
        return PowerPlatform(url, scopes[0] if scopes else public.scope)

    async def token(self, scope: str, *, renew: bool = False) -> str:
        rejected = self._given.get(scope) if renew else None
        token = self._source.kept(scope, rejected=rejected)
        if token is None:
            token = await asyncio.to_thread(self._source.get, scope, rejected=rejected)
        redaction.remember(token)
        self._given[scope] = token
        return token

    def deadline(self) -> float | None:
        return self._deadline


def slot_of(target: Target) -> tuple[int, str]:
    """(number, word) of a slot. Raises `ToolError` for what names none."""
    if target is None:
        return 0, PRIMARY
    if isinstance(target, str) and target in SLOTS:
        return SLOTS.index(target), target
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < MOST:
        return target, SLOTS[target] if target < len(SLOTS) else f"slot {target}"
    raise ToolError(
        f"connectionTarget must be 'primary', 'secondary' or a slot from 0 to {MOST - 1}, "
        f"not {shape_of(target)}."
    )


def _nothing_in(number: int, word: str, context: Context) -> str:
    """What is told of an empty slot; of a headless run, in the original's words."""
    if context.execution_mode is ExecutionMode.HEADLESS:
        return (
            f"No {word} connection is available for headless tool '{context.tool_id}'. "
            "Provide a saved connectionName when invoking headless mode."
        )
    where = "connectionName" if number == 0 else f"connectionNames[{number}]"
    return (
        f"No {word} connection is available for tool '{context.tool_id}'. "
        f"Name a saved connection with {ENVELOPE_KEY}.{where}."
    )


def _info(connection: Connection) -> ConnectionInfo:
    return ConnectionInfo(connection.id, connection.name, connection.url, connection)
