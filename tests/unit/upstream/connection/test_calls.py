"""Whose a log line is, on a stream that calls share."""

from __future__ import annotations

import asyncio

import pytest

from shared.upstream.connection.calls import Calls


def test_a_lone_call_owns_the_lines_and_two_do_not() -> None:
    async def main() -> None:
        calls = Calls(1.0, idle=lambda: None, overdue=lambda: None)
        go, seen = asyncio.Event(), []

        async def request() -> None:
            await go.wait()

        first = calls.new()
        running = asyncio.create_task(calls.run(first, request(), 5))
        await asyncio.sleep(0)
        seen.append(calls.owner_of_log())
        second = asyncio.create_task(calls.run(calls.new(), request(), 5))
        await asyncio.sleep(0)
        seen.append(calls.owner_of_log())
        go.set()
        await asyncio.gather(running, second)
        assert seen == [first, None]

    asyncio.run(main())


def test_lines_after_a_call_was_left_belong_to_nobody() -> None:
    async def main() -> None:
        calls = Calls(1.0, idle=lambda: None, overdue=lambda: None)
        with pytest.raises(TimeoutError):
            await calls.run(calls.new(), asyncio.sleep(60), 0.001)
        go = asyncio.Event()

        async def request() -> None:
            await go.wait()

        running = asyncio.create_task(calls.run(calls.new(), request(), 5))
        await asyncio.sleep(0)
        owner = calls.owner_of_log()
        go.set()
        await running
        await calls.wind_up(1)
        assert owner is None

    asyncio.run(main())
