"""Real child processes over stdio: well-behaved servers, and each way of misbehaving that the field has met.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shared.errors import MCPConnectionError, MCPProtocolError, MCPTimeoutError, MCPToolNotFoundError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.limits import LOG_TAIL_BYTES
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import DEMO, ODD, events, is_alive, odd, server, state_of, until

SETTINGS = UpstreamSettings()
KEY = "sk-live-5f4dcc3b5aa765d6"


def said(result: Any) -> str:
    return str(result.content[0].text)


def connection(mode: str = "", log: Path | None = None, **fields: Any) -> ServerConnection:
    return ServerConnection(odd(mode, log, **fields), SETTINGS)


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


def test_server_that_dies_in_a_call(tmp_path: Path) -> None:
    """Rows 4, 5: the call fails at once and says so; it is not repeated; the next one has a new process."""

    async def main() -> None:
        log = tmp_path / "log"
        pool = ConnectionPool(SETTINGS)
        config = odd("dies-once", log)
        started = time.perf_counter()
        with pytest.raises(MCPConnectionError, match=r"no longer available.*exit code 9.*unknown") as died:
            await pool.call(config, "work")
        assert time.perf_counter() - started < 2
        assert died.value.server == "demo"
        assert [event for event in events(log) if "call" in event] == [{"call": "work", "pid": _pid(log)}]
        assert pool.status(config).state is ServerState.ERROR
        assert said(await pool.call(config, "work")) == "1"
        await pool.close()

    asyncio.run(main())


def _pid(log: Path) -> int:
    return int(next(event["started"] for event in events(log) if "started" in event))


def test_repeatable_call_is_sent_again_when_the_server_dies(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        pool = ConnectionPool(SETTINGS)
        assert said(await pool.call(odd("dies-once", log), "work", repeatable=True)) == "1"
        assert len([event for event in events(log) if "call" in event]) == 2
        await pool.close()

    asyncio.run(main())


def test_server_that_always_dies_is_tried_twice_at_most(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        pool = ConnectionPool(SETTINGS)
        with pytest.raises(MCPConnectionError, match="no longer available"):
            await pool.call(odd("dies", log), "work", repeatable=True)
        assert len([event for event in events(log) if "started" in event]) == 2
        await pool.close()

    asyncio.run(main())


def test_killed_between_two_calls_the_second_works(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        pool = ConnectionPool(SETTINGS)
        config = odd("", log)
        for round_ in range(3):
            assert said(await pool.call(config, "work", {"text": str(round_)})) == str(round_)
            pid = [event["started"] for event in events(log) if "started" in event][-1]
            os.kill(pid, signal.SIGKILL)
            await until(lambda pid=pid: not is_alive(pid))  # type: ignore[misc]
        assert said(await pool.call(config, "work", {"text": "after"})) == "after"
        await pool.close()

    asyncio.run(main())


def test_server_that_closes_after_each_call(tmp_path: Path) -> None:
    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        config = odd("closes", tmp_path / "log")
        for _ in range(3):
            assert said(await pool.call(config, "work")) == "1"
            await until(lambda: not pool.status(config).connected)
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


def test_bytes_that_are_no_utf8() -> None:
    """Row 20: one bad line does not end the session."""

    async def main() -> None:
        for handler in ("strict", "replace", "ignore"):
            async with connection("bad-utf8", encoding_error_handler=handler) as bad:
                assert said(await bad.call_tool("work")) == "1"
                assert "skipped a line that is no message" in bad.log()

    asyncio.run(main())


def test_banner_on_stdout() -> None:
    """Row 21: skipped, with a remark."""

    async def main() -> None:
        async with connection("banner") as banner:
            assert said(await banner.call_tool("work")) == "1"
            assert "Server starting on stdio" in banner.log()

    asyncio.run(main())


def test_five_megabytes_of_stderr_with_a_secret() -> None:
    """Rows 9, 10: drained, so the server gets on; bounded; the secret is in no line of it."""

    async def main() -> None:
        async with connection("stderr-flood", env={"API_KEY": KEY}) as flood:
            assert said(await flood.call_tool("work")) == "1"
            log = flood.log()
            assert len(log.encode()) <= LOG_TAIL_BYTES
            assert "last [redacted]" in log
            assert KEY not in log
            assert "a line of 300000 bytes is left out" in log

    asyncio.run(main())


def test_errors_of_a_server_hold_no_secret_of_its_configuration() -> None:
    async def main() -> None:
        async with connection("refuses", env={"API_KEY": KEY}) as refuses:
            with pytest.raises(MCPProtocolError, match=r"no: \[redacted\] \(code -32011\)") as error:
                await refuses.call_tool("work")
            assert error.value.error_code == -32011

    asyncio.run(main())


def test_all_pages_are_read() -> None:
    """HoloDeck SC-008: every tool is discovered."""

    async def main() -> None:
        async with connection("pages") as pages:
            assert [tool.name for tool in pages.tools] == ["t0", "t1", "t2", "t3", "t4"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "text"), [("endless-cursor", "more than 200 pages"), ("cursor-loop", "in a circle")]
)
def test_cursors_that_never_end(mode: str, text: str) -> None:
    async def main() -> None:
        with pytest.raises(MCPProtocolError, match=text):
            await connection(mode).connect()

    asyncio.run(main())


def test_tool_that_is_listed_twice() -> None:
    async def main() -> None:
        async with connection("twice") as twice:
            assert [(tool.name, tool.title) for tool in twice.tools] == [("work", "first")]
            assert "the tool 'work' is listed twice" in twice.log()
            assert "1 tools without a usable name" in twice.log()

    asyncio.run(main())


def test_list_changed_during_a_call_and_in_a_burst(tmp_path: Path) -> None:
    """Row 7: the call is answered, then the list is new. Row 8: 20 notifications, at most two more listings."""

    async def main() -> None:
        log = tmp_path / "log"
        async with connection("notify-in-call", log) as busy:
            assert busy.revision == 1
            assert said(await busy.call_tool("work", timeout=3)) == "1"
            await until(lambda: busy.revision == 2)
            assert [tool.name for tool in busy.tools] == ["work", "late"]
            await asyncio.sleep(0.3)
            assert len([event for event in events(log) if "list" in event]) <= 3

    asyncio.run(main())


def test_server_that_notifies_at_each_listing(tmp_path: Path) -> None:
    """Row 8: no loop, but ever longer pauses."""

    async def main() -> None:
        log = tmp_path / "log"
        async with connection("notify-in-list", log) as loop:
            await asyncio.sleep(1)
            assert 2 <= len([event for event in events(log) if "list" in event]) <= 6
            assert said(await loop.call_tool("work")) == "1"
            assert loop.revision == 1

    asyncio.run(main())


def test_image_of_100_megabytes() -> None:
    """Refused as it arrives, by the call that it answers; the connection lives on."""

    async def main() -> None:
        async with connection("huge") as huge:
            with pytest.raises(MCPProtocolError, match=r"the answer is 9\d MiB; at most 64 MiB are taken"):
                await huge.call_tool("work", timeout=60)
            assert [tool.name for tool in await huge.list_tools()] == ["work", "late"]

    asyncio.run(main())


def test_sampling_request_of_a_server_is_refused() -> None:
    async def main() -> None:
        async with connection("asks") as asks:
            assert "Sampling not supported" in said(await asks.call_tool("work", timeout=5))

    asyncio.run(main())


def test_block_of_a_kind_that_is_not_known_does_not_lose_the_answer() -> None:
    async def main() -> None:
        async with connection("unknown-block") as unknown:
            result = await unknown.call_tool("work")
            assert any(getattr(block, "text", "") == "kept" for block in result.content)

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


def test_lists_that_are_not_wanted_are_not_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "log"
        async with connection("", log, load_tools=False) as quiet:
            assert quiet.tools == ()
            assert said(await quiet.call_tool("work")) == "1"
            assert not [event for event in events(log) if "list" in event]

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["grandchild", "stubborn"])
def test_whole_process_group_ends(mode: str, tmp_path: Path) -> None:
    """Decision 12: no orphan, also of a server that leaves in time, or does not heed the request to end."""

    async def main() -> None:
        log = tmp_path / "log"
        settings = UpstreamSettings(cleanup_timeout=2)
        async with ServerConnection(odd(mode, log), settings) as family:
            await family.call_tool("work")
            pids = [
                pid for event in events(log) for key, pid in event.items() if key in ("started", "grandchild")
            ]
            assert all(is_alive(pid) for pid in pids)
        assert family.state is ServerState.DISCONNECTED
        await until(lambda: not any(is_alive(pid) for pid in pids), 2)

    asyncio.run(main())


def test_grandchild_does_not_hide_the_death_of_its_parent(tmp_path: Path) -> None:
    """A grandchild holds the pipe open; the server's end is seen all the same, and both are gone."""

    async def main() -> None:
        log = tmp_path / "log"
        family = connection("grandchild", log)
        await family.connect()
        parent = _pid(log)
        grandchild = next(event["grandchild"] for event in events(log) if "grandchild" in event)
        os.kill(parent, signal.SIGKILL)
        await until(lambda: family.state is ServerState.ERROR, 3)
        assert "signal 9" in str(family.error)
        await family.disconnect()
        await until(lambda: not is_alive(grandchild), 2)

    asyncio.run(main())


