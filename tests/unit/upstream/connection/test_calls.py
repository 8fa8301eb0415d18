"""Whose a log line is, on a stream that calls share."""

from __future__ import annotations

import asyncio

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
