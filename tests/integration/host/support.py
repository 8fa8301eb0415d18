"""Starting the local host in a process of its own, since the worker library takes one app per process."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from azure.storage.queue import QueueClient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPO = Path(__file__).resolve().parents[3]
FIXTURE = REPO / "tests" / "apps" / "host_fixture"
DEADLINE = 30.0  # seconds; far more than anything here takes on a busy machine
MCP_PATH = "/runtime/webhooks/mcp"


def wait_for[T](look: Callable[[], T | None], seconds: float = DEADLINE) -> T:
    """Poll until ``look`` returns something true, and return that."""
    end = time.monotonic() + seconds
    while True:
        if found := look():
            return found
        assert time.monotonic() < end, "nothing came in time"
        time.sleep(0.02)


@dataclass
class Host:
    """A host process; ``log`` is where the fixture app records its events."""

    process: subprocess.Popen[str]
    port: int | None
    log: Path
    output: Path
    client: httpx.Client = field(repr=False)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The events recorded so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True) if self.log.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if name in {None, event["event"]}]

    def text(self) -> str:
        """stdout and stderr so far."""
        return self.output.read_text(encoding="utf-8")

    def rpc(self, method: str, params: Any = None, **headers: str) -> Any:
        """The JSON-RPC answer to a request."""
        response = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, **headers)
        assert response.status_code == 200, response.status_code
        return sse_data(response)

    def post(self, message: Any, **headers: str) -> httpx.Response:
        """POST to the MCP endpoint. ``headers`` names use underscores; an empty value takes one away."""
        sent = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = message if isinstance(message, bytes | str) else json.dumps(message)
        return self.client.post(MCP_PATH, content=content, headers={k: v for k, v in sent.items() if v})

    def call(self, tool: str, **arguments: Any) -> Any:
        """The result of a tool call."""
        return self.rpc("tools/call", {"name": tool, "arguments": arguments})["result"]

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """The exit code, once the process has ended."""
        return self.process.wait(DEADLINE)


def sse_data(response: httpx.Response) -> Any:
    """The JSON of the one event of an answer."""
    event, data, *rest = response.text.split("\n")
    assert event == "event: message"
    assert rest == ["", ""]
    return json.loads(data.removeprefix("data: "))


def launch(
    directory: Path, *arguments: str, app: Path = FIXTURE, env: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen[str], Path, Path, Path]:
    """Start a host without waiting; returns the process, its output file, ready file and event log."""
    output, ready, log = directory / "output.txt", directory / "ready.json", directory / "events.jsonl"
    settings = {
        "FIXTURE_LOG": str(log),
        "FIXTURE_QUEUE": "fixture-unused",
        "FIXTURE_SCHEDULE": "0 0 0 1 1 *",
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
    }
    keep = ("PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE", "COVERAGE_PROCESS_START")
    inherited = {name: os.environ[name] for name in keep if name in os.environ}
    command = [sys.executable, "-m", "infra.local.host", str(app), "--port", "0", "--ready-file", str(ready)]
    with output.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=REPO,
            env={**inherited, **settings, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
        )
    return process, output, ready, log


def start(directory: Path, *arguments: str, app: Path = FIXTURE, env: Mapping[str, str] | None = None) -> Host:
    """Start a host and wait until it is ready."""
    process, output, ready, log = launch(directory, *arguments, app=app, env=env)

    def look() -> dict[str, Any] | None:
        if ready.exists():
            data: dict[str, Any] = json.loads(ready.read_text())
            return data
        assert process.poll() is None, output.read_text()
        return None

    try:
        data = wait_for(look)
    except BaseException:
        process.kill()
        process.wait()
        raise
    assert data["pid"] == process.pid
    port = data["port"] or 1  # no HTTP front: the client is of no use
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False)
    return Host(process, data["port"], log, output, client)


def close(host: Host) -> None:
    """End the process whatever its state."""
    host.client.close()
    if host.process.poll() is None:
        host.process.kill()
    host.process.wait()


def queue(connection: str, name: str) -> QueueClient:
    """A client of a queue that sends and shows message content as it is."""
    return QueueClient.from_connection_string(connection, name)


def send(client: QueueClient, body: Any) -> None:
    """Send a body as the host wants it: base64."""
    text = body if isinstance(body, str) else json.dumps(body)
    client.send_message(base64.b64encode(text.encode()).decode())


def peek_raw(client: QueueClient) -> list[str]:
    """Contents of the visible messages as they are; none for a missing queue."""
    from azure.core.exceptions import ResourceNotFoundError

    try:
        return [str(message.content) for message in client.peek_messages(32)]
    except ResourceNotFoundError:
        return []


def peek(client: QueueClient) -> list[str]:
    """Contents of the visible messages, decoded; none for a missing queue."""
    return [base64.b64decode(content).decode() for content in peek_raw(client)]