def test_end_of_the_process_leaves_no_child(tmp_path: Path) -> None:
    """A process that ends without closing its pool takes its children's groups along."""
    script = tmp_path / "leave.py"
    log = tmp_path / "log"
    script.write_text(
        "import asyncio, sys\n"
        f"sys.path[:0] = [{str(Path.cwd())!r}]\n"
        "from pathlib import Path\n"
        "from shared.upstream.connection.connection import ServerConnection\n"
        "from shared.upstream.settings import UpstreamSettings\n"
        "from tests.support.upstream import odd\n"
        "loop = asyncio.new_event_loop()\n"
        f"c = ServerConnection(odd('grandchild', Path({str(log)!r})), UpstreamSettings())\n"
        "loop.run_until_complete(c.connect())\n"
        "sys.exit(0)\n"
    )

    async def main() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-W", "ignore", str(script), stderr=-3)
        assert await asyncio.wait_for(process.wait(), 60) == 0
        pids = [pid for event in events(log) for key, pid in event.items() if key in ("started", "grandchild")]
        assert len(pids) == 2
        await until(lambda: not any(is_alive(pid) for pid in pids), 3)

    asyncio.run(main())


def test_command_that_does_not_exist() -> None:
    """HoloDeck FR-021, US5: the error names the command."""

    async def main() -> None:
        missing = ServerConnection(server(command="no-such-command-anywhere"), SETTINGS)
        with pytest.raises(
            MCPConnectionError, match="the command 'no-such-command-anywhere' is not found"
        ) as error:
            await missing.connect()
        assert error.value.command == "no-such-command-anywhere"

    asyncio.run(main())


