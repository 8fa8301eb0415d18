"""stdio: calls of well-behaved servers and of slow ones, in real child processes.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from shared.errors import MCPConnectionError, MCPTimeoutError, MCPToolNotFoundError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.integration.upstream.children import connection, said
from tests.support.upstream import DEMO, events, server, state_of, until

SETTINGS = UpstreamSettings()


@pytest.mark.parametrize("kind", ["sdk", "fastmcp"])
def test_a_real_server_of_the_newest_protocol(kind: str) -> None:
    """HoloDeck US1, US4: launched as configured, everything discovered, a result parsed. Row 23: text
    survives."""

    async def main() -> None:
        config = server(command=sys.executable, args=(str(DEMO), kind, "stdio"), init_timeout=30)
        async with ServerConnection(config, SETTINGS) as demo:
            assert state_of(demo) is ServerState.CONNECTED
            assert {"echo", "add", "steps"} <= {tool.name for tool in demo.tools}
            assert [prompt.name for prompt in demo.prompts] == ["greet"]
            assert demo.prompts[0].arguments[0]["name"] == "name"
            assert said(await demo.call_tool("echo", {"text": "é😀日本"})) == "é😀日本"
            added = await demo.call_tool("add", {"a": 2, "b": 3})
            assert added.structured_content in ({"sum": 5}, {"result": {"sum": 5}})
            prompt = await demo.get_prompt("greet", {"name": "Ann"})
            assert prompt["messages"][0]["content"]["text"] == "Greet Ann."
            seen: list[tuple[float, float | None, str | None]] = []
            await demo.call_tool("steps", {"count": 3}, on_progress=lambda *step: seen.append(step))
            assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        assert state_of(demo) is ServerState.DISCONNECTED

    asyncio.run(main())


def test_state_is_kept_between_calls_and_failures_are_results() -> None:
    """Row 14: one kept session, so a counter counts. Row 12: a tool that fails is a result, the next one
    works."""

    async def main() -> None:
        config = server(command=sys.executable, args=(str(DEMO), "sdk", "stdio"), init_timeout=30)
        async with ServerConnection(config, SETTINGS) as demo:
            assert [said(await demo.call_tool("counter")) for _ in range(3)] == ["1", "2", "3"]
            failed = await demo.call_tool("fail")
            assert failed.is_error
            assert "Error executing tool fail" in str(failed.error)
            with pytest.raises(
                MCPTimeoutError, match=r"did not answer the call of 'sleep' within 0\.2 s"
            ) as late:
                await demo.call_tool("sleep", {"seconds": 30}, timeout=0.2)
            assert late.value.timeout == 0.2
            assert said(await demo.call_tool("echo", {"text": "still here"})) == "still here"

    asyncio.run(main())


def test_logs_go_to_the_call_that_asked() -> None:
    async def main() -> None:
        config = server(command=sys.executable, args=(str(DEMO), "sdk", "stdio"), init_timeout=30)
        async with ServerConnection(config, SETTINGS) as demo:
            seen: list[tuple[str, str]] = []
            await demo.call_tool("steps", {"count": 2}, on_log=lambda *line: seen.append(line))
            assert seen == [("warn", "[demo] log 1"), ("warn", "[demo] log 2")]

    asyncio.run(main())


def test_levels_of_logs_from_an_older_server() -> None:
    """HoloDeck FR-027. Of two calls at once a line on the shared pipe is nobody's: it stays in the server's
    log."""

    async def main() -> None:
        async with connection("logs") as logs:
            seen: list[tuple[str, str]] = []
            await logs.call_tool("work", on_log=lambda *line: seen.append(line))
            assert seen == [
                ("debug", '[odd] {"said": "debug"}'),
                ("info", '[odd] {"said": "notice"}'),
                ("warn", '[odd] {"said": "warning"}'),
                ("error", '[emergency] [odd] {"said": "emergency"}'),
            ]
            seen.clear()
            both = (logs.call_tool("work", on_log=lambda *line: seen.append(line)) for _ in range(2))
            await asyncio.gather(*both)
            assert '{"said": "debug"}' in logs.log()

    asyncio.run(main())


def test_parallel_calls_are_not_serialised() -> None:
    """Row 2: a slow call holds up neither a fast one nor the status."""

    async def main() -> None:
        config = server(command=sys.executable, args=(str(DEMO), "sdk", "stdio"), init_timeout=30)
        pool = ConnectionPool(SETTINGS)
        await pool.call(config, "echo", {"text": ""})
        slow = asyncio.create_task(pool.call(config, "sleep", {"seconds": 30}))
        started = time.perf_counter()
        assert said(await pool.call(config, "echo", {"text": "fast"})) == "fast"
        assert pool.status(config).connected
        assert time.perf_counter() - started < 2
        assert not slow.done()
        slow.cancel()
        await pool.close()

    asyncio.run(main())


def test_server_that_never_answers_the_handshake() -> None:
    """Row 11: the time to start is configurable by itself; the error names it and the one of calls."""

    async def main() -> None:
        silent = connection("silent", init_timeout=0.5, tool_timeout=77)
        started = time.perf_counter()
        with pytest.raises(MCPTimeoutError, match=r"within 0\.5 s .*77 s") as late:
            await silent.connect()
        assert time.perf_counter() - started < 1
        assert late.value.command == sys.executable
        assert silent.state is ServerState.ERROR
        await silent.disconnect()

    asyncio.run(main())


def test_slow_start_within_its_time() -> None:
    """Row 11: answers after 1.2 s; allowed 5 s, though a call is allowed far less."""

    async def main() -> None:
        async with connection("slow", init_timeout=5, tool_timeout=1) as slow:
            assert said(await slow.call_tool("work")) == "1"

    asyncio.run(main())


def test_call_that_is_never_answered_times_out_and_is_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        async with connection("mute", log) as mute:
            with pytest.raises(MCPTimeoutError):
                await mute.call_tool("work", timeout=0.1)
            await until(lambda: any("cancelled" in event for event in events(log)))
            assert mute.state is ServerState.CONNECTED

    asyncio.run(main())


def test_cancelled_caller_cancels_the_request_and_the_connection_lives_on(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        async with connection("mute", log) as mute:
            call = asyncio.create_task(mute.call_tool("work"))
            await until(lambda: any("call" in event for event in events(log)))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: {"cancelled": "call-1"} in events(log))
            assert [tool.name for tool in await mute.list_tools()] == ["work", "late"]

    asyncio.run(main())


def test_tool_that_does_not_exist(tmp_path: Path) -> None:
    """Asked for once more before it is missing: servers need not tell of new tools."""

    async def main() -> None:
        log = tmp_path / "log"
        async with connection("", log) as plain:
            with pytest.raises(MCPToolNotFoundError, match="Tool 'nothing' not found on server 'demo'"):
                await plain.call_tool("nothing")
            assert not [event for event in events(log) if "call" in event]
            await plain.call_tool("work")
            assert said(await plain.call_tool("late")) == "2"
        async with connection("unknown-tool") as gone:
            with pytest.raises(MCPToolNotFoundError, match="Tool 'work' not found"):
                await gone.call_tool("work")

    asyncio.run(main())


def test_many_servers_at_once_and_one_that_fails() -> None:
    """Row 22: many servers. Row 13: a bad one takes no other along. Row 6: closed in any order, by any task."""

    async def main() -> None:
        good = [connection("") for _ in range(3)]
        bad = [ServerConnection(server(command="missing"), SETTINGS), connection("exits")]
        results = await asyncio.gather(*(one.connect() for one in good + bad), return_exceptions=True)
        assert results[:3] == [None] * 3
        assert all(isinstance(one, MCPConnectionError) for one in results[3:])
        await asyncio.create_task(good[0].disconnect())
        assert said(await good[1].call_tool("work")) == "1"
        await asyncio.gather(*(one.disconnect() for one in [*good[1:], *bad]))
        assert {one.state for one in good} == {ServerState.DISCONNECTED}
        assert {one.state for one in bad} == {ServerState.ERROR}

    asyncio.run(main())
