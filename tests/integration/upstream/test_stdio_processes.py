"""stdio: how children start, what they are given, how they die and that all of them end.

Row numbers are those of section 4 of the reference on MCP clients.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from shared.errors import MCPConnectionError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.connection.state import ServerState
from shared.upstream.settings import UpstreamSettings
from tests.integration.upstream.children import connection, pid_of, said
from tests.support.upstream import DEMO, ODD, events, is_alive, odd, server, until

SETTINGS = UpstreamSettings()
KEY = "sk-live-5f4dcc3b5aa765d6"


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
        assert [event for event in events(log) if "call" in event] == [{"call": "work", "pid": pid_of(log)}]
        assert pool.status(config).state is ServerState.ERROR
        assert said(await pool.call(config, "work")) == "1"
        await pool.close()

    asyncio.run(main())


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
        parent = pid_of(log)
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
        with pytest.raises(MCPConnectionError, match=r"its process ended with exit code 3") as caught:
            await exits.connect()
        # What it says may be of this machine: it is for the operator's eyes.
        assert "cannot find the config" not in caught.value.message
        assert "The end of its log:" in caught.value.full_message
        assert "cannot find the config" in caught.value.full_message
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
