"""The running app: the real worker library in the local host, on a real Azurite, driven over the network."""

from __future__ import annotations

import base64
import functools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "acceptance-token-of-default"
OTHER_TOKEN = "acceptance-token-of-ana"
SEAL_KEY = base64.b64encode(bytes(range(32))).decode()
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def wait_until[T](probe: Callable[[], T], seconds: float = 30.0, every: float = 0.05) -> T:
    """The probe's first true answer."""
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(every)


@dataclass
class App:
    """A host process with the app in it."""

    process: subprocess.Popen[bytes]
    #: None when the host has no HTTP front.
    port: int | None
    connection: str
    log: Path

    @functools.cached_property
    def http(self) -> httpx.Client:
        assert self.port is not None
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=120, trust_env=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/runtime/webhooks/mcp"

    def rpc(self, method: str, headers: dict[str, str] | None = None, **params: Any) -> Any:
        """One JSON-RPC request; the whole response object."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.http.post(
            "/runtime/webhooks/mcp", content=json.dumps(body), headers={**MCP_HEADERS, **(headers or {})}
        )
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text.split("data: ", 1)[1])

    def call(
        self, name: str, arguments: Any, envelope: Any = None, headers: dict[str, str] | None = None
    ) -> Any:
        """The result of one tools/call."""
        given = dict(arguments) if envelope is None else {**arguments, "__pptb": envelope}
        return self.rpc("tools/call", headers, name=name, arguments=given)["result"]

    def job(self, job_id: str, token: str | None = TOKEN, path: str = "") -> httpx.Response:
        headers = {} if token is None else {"X-MCP-Auth-Token": token}
        return self.http.get(f"/mcp/jobs/{job_id}{path}", headers=headers)

    def ended(self, job_id: str, token: str = TOKEN) -> Any:
        """The status body once the job is terminal."""

        def probe() -> Any:
            body = self.job(job_id, token).json()
            return body if body["status"] in ("completed", "failed") else None

        return wait_until(probe)

    def stop(self) -> int:
        if self.port is not None:
            self.http.close()
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def start_app(
    folder: Path,
    connection: str,
    *options: str,
    app_dir: Path = ROOT,
    python: str = sys.executable,
    **settings: str,
) -> App:
    """Starts the host and waits until it is ready; fails with its log when it does not get there."""
    ready, log = folder / "ready.json", folder / "host.log"
    environment = {
        **os.environ,
        "AzureWebJobsStorage": connection,
        "MCP_AUTH_TOKEN": TOKEN,
        "MCP_AUTH_TOKENS": json.dumps({"ana": OTHER_TOKEN}),
        "TOOLBOX_SEAL_KEY": SEAL_KEY,
        **settings,
    }
    no_settings = folder / "no.settings.json"
    no_settings.write_text('{"Values": {}}')
    command = [python, "-m", "infra.local.host", str(app_dir), "--port", "0"]
    command += ["--settings", str(no_settings), "--ready-file", str(ready), *options]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def started() -> bool:
        assert process.poll() is None, log.read_text()
        return ready.exists()

    try:
        wait_until(started)
    except BaseException:  # a process that is left over would fail another test
        process.kill()
        process.wait()
        raise
    port = json.loads(ready.read_text())["port"]
    return App(process, port, connection, log)


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    """The app of this test process, on a storage that nothing else uses: apps that share a queue take each
    other's messages, and a reaper deals with every row that it finds.
    """
    folder = tmp_path_factory.mktemp("app")
    running = start_app(folder, new_storage(), TOOLBOX_MAX_WAIT_MS="8000")
    yield running
    assert running.stop() == 0
