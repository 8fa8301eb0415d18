"""States, time and closing, on made-up sessions. Rows are those of section 4 of the reference on MCP
clients."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from shared.errors import MCPConnectionError, MCPError, MCPProtocolError, MCPTimeoutError
from shared.upstream.connection.state import ServerState
from shared.upstream.content import base64_text
from shared.upstream.settings import UpstreamSettings
from tests.support.links import Fake, plain
from tests.support.upstream import state_of, until

FAST = UpstreamSettings(cleanup_timeout=0.1, grace=0.1)


async def never() -> None:
    await asyncio.Event().wait()


async def stubborn() -> None:
    """Does not heed being cancelled, for a while."""
    ends = time.perf_counter() + 0.6
    while time.perf_counter() < ends:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


def test_states_of_a_plain_life() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        assert state_of(one) is ServerState.CREATED
        connecting = asyncio.create_task(one.connect())
        await asyncio.sleep(0)
        assert state_of(one) is ServerState.CONNECTING
        await connecting
        assert state_of(one) is ServerState.CONNECTED
        await one.connect()
        await one.disconnect()
        assert state_of(one) is ServerState.DISCONNECTED
        assert one.error is None
        assert len(fake.opened) == fake.closed == 1
        await one.disconnect()

    asyncio.run(main())


def test_first_call_opens_and_parallel_ones_share_it() -> None:
    """HoloDeck FR-024: started on first use."""

    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await asyncio.gather(*(one.call_tool("work") for _ in range(5)))
        assert len(fake.opened) == 1
        assert fake.opened[0].requests.count("tools/call") == 5
        await one.disconnect()

    asyncio.run(main())


@pytest.mark.parametrize("connected", [True, False])
def test_ended_connection_refuses_and_names_its_state(connected: bool) -> None:
    async def main() -> None:
        one = Fake().connection()
        if connected:
            await one.connect()
        await one.disconnect()
        for use in (one.connect(), one.call_tool("work"), one.list_tools(), one.get_prompt("p")):
            with pytest.raises(MCPConnectionError, match="in state 'disconnected'"):
                await use

    asyncio.run(main())


def test_failed_connection_refuses_and_names_its_state_and_why() -> None:
    async def main() -> None:
        async def broken() -> None:
            raise OSError("no route")

        one = Fake(opening=broken).connection()
        with pytest.raises(MCPConnectionError, match="cannot be reached: OSError: no route"):
            await one.connect()
        assert state_of(one) is ServerState.ERROR
        with pytest.raises(MCPConnectionError, match=r"in state 'error'.*no route"):
            await one.call_tool("work")

    asyncio.run(main())


def test_opening_that_hangs_is_bounded_for_all_that_wait() -> None:
    async def main() -> None:
        one = Fake(opening=never).connection(init_timeout=0.1)
        results = await asyncio.gather(
            one.connect(), one.connect(), one.call_tool("work"), return_exceptions=True
        )
        assert [type(result) for result in results] == [MCPTimeoutError] * 3
        assert state_of(one) is ServerState.ERROR
        await until(lambda: one.closed)

    asyncio.run(main())


def test_one_who_gives_up_waiting_does_not_stop_the_others() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def slowly() -> None:
            await go.wait()

        one = Fake(opening=slowly).connection()
        waiting = [asyncio.create_task(one.connect()) for _ in range(2)]
        await asyncio.sleep(0.01)
        waiting[0].cancel()
        go.set()
        await waiting[1]
        assert waiting[0].cancelled()
        assert state_of(one) is ServerState.CONNECTED
        await one.disconnect()

    asyncio.run(main())


def test_disconnect_while_it_opens() -> None:
    async def main() -> None:
        one = Fake(opening=never).connection()
        connecting = asyncio.create_task(one.connect())
        await asyncio.sleep(0.01)
        await one.disconnect()
        assert state_of(one) is ServerState.DISCONNECTED
        with pytest.raises(MCPConnectionError):
            await connecting

    asyncio.run(main())


def test_timeout_of_a_call_leaves_the_connection_as_it_is() -> None:
    """Row 1: the server's own time counts, whatever the global one is. Row 12: the next call works."""

    async def main() -> None:
        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(0.2 if method == "tools/call" else 0)
            return await plain(method, params)

        patient = Fake(answer).connection(UpstreamSettings(tool_timeout=0.05), tool_timeout=5)
        await patient.call_tool("work")
        with pytest.raises(MCPTimeoutError, match=r"within 0\.05 s"):
            await patient.call_tool("work", timeout=0.05)
        await patient.call_tool("work")
        await patient.disconnect()
        hasty = Fake(answer).connection(UpstreamSettings(tool_timeout=0.05))
        with pytest.raises(MCPTimeoutError, match=r"within 0\.05 s"):
            await hasty.call_tool("work")
        await hasty.disconnect()

    asyncio.run(main())


