"""`mcp_http`: tools/call of the local host against the SDK's own server, over loopback at 16 connections.

Bound: at least 0.6 of the calls per second of the `mcp` SDK's low-level server (stateless, the same wire: one
SSE event a call) with the same tool. FastMCP's figure stands beside it. Rounds are interleaved in one run; each
server is a process of its own and the load comes from this one, whose requests are written by hand so that the
client does not set the pace.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from infra.local.dev.ports import free_port
from tests.benchmarks.measure import median, ratios, report

CONNECTIONS = 16
CALLS = 800
ROUNDS = 9
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Server:
    """A server process and how its tool is called."""

    def __init__(self, command: list[str], port: int, path: str, tool: str) -> None:
        self.port, self.path = port, path
        environment = {
            **os.environ,
            "AzureWebJobsStorage": "UseDevelopmentStorage=true",
            "AzureFunctionsJobHost__logging__logLevel__default": "Error",
        }
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        call["params"] = {"name": tool, "arguments": {"text": "hello"}}
        body = json.dumps(call).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.request = head.encode() + body

    async def ready(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server at {self.path} did not start") from None
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return

    async def rate(self, calls: int) -> float:
        """Calls per second over kept connections."""
        left = calls
        connections = [await asyncio.open_connection("127.0.0.1", self.port) for _ in range(CONNECTIONS)]

        async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal left
            while left > 0:
                left -= 1
                writer.write(self.request)
                body = await read_answer(reader)
                assert b'"hello"' in body, body

        started = time.perf_counter()
        await asyncio.gather(*(work(*connection) for connection in connections))
        elapsed = time.perf_counter() - started
        for _, writer in connections:
            writer.close()
        return calls / elapsed


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    """The body of one HTTP/1.1 answer, by length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 200"), head
    if b"content-length:" in head:
        return await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
    body = b""
    while True:
        size = int(await reader.readline(), 16)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
        if size == 0:
            return body


async def measure() -> list[dict[str, float]]:
    python, ports = sys.executable, [free_port() for _ in range(3)]
    echo, own = str(HERE / "apps" / "echo"), "/runtime/webhooks/mcp"
    local = [python, "-m", "infra.local.host", echo, "--port", str(ports[0]), "--only-triggers", "http,mcp"]
    servers = {
        "local_host": Server(local, ports[0], own, "echo_async"),
        "sdk": Server([python, "-m", "tests.benchmarks.servers.sdk", str(ports[1])], ports[1], "/mcp/", "echo"),
        "fastmcp": Server(
            [python, "-m", "tests.benchmarks.servers.fastmcp_server", str(ports[2])], ports[2], "/mcp", "echo"
        ),
    }
    try:
        for server in servers.values():
            await server.ready()
            await server.rate(CALLS // 4)
        return [{name: await server.rate(CALLS) for name, server in servers.items()} for _ in range(ROUNDS)]
    finally:
        for server in servers.values():
            server.process.terminate()
        for server in servers.values():
            server.process.wait(20)


def main() -> None:
    rounds = asyncio.run(measure())
    report(
        "mcp_http",
        connections=CONNECTIONS,
        ratio_to_sdk=ratios(rounds, "local_host", "sdk"),
        fastmcp_ratio_to_sdk=ratios(rounds, "fastmcp", "sdk"),
        **{f"{name}_per_second": median([figures[name] for figures in rounds]) for name in rounds[0]},
    )


if __name__ == "__main__":
    main()
