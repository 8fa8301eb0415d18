"""One call for asynchronous and synchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from typing import Any

import pytest

from shared.apis import bridge
from shared.apis.dataverse import DataverseApi
from shared.apis.environment import environment, use_resolver
from shared.errors import ToolError
from tests.support.dataverse import FakeEnvironment, Wire, answer

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


async def thread_name(error: Exception | None = None) -> str:
    if error is not None:
        raise error
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_synchronous_code_gets_the_value() -> None:
    assert bridge.call(thread_name) == "apis"
    with pytest.raises(KeyError, match="x"):
        bridge.call(lambda: thread_name(KeyError("x")))
    with pytest.raises(TimeoutError, match="mine"):
        bridge.call(lambda: thread_name(TimeoutError("mine")))


def test_asynchronous_code_awaits_gathers_and_makes_tasks() -> None:
    async def main() -> list[str]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(bridge.call(thread_name))
        pending = bridge.call(thread_name)
        found = [
            task.result(),
            await pending,
            await pending,
            *await asyncio.gather(bridge.call(thread_name)),
            await asyncio.wait_for(bridge.call(thread_name), 5),
            await asyncio.ensure_future(bridge.call(thread_name)),
        ]
        with pytest.raises(KeyError):
            await bridge.call(lambda: thread_name(KeyError("x")))
        with pytest.raises(KeyError):
            await asyncio.create_task(bridge.call(lambda: thread_name(KeyError("x"))))
        return found

    assert asyncio.run(main()) == ["apis"] * 6


def test_a_call_begins_at_once_like_a_promise() -> None:
    async def main() -> None:
        began = threading.Event()

        async def note() -> int:
            began.set()
            return 1

        pending = bridge.call(note)
        assert began.wait(5)
        assert await pending == 1
        assert not pending.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("as_task", [True, False])
def test_cancelling_reaches_the_work(as_task: bool) -> None:
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.set()
            raise

    async def main() -> None:
        call = bridge.call(work)
        waiting = asyncio.create_task(call) if as_task else call
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    assert ended.wait(5)


def test_the_work_sees_the_callers_context() -> None:
    async def who() -> str:
        return WHO.get()

    async def main(name: str) -> str:
        WHO.set(name)
        await asyncio.sleep(0)
        return str(await bridge.call(who))

    async def all_of_them() -> list[str]:
        return list(await asyncio.gather(*(asyncio.create_task(main(str(n))) for n in range(50))))

    assert asyncio.run(all_of_them()) == [str(n) for n in range(50)]
    context = contextvars.copy_context()
    context.run(WHO.set, "sync")
    assert context.run(bridge.call, who) == "sync"


def test_overlapping_calls_reach_their_own_environment() -> None:
    async def work(name: str) -> Any:
        WHO.set(name)
        found = [api.getEntitySetName("account") for _ in range(3)]
        await asyncio.gather(*found)
        for _ in range(3):
            rows = await api.queryData("accounts")
            assert rows.value[0].token == f"Bearer {name}"

    async def main() -> None:
        await asyncio.gather(*(work(f"n{n}") for n in range(50)))

    def resolve(target: Any) -> Any:
        name = WHO.get()

        class Mine(FakeEnvironment):
            async def token(self, scope: str, *, renew: bool = False) -> str:
                return name

        return Mine()

    wire = Wire(*[lambda request: answer({"value": [{"token": request.headers["authorization"]}]})] * 150)
    api = DataverseApi(resolve, wire.hosts)
    asyncio.run(main())


def test_a_synchronous_wait_can_be_interrupted() -> None:
    cancelled = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    class Stop(BaseException):
        pass

    def interrupt() -> None:
        import ctypes

        time.sleep(0.2)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(waiter.ident or 0), ctypes.py_object(Stop))

    def wait() -> None:
        with pytest.raises(Stop):
            bridge.call(long)

    waiter = threading.Thread(target=wait)
    waiter.start()
    interrupt()
    waiter.join(5)
    assert cancelled.wait(5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_forgets_the_loop_of_its_parent() -> None:
    background = bridge.Background()
    first = background.loop()
    background.forget()
    assert background.loop() is not first


def test_without_connections_there_is_no_environment() -> None:
    use_resolver(None)
    with pytest.raises(ToolError, match="No secondary connection is available"):
        environment("secondary")
    try:
        mine: Any = FakeEnvironment()
        use_resolver(lambda target: mine)
        assert environment() is mine
    finally:
        use_resolver(None)


# What is no request.


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> bridge.Background:
    """The APIs' loop, not started yet."""
    fresh = bridge.Background()
    monkeypatch.setattr(bridge, "_background", fresh)
    return fresh


def test_a_value_that_is_there_starts_no_thread(background: bridge.Background) -> None:
    async def main() -> list[int]:
        pending = bridge.settled(1)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(bridge.settled(3))
        return [await pending, await pending, *await asyncio.gather(bridge.settled(2)), task.result()]

    assert asyncio.run(main()) == [1, 1, 2, 3]
    assert bridge.settled(4) == 4
    assert background._loop is None


def test_what_blocks_holds_up_no_loop(background: bridge.Background) -> None:
    gate = threading.Event()

    def wait() -> tuple[bool, str]:
        return gate.wait(10), WHO.get()

    async def main() -> tuple[bool, str]:
        WHO.set("async")
        pending = bridge.blocking(wait)
        await asyncio.sleep(0.01)
        gate.set()
        found: tuple[bool, str] = await pending
        with pytest.raises(KeyError):
            await bridge.blocking(lambda: os.environ["NOWHERE SET"])
        return found

    assert asyncio.run(main()) == (True, "async")
    assert bridge.blocking(threading.get_ident) == threading.get_ident()
    assert background._loop is None


def test_work_of_other_tools_runs_where_the_caller_does(background: bridge.Background) -> None:
    async def where() -> tuple[int, asyncio.AbstractEventLoop]:
        await asyncio.sleep(0)
        return threading.get_ident(), asyncio.get_running_loop()

    async def main() -> None:
        assert await bridge.on_own_loop(where) == (threading.get_ident(), asyncio.get_running_loop())

    asyncio.run(main())
    assert bridge.on_own_loop(where)[0] == threading.get_ident()
    with pytest.raises(KeyError):
        bridge.on_own_loop(lambda: thread_name(KeyError("x")))
    assert background._loop is None
