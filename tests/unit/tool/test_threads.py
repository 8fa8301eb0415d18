"""Synchronous tools on threads: bounded, and never stuck behind one that does not come back."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from typing import Any

import pytest

from shared.tool.threads import ThreadPool, run_on_new_thread

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def test_values_errors_and_context_come_through() -> None:
    def work(value: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value, VARIABLE.get(), threading.current_thread() is threading.main_thread()

    async def main() -> None:
        pool = ThreadPool(2, "t")
        VARIABLE.set("set")
        for run in (pool.run, functools.partial(run_on_new_thread, "t")):
            assert await run(work, 5) == (5, "set", False)
            with pytest.raises(KeyError):
                await run(work, KeyError("x"))
            with pytest.raises(RuntimeError, match="SystemExit: 3"):
                await run(work, SystemExit(3))
            with pytest.raises(RuntimeError, match="StopIteration"):
                await run(work, StopIteration())

    asyncio.run(main())


def test_no_more_than_its_size_at_once_and_all_in_the_end() -> None:
    running, most = 0, 0
    lock = threading.Lock()
    pair = threading.Barrier(3)

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pair.wait(10)
        with lock:
            running -= 1
        return number

    async def main() -> list[Any]:
        pool = ThreadPool(3, "t")
        return await asyncio.gather(*(pool.run(work, number) for number in range(30)))

    assert asyncio.run(main()) == list(range(30))
    assert most == 3


def test_an_abandoned_call_gives_its_place_back() -> None:
    release = threading.Event()
    came_back = threading.Semaphore(0)

    def stuck() -> None:
        release.wait(10)
        came_back.release()

    async def main() -> None:
        pool = ThreadPool(2, "t")
        for _ in range(4):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await pool.run(stuck)
        assert await asyncio.wait_for(pool.run(lambda: "served"), 10) == "served"
        release.set()
        for _ in range(4):
            assert await asyncio.to_thread(came_back.acquire, timeout=10)
        # The places that were lent come back: still two at once, not six.
        gate = threading.Barrier(2)
        await asyncio.gather(*(pool.run(gate.wait, 10) for _ in range(8)))

    asyncio.run(main())


def test_calls_that_wait_behind_an_abandoned_one_are_served() -> None:
    """The waiting calls come before the place is given back, and nothing comes after."""
    release = threading.Event()

    async def main() -> list[Any]:
        pool = ThreadPool(2, "t")
        stuck = [asyncio.create_task(pool.run(release.wait, 20)) for _ in range(2)]
        waiting = [asyncio.create_task(pool.run(lambda number=number: number)) for number in range(3)]
        await asyncio.sleep(0.02)
        for task in stuck:
            task.cancel()
        served = await asyncio.wait_for(asyncio.gather(*waiting), 10)
        later = await asyncio.wait_for(pool.run(lambda: "later"), 10)
        release.set()
        return [*served, later]

    assert asyncio.run(main()) == [0, 1, 2, "later"]


def test_a_call_cancelled_before_it_started_never_runs() -> None:
    release = threading.Event()
    ran = []

    async def main() -> None:
        pool = ThreadPool(1, "t")
        first = asyncio.create_task(pool.run(release.wait, 10))
        await asyncio.sleep(0)
        second = asyncio.create_task(pool.run(lambda: ran.append(1)))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        release.set()
        await first
        await pool.run(lambda: ran.append(2))

    asyncio.run(main())
    assert ran == [2]
