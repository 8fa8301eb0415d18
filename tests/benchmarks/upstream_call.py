"""`upstream_call`: a call of an upstream's echo tool through the running app, against calling it directly.

Bound: over streamable HTTP at least 0.5 of the direct calls a second, at 1 and at 16 under way; missing it ends
with 1. An upstream over stdio stands beside it: there the direct call has no HTTP at all, and through the app
it has that of the app. Both ways use the official client with one session that is kept. The app is the whole
toolbox in the local host, on an Azurite, with its logging as it is deployed; its tools are what `upstream sync`
locked. Rounds take turns.

    direct   client -> upstream
    app      client -> host, trigger, gateway, kept connection -> upstream

`cpu_ms`: processor time of one call in each process, which a busy machine does not change as it does times.
`first_call`: the first upstream call of a fresh app loads the SDK and connects; the second does neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import mcp
from mcp.client.stdio import StdioServerParameters

from shared.upstream.lock import LOCK_FILE, Lock
from shared.upstream.settings import upstream_settings
from shared.upstream.sync import sync, write
from tests.acceptance.conftest import App, start_app
from tests.benchmarks.job_engine import own_azurite
from tests.benchmarks.measure import median, ratios, report

BOUND = 0.5
#: Under way at once -> calls of one turn.
CALLS = {1: 50, 16: 160}
ROUNDS = 13
#: The transport that the bound speaks of.
PRIMARY = "http"
TRANSPORTS = (PRIMARY, "stdio")
ROOT = Path(__file__).resolve().parents[2]
UPSTREAM = ROOT / "tests" / "benchmarks" / "servers" / "sdk.py"
#: What the app is allowed to start: a program of a name of its own, since interpreters are refused.
PROGRAM = "upstream-echo"
FUNCTION_APP = f"""import sys
from pathlib import Path

sys.path.append({str(ROOT)!r})

from tests.apps.toolbox import toolbox_with

app = toolbox_with(Path(__file__).parent / "tools").app
"""
#: Both ways start with the handshake of 2025-11-25: newer ones have no session that could be kept.
MODE: Literal["legacy"] = "legacy"


@dataclass(frozen=True, slots=True)
class Way:
    """How the echo is reached, and which processes work for it."""

    server: str | StdioServerParameters
    tool: str
    processes: dict[str, int]


@contextlib.contextmanager
def http_upstream() -> Iterator[tuple[int, int]]:
    """The upstream over HTTP: its port and its process id."""
    process = subprocess.Popen([sys.executable, str(UPSTREAM), "http"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.strip().isdecimal():
            raise RuntimeError("the upstream did not start")
        yield int(line), process.pid
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def make_app(folder: Path, port: int, environment: dict[str, str]) -> dict[str, str]:
    """Writes the app and its lock. Server -> the name that its echo is published under."""
    (folder / "tools").mkdir()
    (folder / "function_app.py").write_text(FUNCTION_APP)
    shutil.copy(ROOT / "host.json", folder)
    servers = {"http": {"url": f"http://127.0.0.1:{port}/mcp/"}, "stdio": {"command": PROGRAM}}
    (folder / "mcp_servers.json").write_text(json.dumps({"mcpServers": servers}))
    done = asyncio.run(sync(upstream_settings(environment, folder), Lock()))
    if done.faults:
        raise RuntimeError(f"the upstreams could not be locked: {done.faults}")
    write(folder / LOCK_FILE, done.lock)
    return {tool.server: tool.name for tool in done.lock.tools}


def program_in(folder: Path) -> None:
    path = folder / PROGRAM
    path.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(UPSTREAM), 'stdio'])}\n")
    path.chmod(0o700)


class Session:
    """One kept session of the official client."""

    def __init__(self, client: mcp.Client, way: Way) -> None:
        self._client = client
        self._way = way

    async def call(self) -> None:
        result = await self._client.call_tool(self._way.tool, {"text": "hello"})
        if result.is_error or result.structured_content != {"result": "hello"}:
            raise RuntimeError(f"the echo answered {result}")

    async def turn(self, calls: int, concurrency: int) -> dict[str, float]:
        """Calls a second, and milliseconds of processor time of one call in each process."""
        left = calls

        async def work() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await self.call()

        before = {name: cpu_seconds(pid) for name, pid in self._way.processes.items()}
        own, started = time.process_time(), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        figures = {"per_second": calls / (time.perf_counter() - started)}
        figures["cpu_ms_client"] = (time.process_time() - own) * 1000 / calls
        for name, pid in self._way.processes.items():
            figures[f"cpu_ms_{name}"] = (cpu_seconds(pid) - before[name]) * 1000 / calls
        return figures


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(ways: dict[str, Way], concurrency: int) -> list[dict[str, float]]:
    async with contextlib.AsyncExitStack() as stack:
        sessions = {}
        for name, way in ways.items():
            client = await stack.enter_async_context(mcp.Client(way.server, mode=MODE))
            sessions[name] = Session(client, way)
            await sessions[name].turn(CALLS[concurrency] // 3, concurrency)
        rounds = []
        for number in range(ROUNDS):
            figures: dict[str, float] = {}
            for name in ("direct", "app") if number % 2 else ("app", "direct"):
                turn = await sessions[name].turn(CALLS[concurrency], concurrency)
                figures |= {f"{name}_{what}": value for what, value in turn.items()}
            rounds.append(figures)
        return rounds


async def first_calls(app: App, names: dict[str, str]) -> None:
    """Seconds of the first two calls of each server, in an app that has made no upstream call yet."""
    for transport in TRANSPORTS:
        seconds = []
        async with mcp.Client(app.endpoint, mode=MODE) as client:
            session = Session(client, Way(app.endpoint, names[transport], {}))
            await client.list_tools()
            for _ in range(2):
                started = time.perf_counter()
                await session.call()
                seconds.append(round(time.perf_counter() - started, 4))
        report(
            "upstream_call", transport=transport, first_call_seconds=seconds[0], second_call_seconds=seconds[1]
        )


def figures_of(rounds: list[dict[str, float]], primary: bool) -> dict[str, Any]:
    ratio = ratios(rounds, "app_per_second", "direct_per_second")
    bound = {"bound": BOUND, "within_bound": ratio >= BOUND} if primary else {}
    return {
        "ratio": ratio,
        **bound,
        **{name: median([figures[name] for figures in rounds]) for name in sorted(rounds[0])},
    }


def main() -> None:
    missed = False
    with contextlib.ExitStack() as stack:
        azurite = stack.enter_context(own_azurite())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolbox-bench-")))
        port, pid = stack.enter_context(http_upstream())
        program_in(folder)
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        settings = {"TOOLBOX_UPSTREAM_COMMANDS": PROGRAM}
        names = make_app(folder, port, {**os.environ, **settings})
        app = start_app(folder, azurite.connection_string, app_dir=folder, **settings)
        stack.callback(app.stop)
        asyncio.run(first_calls(app, names))
        direct = {
            "http": Way(f"http://127.0.0.1:{port}/mcp/", "echo", {"upstream": pid}),
            "stdio": Way(StdioServerParameters(command=PROGRAM, env=dict(os.environ)), "echo", {}),
        }
        for transport in TRANSPORTS:
            working = {"app": app.process.pid, **direct[transport].processes}
            through = Way(app.endpoint, names[transport], working)
            for concurrency in CALLS:
                rounds = asyncio.run(measure({"direct": direct[transport], "app": through}, concurrency))
                figures = figures_of(rounds, transport == PRIMARY)
                missed = missed or figures.get("within_bound") is False
                report("upstream_call", transport=transport, concurrency=concurrency, **figures)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
