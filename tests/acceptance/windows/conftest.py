"""The app with windowed tools, on a real Azurite and a stand-in Dataverse, driven over the network."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from infra.local.dataverse.authority import App as Registration
from infra.local.dataverse.stand_in import CLIENT_ID, TENANT, EnvironmentSpec, StandIn
from tests.acceptance.conftest import ROOT, TOKEN, App, start_app, wait_until

SECRET = "secret-of-the-stand-in"
SURFACE = ROOT / "tests" / "apps" / "surface"
SESSION = "X-MCP-Window-Session"
#: A contract with a page and nothing else.
FORM = {
    "invocation": {
        "version": "1.0.0",
        "prefill": {"properties": {"question": {"type": "string"}}, "required": ["question"]},
        "returnTopic": {"properties": {"answer": {"type": "string", "minLength": 2}}, "required": ["answer"]},
    },
    "agents": {
        "version": "1.0.0",
        "invokable": True,
        "modes": ["two-way", "one-way"],
        "window": {"apiMethods": ["dataverseAPI.create"]},
    },
}
PAGE = """<!doctype html>
<html><head><title>Form</title><link rel="stylesheet" href="form.css"></head>
<body><input id="answer"><button id="send">Send</button><p id="fault"></p>
<script>document.title = "inline scripts of the file run";</script>
<script type="module" src="form.js"></script></body></html>
"""
SCRIPT = """
const context = await toolboxAPI.invocation.getLaunchContext();
document.querySelector("#fault").textContent = context.question;
document.querySelector("#send").addEventListener("click", async () => {
  try {
    await toolboxAPI.invocation.returnData({ answer: document.querySelector("#answer").value });
  } catch (error) {
    document.querySelector("#fault").textContent = error.message;
  }
});
"""


def write_form(folder: Path, contract: Any = FORM) -> None:
    """A tool that is a page."""
    (folder / "ui").mkdir(parents=True)
    (folder / "pptb.config.json").write_text(json.dumps(contract))
    (folder / "package.json").write_text(json.dumps({"displayName": folder.name, "description": "Asks."}))
    (folder / "ui" / "index.html").write_text(PAGE)
    (folder / "ui" / "form.js").write_text(SCRIPT)
    (folder / "ui" / "form.css").write_text("body { color: black }")
    (folder / "secret.txt").write_text("not below ui")


@dataclass
class Windows:
    """A running app, and what a person's browser would do."""

    app: App
    dataverse: StandIn
    _before: str = ""

    def post(self, job_id: str, what: str, body: Any, **headers: str) -> httpx.Response:
        return self.app.http.post(f"/mcp/windows/{job_id}/{what}", json=body, headers=headers)

    def open(self, link: str) -> tuple[str, Any]:
        """(the job, what its session is told), by a launch link."""
        job_id, _, ticket = link.partition("#window=")[2].partition(".")
        answer = self.post(job_id, "session", {"ticket": ticket})
        assert answer.status_code == 200, answer.text
        return job_id, answer.json()

    def open_as_owner(self, job_id: str) -> Any:
        answer = self.app.http.post(
            f"/mcp/windows/{job_id}/session", json={}, headers={"X-MCP-Auth-Token": TOKEN}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def calls(self, session: str, job_id: str, api: str, method: str, *args: Any) -> httpx.Response:
        body = {"api": api, "method": method, "args": list(args)}
        return self.post(job_id, "call", body, **{SESSION: session})

    def gives(self, session: str, job_id: str, data: Any) -> httpx.Response:
        return self.post(job_id, "return", {"data": data}, **{SESSION: session})

    def begin(self, pool: ThreadPoolExecutor, name: str, arguments: Any, **envelope: Any) -> Future[Any]:
        """A two-way call that waits for a person."""
        self._before = self._newest(name).get("jobId", "")
        return pool.submit(self.app.call, name, arguments, {"executionMode": "windowed", **envelope})

    def waiting(self, name: str) -> str:
        """The id of the job of the call that was begun last, once it is there."""

        def probe() -> Any:
            found = self._newest(name).get("jobId", "")
            return found if found > self._before else None

        return str(wait_until(probe))

    def _newest(self, name: str) -> Any:
        found = self.app.http.get(
            "/mcp/jobs", params={"tool": name, "limit": "1"}, headers={"X-MCP-Auth-Token": TOKEN}
        ).json()["jobs"]
        return found[0] if found else {}


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[Windows]:
    with serve(tmp_path_factory.mktemp("windows"), new_storage(), TOOLBOX_MAX_WAIT_MS="20000") as served:
        yield served


@contextlib.contextmanager
def serve(folder: Path, connection: str, *more: Path, **settings: str) -> Iterator[Windows]:
    """An app with the picker, the tools `form` and `other`, and those of the folders `more`."""
    app_dir = folder / "app"
    tools = app_dir / "surface_tools"
    tools.mkdir(parents=True)
    shutil.copy(SURFACE / "host.json", app_dir)
    code = (SURFACE / "function_app.py").read_text()
    root = "str(Path(__file__).resolve().parents[3])"
    assert root in code
    (app_dir / "function_app.py").write_text(code.replace(root, repr(str(ROOT))))
    shutil.copytree(ROOT / "tools" / "entity_picker", tools / "entity_picker")
    for name in ("form", "other"):
        write_form(tools / name)
    for tool in more:
        shutil.copytree(tool, tools / tool.name)
    with StandIn.start([EnvironmentSpec("dev")], [Registration(CLIENT_ID, SECRET, TENANT)]) as dataverse:
        to = dataverse.connection("dev")
        auth = {"type": "clientSecret", "tenantId": to["tenantId"], "clientId": to["clientId"]}
        auth |= {"secretSetting": "DATAVERSE_SECRET", "authority": to["authority"]}
        running = start_app(
            folder,
            connection,
            app_dir=app_dir,
            CONNECTIONS=json.dumps([{"id": "dev", "name": "Dev", "url": to["url"], "auth": auth}]),
            DATAVERSE_SECRET=SECRET,
            REQUESTS_CA_BUNDLE=str(dataverse.ca_file),
            SSL_CERT_FILE=str(dataverse.ca_file),
            **settings,
        )
        yield Windows(running, dataverse)
        assert running.stop() == 0