def test_request_that_cannot_be_cancelled_gives_control_back_and_ends_the_connection() -> None:
    """Agent Zero's isolated operation: the outer bound is the timeout and the grace; nobody waits any
    longer."""

    async def main() -> None:
        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if method == "tools/call":
                await stubborn()
            return await plain(method, params)

        one = Fake(answer).connection(FAST)
        await one.connect()
        started = time.perf_counter()
        with pytest.raises(MCPTimeoutError):
            await one.call_tool("work", timeout=0.1)
        assert time.perf_counter() - started < 0.3
        assert state_of(one) is ServerState.CONNECTED
        await until(lambda: one.state is ServerState.ERROR, 0.5)
        assert "did not end within 0.1 s" in str(one.error)
        await asyncio.sleep(0.7)

    asyncio.run(main())


def test_lost_session_fails_its_calls_at_once_and_cancels_nobody() -> None:
    """Row 4, and the SDK's habit of cancelling the task that opened the session."""

    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()

        async def answer(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
            await fake.opened[0].lost.wait()
            raise RuntimeError("closed")

        fake.opened[0].answer = answer
        calls = [asyncio.create_task(one.call_tool("work")) for _ in range(3)]
        await asyncio.sleep(0.01)
        fake.opened[0].lost.set()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, MCPConnectionError) for result in results)
        assert "no longer available: it was told to" in str(results[0])
        assert state_of(one) is ServerState.ERROR
        await until(lambda: one.closed)
        assert fake.closed == 1

    asyncio.run(main())


def test_close_that_hangs_is_bounded_warned_of_and_hides_no_result(caplog: pytest.LogCaptureFixture) -> None:
    """Agent Zero's session clean-up: 5 s there and by default; it only warns."""

    async def main() -> None:
        fake = Fake(closing=never)
        one = fake.connection(FAST)
        result = await one.call_tool("work")
        started = time.perf_counter()
        with caplog.at_level(logging.WARNING):
            await one.disconnect()
        assert time.perf_counter() - started < 1
        assert result.success
        assert state_of(one) is ServerState.ERROR
        assert "did not close within 0.1 s" in str(one.error)
        assert fake.opened[0].killed
        assert "took more than 0.1 s" in caplog.text

    asyncio.run(main())


def test_close_that_fails_ends_in_error_and_raises_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def broken() -> None:
            raise RuntimeError("secret-value")

        one = Fake(closing=broken).connection()
        await one.connect()
        await one.disconnect()
        assert state_of(one) is ServerState.ERROR
        assert "Closing server 'demo' failed (RuntimeError)" in str(one.error)
        assert "secret-value" not in caplog.text + str(one.error)

    asyncio.run(main())


def test_session_whose_tasks_break_is_lost_not_silent() -> None:
    """What an SDK task group raises comes out of the owner as a group: reduced to the error that tells."""

    async def main() -> None:
        async def broken() -> None:
            raise ExceptionGroup("tasks", [ExceptionGroup("inner", [OSError("cable cut")])])

        fake = Fake(closing=broken)
        one = fake.connection()
        await one.connect()
        fake.opened[0].lost.set()
        await until(lambda: one.closed)
        assert state_of(one) is ServerState.ERROR

        broken_opening = Fake(opening=broken).connection()
        with pytest.raises(MCPConnectionError, match="OSError: cable cut"):
            await broken_opening.connect()

    asyncio.run(main())


def test_closed_from_another_task_and_in_any_order() -> None:
    """Row 6."""

    async def main() -> None:
        fake = Fake()
        first, second = fake.connection(), fake.connection()
        await asyncio.gather(first.connect(), second.connect())
        await asyncio.create_task(first.disconnect())
        await asyncio.wait_for(second.disconnect(), 5)
        assert fake.closed == 2

    asyncio.run(main())


def test_prompts_that_cannot_be_listed_take_no_tool_away() -> None:
    async def main() -> None:
        prompts: Any = "all of them"

        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            return {"prompts": prompts} if method == "prompts/list" else await plain(method, params)

        fake = Fake(answer, capabilities={"prompts": {}})
        one = fake.connection()
        await one.connect()
        assert fake.opened[0].requests == ["tools/list", "prompts/list"]
        assert state_of(one) is ServerState.CONNECTED
        assert [tool.name for tool in one.tools] == ["work", "slow"]
        assert "the prompts could not be read" in one.log()
        assert "without a list of prompts" in str(one.prompts_error)
        with pytest.raises(MCPProtocolError, match="without a list of prompts"):
            await one.list_prompts()
        assert state_of(one) is ServerState.CONNECTED
        prompts = [{"name": "ask"}]
        assert [prompt.name for prompt in await one.list_prompts()] == ["ask"]
        assert one.prompts_error is None
        await one.disconnect()

    asyncio.run(main())


def test_prompts_that_nobody_announces_are_not_asked_for() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()
        assert fake.opened[0].requests == ["tools/list"]
        assert one.prompts_error is None
        await one.disconnect()

    asyncio.run(main())


