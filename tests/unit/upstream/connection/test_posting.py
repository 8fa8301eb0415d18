"""What waits between a transport and the session: bounded in messages and in bytes, and in order."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCResponse

from shared.upstream.connection.inbox import Inbox
from shared.upstream.connection.limits import WAITING_BYTES, WAITING_BYTES_AGAIN
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


def test_bytes_that_wait_are_bounded_too() -> None:
    """Few messages of a server may be as much as it can send."""

    async def main() -> None:
        arrivals, big = Arrivals(), WAITING_BYTES // 2
        sent = 0

        async def flood() -> None:
            nonlocal sent
            for number in range(20):
                await arrivals.arrive(note(number).message, big)
                sent += 1

        floods = [asyncio.create_task(flood()) for _ in range(3)]
        for _ in range(9):
            await asyncio.sleep(0)
        assert sent == 2
        for _ in range(60):
            item = await asyncio.wait_for(arrivals.receive(), 5)
            assert isinstance(item, SessionMessage)
            assert arrivals._bytes <= WAITING_BYTES
        await asyncio.gather(*floods)
        assert arrivals._bytes == 0

    asyncio.run(main())


def test_a_pipe_is_paused_and_read_on() -> None:
    told: list[str] = []
    inbox = Inbox(lambda: told.append("pause"), lambda: told.append("resume"))

    async def main() -> None:
        inbox.put(note(0).message, WAITING_BYTES - 1)
        assert told == []
        inbox.put(note(1).message, 1)
        inbox.put(note(2).message, WAITING_BYTES_AGAIN + 1)
        for expected in (["pause"], ["pause"], ["pause", "resume"]):
            await inbox.receive()
            assert told == expected

    asyncio.run(main())


def test_an_answer_is_given_on_at_once_but_never_before_what_came_first() -> None:
    async def main() -> None:
        inbox, given = Inbox(), []
        inbox.resolve = lambda request_id, outcome: given.append((request_id, outcome))
        answer = JSONRPCResponse(jsonrpc="2.0", id="call-1", result={"done": True})
        refusal = JSONRPCError(jsonrpc="2.0", id="call-2", error=ErrorData(code=-1, message="no"))
        inbox.put(answer)
        inbox.put(refusal)
        assert given == [("call-1", {"done": True}), ("call-2", refusal.error)]
        inbox.put(note(0).message)
        inbox.put(answer)
        assert len(given) == 2
        waiting = [await inbox.receive(), await inbox.receive()]
        kinds = [type(item.message).__name__ for item in waiting if isinstance(item, SessionMessage)]
        assert kinds == ["JSONRPCNotification", "JSONRPCResponse"]
        inbox.put(answer)
        assert len(given) == 3

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
