"""The inbox that several posts fill."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from shared.upstream.connection.posting import Arrivals

_whose: ContextVar[str] = ContextVar("whose")


def note(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="note", params={"number": number}))


def test_a_flood_is_held_up_until_it_is_read_and_keeps_its_order() -> None:
    async def main() -> None:
        arrivals = Arrivals()
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for number in range(2_000):
                await arrivals.send(note(number))
                sent += 1

        task = asyncio.create_task(flood())
        for _ in range(5):
            await asyncio.sleep(0)
        assert 0 < sent < 1_000
        numbers = []
        for _ in range(2_000):
            item = await arrivals.receive()
            assert isinstance(item, SessionMessage)
            assert isinstance(item.message, JSONRPCNotification)
            assert item.message.params is not None
            numbers.append(item.message.params["number"])
        await task
        assert numbers == list(range(2_000))

    asyncio.run(main())


def test_closing_frees_whoever_is_held_up() -> None:
    async def main() -> None:
        arrivals = Arrivals()

        async def flood() -> None:
            while True:
                await arrivals.send(note(0))

        task = asyncio.create_task(flood())
        await asyncio.sleep(0)
        arrivals.close()
        with pytest.raises(anyio.ClosedResourceError):
            await asyncio.wait_for(task, 5)

    asyncio.run(main())


def test_each_message_brings_the_context_it_was_sent_in() -> None:
    async def main() -> None:
        arrivals = Arrivals()

        async def sender(name: str) -> None:
            _whose.set(name)
            await arrivals.send(note(0))

        for name in ("one", "two"):
            await asyncio.create_task(sender(name))
        for name in ("one", "two"):
            await arrivals.receive()
            assert arrivals.last_context is not None
            assert arrivals.last_context[_whose] == name

    asyncio.run(main())
