"""A stdio server that is killed: what it had not read is sent again, what it may have read is not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from shared.errors import MCPConnectionError
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.pool import ConnectionPool
from shared.upstream.settings import UpstreamSettings
from tests.support.upstream import events, odd, until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="stops processes, and looks into pipes"),
]

SETTINGS = UpstreamSettings()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def started(log: Path) -> list[int]:
    return [int(event["started"]) for event in events(log) if "started" in event]


def test_what_a_killed_server_had_not_read_goes_to_the_next_one(tmp_path: Path) -> None:
    """A stopped process reads nothing: as if the calls came between the kill and the process's end."""
    log = tmp_path / "events"

    async def main() -> None:
        pool = ConnectionPool(SETTINGS)
        config = odd("plain", log)
        await pool.call(config, "work", {"text": "first"})
        (pid,) = started(log)
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: is_stopped(pid))  # until then it may still take what comes
        calls = [asyncio.create_task(pool.call(config, "work", {"text": f"again {n}"})) for n in range(3)]
        # Nothing tells from outside that the requests are in the pipe; a turn or two of the loop is enough.
        await asyncio.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
        results = await asyncio.wait_for(asyncio.gather(*calls), 10)
        assert [result.content[0].text for result in results] == [f"again {n}" for n in range(3)]  # type: ignore[union-attr]
        assert len(started(log)) == 2
        await pool.close()

    asyncio.run(main())
    assert [event["call"] for event in events(log) if "call" in event] == ["work"] * 4


def test_what_it_may_have_read_is_not_sent_again(tmp_path: Path) -> None:
    log = tmp_path / "events"

    async def main() -> None:
        async with ServerConnection(odd("sleeps", log), SETTINGS) as server:
            running = asyncio.create_task(server.call_tool("work", {"seconds": 60}))
            await until(lambda: any("call" in event for event in events(log)))
            waiting = asyncio.create_task(server.call_tool("work", {"seconds": 60}))
            await asyncio.sleep(0.05)
            os.kill(started(log)[0], signal.SIGKILL)
            with pytest.raises(MCPConnectionError, match="what came of it is unknown"):
                await asyncio.wait_for(running, 10)
            # Python's own buffer may have it, so nothing is promised of this one.
            with pytest.raises(MCPConnectionError):
                await asyncio.wait_for(waiting, 10)

    asyncio.run(main())
