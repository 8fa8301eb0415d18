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


@pytest.mark.parametrize(("left", "heard"), [("ana", True), ("ben", False), ("", False)])
def test_lines_after_a_call_was_left_are_of_nobody_but_its_owner(left: str, heard: bool) -> None:
    """A server may go on to speak of a call that nobody waits for: of another owner's data, that is."""

    async def main() -> None:
        calls = Calls(1.0, idle=lambda: None, overdue=lambda: None)
        with pytest.raises(TimeoutError):
            await calls.run(calls.new(owner=left), asyncio.sleep(60), 0.001)
        go = asyncio.Event()

        async def request() -> None:
            await go.wait()

        call = calls.new(owner="ana")
        running = asyncio.create_task(calls.run(call, request(), 5))
        await asyncio.sleep(0)
        found = calls.owner_of_log()
        go.set()
        await running
        await calls.wind_up(1)
        assert found is (call if heard else None)

    asyncio.run(main())


def test_a_late_answer_is_the_last_word_on_a_call_that_was_left() -> None:
    """After it the lines are of whoever calls; of two that were left, both must have been answered."""

    async def main() -> None:
        calls = Calls(1.0, idle=lambda: None, overdue=lambda: None)
        left = [calls.new(owner="ben") for _ in range(2)]
        for call in left:
            with pytest.raises(TimeoutError):
                await calls.run(call, asyncio.sleep(60), 0.001)
        go, found = asyncio.Event(), []
        lone = calls.new(owner="ana")
        running = asyncio.create_task(calls.run(lone, go.wait(), 5))
        await asyncio.sleep(0)
        for answered in ("call-of-nobody", left[0].id, left[0].id, left[1].id):
            calls.answered_late(answered)
            found.append(calls.owner_of_log())
        go.set()
        await running
        await calls.wind_up(1)
        assert found == [None, None, None, lone]

    asyncio.run(main())