def test_process_that_exits_at_once() -> None:
    async def main() -> None:
        exits = connection("exits", env={"API_KEY": KEY})
        with pytest.raises(
            MCPConnectionError, match=r"its process ended with exit code 3.*cannot find the config"
        ):
            await exits.connect()
        assert exits.state is ServerState.ERROR

    asyncio.run(main())


def test_encoding_that_cannot_write_lines() -> None:
    async def main() -> None:
        with pytest.raises(MCPConnectionError, match="the encoding 'utf-16'"):
            await connection("", encoding="utf-16").connect()
        old = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"}
        async with connection("", encoding="latin-1", env=old) as latin:
            assert said(await latin.call_tool("work", {"text": "é"})) == "é"

    asyncio.run(main())


def test_child_sees_only_the_safe_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 6: HOME, LOGNAME, PATH, SHELL, TERM, USER and what is configured; row 23: UTF-8 for Python."""
    monkeypatch.setenv("AZURE_SECRET_OF_OURS", KEY)

    async def main() -> None:
        config = server(
            command=sys.executable,
            args=(str(DEMO), "sdk", "stdio"),
            env={"MINE": "1", "PYTHONIOENCODING": "utf-8:replace"},
            init_timeout=30,
        )
        async with ServerConnection(config, SETTINGS) as demo:
            names = set((await demo.call_tool("environment")).structured_content["result"])
        allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}
        assert names - allowed == {"MINE", "PYTHONUTF8", "PYTHONIOENCODING"}

    asyncio.run(main())


def test_arguments_arrive_whole(tmp_path: Path) -> None:
    """Row 25: no shell, so a path with spaces is one argument, and quotes are nothing special."""
    folder = tmp_path / "dir with space"
    folder.mkdir()
    script = folder / 'it\'s "odd" $HOME.py'
    script.write_text(ODD.read_text())

    async def main() -> None:
        async with ServerConnection(server(command=sys.executable, args=(str(script),)), SETTINGS) as plain:
            assert said(await plain.call_tool("work")) == "1"

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
