"""What tests of upstream connections stand on: configurations, servers in processes, a tiny HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.connection.state import ServerState

APPS = Path(__file__).parents[1] / "apps" / "upstream"
ODD = APPS / "odd.py"
DEMO = APPS / "demo.py"


@contextmanager
def demo(kind: str, transport: str, port: int = 0) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The demo server over HTTP: its port, and its process."""
    process = subprocess.Popen(
        [sys.executable, str(DEMO), kind, transport],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PORT": str(port)},
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.strip().isdecimal(), "the demo server did not start"
        yield int(line), process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def self_signed() -> ssl.SSLContext:
    """A server's certificate for 127.0.0.1 of an authority that nobody trusts."""
    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    return context


def state_of(connection: ServerConnection) -> ServerState:
    """The state now: a type checker takes that of a property for what it was."""
    return connection.state


async def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for something to become true; an assertion fails when it does not."""
    loop = asyncio.get_running_loop()
    ends = loop.time() + seconds
    while not true():
        assert loop.time() < ends, "what was waited for did not happen"
        await asyncio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def events(path: Path) -> list[dict[str, Any]]:
    """What an odd server has recorded."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@dataclass
class Seen:
    """One request that the HTTP server got."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


#: Status, headers, and the body, whole or in parts.
type Answer = tuple[int, Mapping[str, str], bytes | AsyncGenerator[bytes]]
type Handler = Callable[[Seen], Awaitable[Answer | None]]


@dataclass
class HttpServer:
    url: str
    seen: list[Seen] = field(default_factory=list)

    def methods(self, verb: str = "POST") -> list[str]:
        """The JSON-RPC methods of the requests, in order."""
        return [one.message["method"] for one in self.seen if one.method == verb and one.body]


@asynccontextmanager
async def http_server(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[HttpServer]:
    """HTTP/1.1, one request a connection. A handler that gives None closes the connection without an answer."""
    served: set[asyncio.Task[Any]] = set()
    server = HttpServer("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        try:
            seen = await _request(reader)
            if seen is None:
                return
            server.seen.append(seen)
            answer = await handler(seen)
            if answer is not None:
                await _respond(writer, *answer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            served.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    try:
        yield server
    finally:
        listening.close()
        for task in [*served]:
            task.cancel()
        if served:
            await asyncio.wait([*served])
        await listening.wait_closed()


async def _request(reader: asyncio.StreamReader) -> Seen | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method, path, headers, body)


async def _respond(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: bytes | AsyncGenerator[bytes]
) -> None:
    lines = [f"HTTP/1.1 {status} Any", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if isinstance(body, bytes):
        lines.append(f"content-length: {len(body)}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    if isinstance(body, bytes):
        writer.write(body)
    else:
        await writer.drain()
        async with contextlib.aclosing(body):
            async for part in body:
                writer.write(part)
                await writer.drain()
    await writer.drain()


def json_answer(
    message: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Answer:
    return status, {"content-type": "application/json", **(headers or {})}, json.dumps(message).encode()


def result_of(request: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


def error_of(request: Mapping[str, Any], code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}}


INITIALIZED: Mapping[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "scripted", "version": "1"},
}


def scripted(message: Mapping[str, Any], tools: Sequence[str] = ("work",)) -> dict[str, Any] | None:
    """What a plain server of 2025-06-18 answers; None for a notification."""
    if "id" not in message:
        return None
    match message["method"]:
        case "initialize":
            return result_of(message, INITIALIZED)
        case "tools/list":
            listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
            return result_of(message, {"tools": listed})
        case "tools/call":
            return result_of(message, {"content": [{"type": "text", "text": "done"}]})
    return error_of(message, -32601, "Method not found")


def odd(mode: str = "", log: Path | None = None, **fields: Any) -> ServerConfig:
    """The configuration of an odd stdio server."""
    env = {**fields.pop("env", {}), **({"ODD_LOG": str(log)} if log else {})}
    return server(command=sys.executable, args=(str(ODD), mode), env=env, **fields)


def server(**fields: Any) -> ServerConfig:
    """A configuration as it is after loading; what is not given is as an entry that says nothing has it."""
    return ServerConfig.model_validate({"name": "demo", "key": "demo", **fields})
