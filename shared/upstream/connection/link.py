"""What a connection asks of an open session, whatever it runs over. Standard library only; fakes implement
it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.tail import Tail
    from shared.upstream.settings import UpstreamSettings

#: (progress, total, message); called on the event loop, must not wait.
type ProgressFn = Callable[[float, float | None, str | None], None]
#: (level, text); the same.
type LogFn = Callable[[str, str], None]


class ListKind(StrEnum):
    """The key of a list in the capabilities and in the answer, and the first word of its method."""

    TOOLS = "tools"
    PROMPTS = "prompts"


class Events(Protocol):
    """What a session tells of without being asked."""

    def logged(self, level: str, logger: str | None, data: object) -> None: ...

    def changed(self, kind: ListKind) -> None: ...

    def answered_late(self, request_id: int | str) -> None: ...


class Link(Protocol):
    """An open, negotiated session. `lost` is set once it cannot receive any more."""

    @property
    def lost(self) -> asyncio.Event: ...

    @property
    def capabilities(self) -> Mapping[str, Any]: ...

    @property
    def session_id(self) -> str | None: ...

    def ending(self) -> str: ...

    def kill(self) -> None: ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        request_id: str | None = None,
        on_progress: ProgressFn | None = None,
        log_level: str | None = None,
    ) -> dict[str, Any]: ...

    def refuses(self, name: str, schema: Mapping[str, Any]) -> str | None: ...

    async def watch(self) -> None: ...


class Opener(Protocol):
    """Opens a session; entered, served and left by one task."""

    def __call__(
        self, config: ServerConfig, settings: UpstreamSettings, tail: Tail, events: Events
    ) -> AbstractAsyncContextManager[Link]: ...
