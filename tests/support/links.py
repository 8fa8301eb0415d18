"""Sessions that are made up: for tests of time, closing and sharing that need no server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.link import Events
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import server

type Answer = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


async def plain(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    if method == "tools/list":
        return {"tools": [{"name": "work"}, {"name": "slow"}]}
    if method == "prompts/list":
        return {"prompts": []}
    if params.get("name") == "slow":
        await asyncio.sleep(3600)
    return {"content": [{"type": "text", "text": "done"}]}


@dataclass
class FakeLink:
    answer: Answer = plain
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    killed: bool = False
    requests: list[str] = field(default_factory=list)

    def ending(self) -> str:
        return "it was told to"

    def kill(self) -> None:
        self.killed = True

    async def request(self, method: str, params: Mapping[str, Any] | None = None, **_: Any) -> dict[str, Any]:
        self.requests.append(method)
        return await self.answer(method, params or {})

    def refuses(self, name: str, schema: Mapping[str, Any]) -> str | None:
        return None

    async def watch(self) -> None:
        return None


async def _nothing() -> None:
    return None


@dataclass
class Fake:
    """How fake sessions open, answer and close. `opened`: all of them, in order."""

    answer: Answer = plain
    opening: Callable[[], Awaitable[None]] = _nothing
    closing: Callable[[], Awaitable[None]] = _nothing
    opened: list[FakeLink] = field(default_factory=list)
    events: Events | None = None
    #: What the sessions announce.
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    closed: int = 0

    @asynccontextmanager
    async def open(self, config: Any, settings: Any, tail: Any, events: Events) -> AsyncIterator[FakeLink]:
        await self.opening()
        self.events = events
        link = FakeLink(self.answer, capabilities=self.capabilities)
        self.opened.append(link)
        try:
            yield link
        finally:
            await self.closing()
            self.closed += 1

    def connection(self, settings: UpstreamSettings | None = None, **fields: Any) -> ServerConnection:
        config = server(command="fake", **fields)
        return ServerConnection(config, settings or UpstreamSettings(), opener=self.open)
