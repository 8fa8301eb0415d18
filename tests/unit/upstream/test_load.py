"""Loading the app with a lock file: every tool is registered; no configuration, no network, nothing heavy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from shared.upstream import lock
from shared.upstream.lock import Lock
from tests.support.upstream_app import ROOT, app_folder

from .test_lock import PROMPT, TOOL

SCRIPT = """
import json, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.posix_spawn"):
        raise RuntimeError(event)
    if event == "open" and "mcp_servers" in str(arguments[0]):
        raise RuntimeError("the configuration is read")

sys.addaudithook(refuse)
import function_app
names = [function.get_function_name() for function in function_app.app.get_functions()]
print(json.dumps({"modules": sorted(sys.modules), "functions": names}))
"""
HEAVY = (
    "anyio", "httpx", "httpx2", "jsonschema", "mcp", "mcp_types", "websockets", "yaml", "aiohttp",
    "shared.upstream.config", "shared.upstream.connection", "shared.upstream.content", "shared.upstream.sync",
)  # fmt: skip


def test_loading_a_lock_costs_nothing_but_its_file(tmp_path: Path) -> None:
    folder = app_folder(tmp_path / "app")
    (folder.path / lock.LOCK_FILE).write_text(Lock("safe", (TOOL,), (PROMPT,)).to_text())
    (folder.path / "mcp_servers.json").write_text("not read at load")
    environment = {
        **os.environ,
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": "some-token",
        "TOOLBOX_SEAL_KEY": "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI=",
        "PYTHONPATH": os.pathsep.join([str(folder.path), str(ROOT)]),
    }
    environment.pop("MCP_SERVERS", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder.path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"tool_docs_read_6e32feee", "prompt_docs_ask"} <= set(found["functions"])
    heavy = [
        name for name in found["modules"] if any(name == top or name.startswith(f"{top}.") for top in HEAVY)
    ]
    assert heavy == []


def test_a_damaged_lock_costs_its_own_tools_only(tmp_path: Path) -> None:
    folder = app_folder(tmp_path / "app")
    (folder.path / lock.LOCK_FILE).write_text("{")
    paths = os.pathsep.join([str(folder.path), str(ROOT)])
    code = "import function_app; print(len(function_app.app.get_functions()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder.path,
        env={**os.environ, "MCP_AUTH_TOKEN": "some-token", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
    assert "upstream.lock.json: left out: " in done.stderr
    assert "python3 dev.py upstream sync" in done.stderr
