"""One kept connection for each configuration, on made-up sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import MCPConnectionError, MCPTimeoutError
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.faults import NotSentError
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.support.links import Fake, plain
from tests.support.upstream import server, until

SETTINGS = UpstreamSettings(cleanup_timeout=0.2)


def pool_of(fake: Fake) -> ConnectionPool:
    def new(config: ServerConfig, settings: UpstreamSettings) -> ServerConnection:
        return ServerConnection(config, settings, opener=fake.open)

    return ConnectionPool(SETTINGS, connect=new)


def test_parallel_callers_share_one_connection() -> None:
    async def main() -> None:
        fake = Fake()
        pool = pool_of(fake)
        config = server(command="fake")
        assert pool.status(config).state is ServerState.CREATED
        assert pool.listed(config) is None
        await asyncio.gather(*(pool.call(config, "work") for _ in range(10)))
        assert len(fake.opened) == 1
        status = pool.status(config)
        assert (status.connected, status.error, status.tool_count, status.has_log) == (True, None, 2, False)
        listed = pool.listed(config)
        assert listed is not None
        assert list(listed) == ["work", "slow"]
        other = server(command="fake", env={"A": "another"})
        await pool.call(other, "work")
        assert len(fake.opened) == 2
        await pool.close()
        assert fake.closed == 2

    asyncio.run(main())


def test_status_waits_for_nobody() -> None:
    """Row 2: neither a call that hangs nor one that opens holds it up."""

    async def main() -> None:
        async def slowly() -> None:
            await asyncio.sleep(3600)

        pool = pool_of(Fake(opening=slowly))
        config = server(command="fake")
        call = asyncio.create_task(pool.call(config, "work"))
        await asyncio.sleep(0.01)
        assert pool.status(config).state is ServerState.CONNECTING
        await pool.close()
        with pytest.raises(MCPConnectionError):
            await call

    asyncio.run(main())


def test_request_that_was_not_sent_is_sent_once_more_on_a_new_connection() -> None:
    async def main() -> None:
        sent: list[int] = []
        fake = Fake()

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if method == "tools/call":
                sent.append(len(fake.opened))
                if len(fake.opened) == 1:
                    raise NotSentError("the pipe is closed")
            return await plain(method, params)

        fake.answer = answer
        pool = pool_of(fake)
        assert (await pool.call(server(command="fake"), "work")).success
        assert sent == [1, 2]
        await pool.close()
        assert fake.closed == 2

    asyncio.run(main())


def test_one_reconnect_then_the_error() -> None:
    async def main() -> None:
        fake = Fake()

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if method == "tools/call":
                raise NotSentError("the pipe is closed")
            return await plain(method, params)

        fake.answer = answer
        pool = pool_of(fake)
        with pytest.raises(MCPConnectionError, match="no longer available: the pipe is closed"):
            await pool.call(server(command="fake"), "work")
        assert len(fake.opened) == 2
        await pool.close()

    asyncio.run(main())


@pytest.mark.parametrize("repeatable", [True, False])
def test_call_that_may_have_run_is_repeated_only_when_that_is_harmless(repeatable: bool) -> None:
    async def main() -> None:
        calls = 0
        fake = Fake()

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal calls
            if method == "tools/call":
                calls += 1
                if calls == 1:
                    fake.opened[-1].lost.set()
                    raise RuntimeError("closed")
            return await plain(method, params)

        fake.answer = answer
        pool = pool_of(fake)
        config = server(command="fake")
        if repeatable:
            assert (await pool.call(config, "work", repeatable=True)).success
        else:
            with pytest.raises(DeadConnectionError) as error:
                await pool.call(config, "work")
            assert error.value.sent
            assert (await pool.call(config, "work")).success
        assert calls == 2
        await pool.close()

    asyncio.run(main())


def test_calls_that_still_run_on_a_given_up_connection_get_their_answers() -> None:
    async def main() -> None:
        go = asyncio.Event()
        fake = Fake()

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if params.get("name") == "slow":
                await go.wait()
            elif method == "tools/call" and len(fake.opened) == 1:
                raise NotSentError("no new stream")
            return await plain(method, {})

        fake.answer = answer
        pool = pool_of(fake)
        config = server(command="fake")
        slow = asyncio.create_task(pool.call(config, "slow"))
        await asyncio.sleep(0.02)
        assert (await pool.call(config, "work")).success
        assert not slow.done()
        assert fake.closed == 0
        go.set()
        assert (await slow).success
        await pool.close()
        assert fake.closed == len(fake.opened) == 2

    asyncio.run(main())


def test_time_of_a_call_covers_the_opening() -> None:
    async def main() -> None:
        async def slowly() -> None:
            await asyncio.sleep(3600)

        pool = pool_of(Fake(opening=slowly))
        started = time.perf_counter()
        with pytest.raises(MCPTimeoutError, match=r"within the 0\.1 s that the call has"):
            await pool.call(server(command="fake"), "work", timeout=0.1)
        assert time.perf_counter() - started < 1
        await pool.close()

    asyncio.run(main())


def test_only_configured_connections_are_kept() -> None:
    async def main() -> None:
        fake = Fake()
        pool = pool_of(fake)
        first, second, third = (server(command="fake", args=(str(n),)) for n in range(3))
        for config in (first, second, third):
            await pool.call(config, "work")
        await pool.keep([first, third.model_copy(update={"disabled": True})])
        assert fake.closed == 2
        assert pool.status(first).connected
        assert pool.status(second).state is ServerState.CREATED
        await pool.call(first, "work")
        assert len(fake.opened) == 3
        await pool.close()

    asyncio.run(main())


def test_calls_under_way_end_before_a_connection_that_is_not_wanted_any_more() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if params.get("name") == "slow":
                await go.wait()
            return await plain(method, {})

        fake = Fake(answer)
        pool = pool_of(fake)
        old, changed = server(command="fake"), server(command="fake", env={"A": "new"})
        running = asyncio.create_task(pool.call(old, "slow"))
        await until(lambda: bool(fake.opened) and "tools/call" in fake.opened[0].requests)
        await asyncio.wait_for(pool.keep([changed]), 5)
        assert (await pool.call(changed, "work")).success
        assert not running.done()
        assert len(fake.opened) == 2
        assert fake.closed == 0
        go.set()
        assert (await running).success
        await until(lambda: fake.closed == 1)
        await pool.close()
        assert fake.closed == 2

    asyncio.run(main())


def test_call_that_waits_for_its_connection_gets_it_though_it_is_not_wanted_any_more() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def slowly() -> None:
            await go.wait()

        fake = Fake(opening=slowly)
        pool = pool_of(fake)
        config = server(command="fake")
        waiting = asyncio.create_task(pool.call(config, "work"))
        await until(lambda: pool.status(config).state is ServerState.CONNECTING)
        keeping = asyncio.create_task(pool.keep([]))
        await asyncio.sleep(0)
        go.set()
        assert (await waiting).success
        await keeping
        await until(lambda: fake.closed == 1)
        assert len(fake.opened) == 1
        await pool.close()

    asyncio.run(main())


def test_end_of_the_app_waits_for_no_call_on_a_connection_that_is_not_wanted_any_more() -> None:
    async def main() -> None:
        fake = Fake()
        pool = pool_of(fake)
        running = asyncio.create_task(pool.call(server(command="fake"), "slow"))
        await until(lambda: bool(fake.opened) and "tools/call" in fake.opened[0].requests)
        await pool.keep([])
        await asyncio.wait_for(pool.close(), 2)
        assert fake.closed == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


def test_server_that_could_not_be_reached_is_tried_again_by_the_next_call() -> None:
    async def main() -> None:
        tries = 0

        async def first_broken() -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise OSError("refused")

        pool = pool_of(Fake(opening=first_broken))
        config = server(command="fake")
        with pytest.raises(MCPConnectionError, match="refused"):
            await pool.call(config, "work")
        assert pool.status(config).state is ServerState.ERROR
        assert "refused" in str(pool.status(config).error)
        assert (await pool.call(config, "work")).success
        assert tries == 2
        await pool.close()

    asyncio.run(main())


def test_one_server_that_hangs_delays_neither_others_nor_the_end() -> None:
    """Row 13, and: a hung server never delays shutdown beyond its bound."""

    async def main() -> None:
        async def never() -> None:
            await asyncio.Event().wait()

        hung, fine = Fake(closing=never), Fake()

        def new(config: ServerConfig, settings: UpstreamSettings) -> ServerConnection:
            return ServerConnection(config, settings, opener=(hung if config.name == "hung" else fine).open)

        pool = ConnectionPool(SETTINGS, connect=new)
        await pool.call(server(command="fake", name="hung"), "work")
        await pool.call(server(command="fake", name="fine"), "work")
        started = time.perf_counter()
        await pool.close()
        assert time.perf_counter() - started < 1.5
        assert fine.closed == 1

    asyncio.run(main())


def test_prompt_is_given_as_the_server_sent_it() -> None:
    async def main() -> None:
        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if method == "prompts/get":
                return {"messages": [{"role": "user", "content": {"type": "text", "text": params["name"]}}]}
            return await plain(method, params)

        pool = pool_of(Fake(answer))
        found = await pool.prompt(server(command="fake"), "greet", {"a": "b"}, timeout=5)
        assert found["messages"][0]["content"]["text"] == "greet"
        await pool.close()

    asyncio.run(main())