def test_logs_without_a_call_go_to_the_servers_log_and_a_bad_listener_breaks_nothing() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection(env={"TOKEN": "abcdef-123456"})
        await one.connect()
        assert fake.events is not None
        fake.events.logged("error", "db", "token abcdef-123456 refused")
        assert one.log() == "[error] [db] token [redacted] refused"

        async def answer(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
            assert fake.events is not None
            fake.events.logged("info", None, "in the call abcdef-123456")
            return {"content": []}

        fake.opened[0].answer = answer
        seen: list[tuple[str, str]] = []
        await one.call_tool("work", on_log=lambda *line: seen.append(line))
        assert seen == [("info", "in the call [redacted]")]

        def bad(level: str, text: str) -> None:
            raise ValueError(level + text)

        assert (await one.call_tool("work", on_log=bad)).success
        await one.disconnect()

    asyncio.run(main())


def test_transport_that_cancels_a_request_by_itself_cancels_no_caller() -> None:
    """Decision 11: a cancellation from inside is a broken connection, not the caller's own end, nor a
    timeout."""

    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()

        async def cancelled(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
            raise asyncio.CancelledError

        fake.opened[0].answer = cancelled
        with pytest.raises(
            MCPConnectionError, match="the transport broke off; what came of it is unknown"
        ) as error:
            await one.call_tool("work")
        assert not isinstance(error.value, MCPTimeoutError)
        await one.disconnect()

    asyncio.run(main())


def test_log_of_a_lost_connection_is_the_operators(caplog: pytest.LogCaptureFixture) -> None:
    """It may speak of any caller's data, and the error is shown to every caller."""

    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()
        assert fake.events is not None
        fake.events.logged("info", None, "working on ana's row 4711")
        call = asyncio.create_task(one.call_tool("slow"))
        await until(lambda: "tools/call" in fake.opened[0].requests)
        fake.opened[0].lost.set()
        await until(lambda: state_of(one) is ServerState.ERROR)
        assert "no longer available: it was told to." in str(one.error)
        assert "4711" not in str(one.error)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await one.disconnect()

    with caplog.at_level(logging.WARNING, "toolbox.upstream"):
        asyncio.run(main())
    assert "The end of its log:" in caplog.text
    assert "ana's row 4711" in caplog.text


@pytest.mark.parametrize("slow", [False, True])
def test_what_a_server_says_of_a_failed_start_is_the_operators(slow: bool) -> None:
    """It may hold paths of the machine: the message that any caller is shown is without it."""

    async def main() -> None:
        async def opening() -> None:
            assert one is not None
            one._tail.add("cannot open /srv/private/key.pem")
            if slow:
                await never()
            raise OSError("no route")

        one = Fake(opening=opening).connection(init_timeout=0.1 if slow else 5)
        for _ in range(2):
            with pytest.raises(MCPError) as caught:
                await one.call_tool("work")
            assert "/srv/private" not in caught.value.message
        assert "/srv/private" not in str(one.error)
        assert one._life.error is not None
        said = "The end of its log: cannot open /srv/private/key.pem"
        assert one._life.error.full_message == f"{one.error} {said}"
        assert one.log() == "cannot open /srv/private/key.pem"
        await until(lambda: one.closed)

    asyncio.run(main())


def test_late_line_of_an_owners_call_is_not_in_another_owners_log() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        with pytest.raises(MCPTimeoutError):
            await one.call_tool("slow", timeout=0.01, owner="ana")

        assert fake.events is not None
        link = fake.opened[0]
        for owner, heard in (("ben", []), ("ana", ["ana's row 4711"])):
            go = asyncio.Event()

            async def answer(_: str, __: Mapping[str, Any], go: asyncio.Event = go) -> dict[str, Any]:
                await go.wait()
                return {"content": []}

            link.answer, before = answer, len(link.requests)
            lines: list[tuple[str, str]] = []

            def keep(*line: str, into: list[tuple[str, str]] = lines) -> None:
                into.append(line)  # type: ignore[arg-type]

            call = asyncio.create_task(one.call_tool("work", owner=owner, on_log=keep))
            while len(link.requests) == before:
                await asyncio.sleep(0)
            fake.events.logged("info", None, "ana's row 4711")
            go.set()
            await call
            assert [text for _, text in lines] == heard
        assert one.log() == "[info] ana's row 4711"
        await one.disconnect()

    asyncio.run(main())


def test_closing_while_tools_are_looked_for_cancels_no_caller() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()

        async def silent(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
            await never()
            return {}

        fake.opened[0].answer = silent
        call = asyncio.create_task(one.call_tool("new"))
        await until(lambda: fake.opened[0].requests.count("tools/list") == 2)
        await one.disconnect()
        with pytest.raises(MCPConnectionError, match="was closed while its tools were read"):
            await call

    asyncio.run(main())


def test_large_media_do_not_keep_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    real = base64_text.checked

    def checked(text: str) -> tuple[str, bytes]:
        threads.append(threading.get_ident())
        return real(text)

    monkeypatch.setattr(base64_text, "checked", checked)

    async def main() -> None:
        async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if method != "tools/call":
                return await plain(method, params)
            return {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA" * 500_000}]}

        one = Fake(answer).connection()
        assert (await one.call_tool("work")).content[0].type == "image"
        await one.disconnect()

    asyncio.run(main())
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
