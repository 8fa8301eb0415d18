"""A tool with a process of its own, in the running app: the worker library starts it, and outlives it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import ROOT, App, start_app, wait_until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

SURFACE = ROOT / "tests" / "apps" / "surface"
CONTRACT = {
    "agents": {
        "version": "1.0.0",
        "invokable": True,
        "modes": ["two-way", "one-way"],
        "defaultMode": "two-way",
        "executionModes": ["headless"],
        "isolation": "process",
    }
}
ENTRY = '''
"""Does what it is asked."""

import os
import signal
import time


def invokeHeadless(input, context):
    context.logger.info(f"pid {os.getpid()}")
    if input["do"] == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if input["do"] == "stay":
        time.sleep(120)
    return {"pid": os.getpid(), "parent": os.getppid(), "secret": os.environ.get("TOOLBOX_SEAL_KEY")}
'''


@pytest.fixture
def app(tmp_path: Path, new_storage: Callable[[], str]) -> Iterator[App]:
    app_dir = tmp_path / "app"
    (app_dir / "surface_tools" / "apart").mkdir(parents=True)
    for name in ("function_app.py", "host.json"):
        shutil.copy(SURFACE / name, app_dir)
    code = (app_dir / "function_app.py").read_text()
    root = "str(Path(__file__).resolve().parents[3])"
    assert root in code
    (app_dir / "function_app.py").write_text(code.replace(root, repr(str(ROOT))))
    (app_dir / "surface_tools" / "apart" / "pptb.config.json").write_text(json.dumps(CONTRACT))
    (app_dir / "surface_tools" / "apart" / "headless.py").write_text(ENTRY)
    running = start_app(tmp_path, new_storage(), app_dir=app_dir)
    yield running
    running.stop()


def test_it_answers_crashes_and_ends_with_the_app(app: App) -> None:
    first, second = (app.call("apart", {"do": "answer"})["structuredContent"] for _ in range(2))
    assert first["pid"] != second["pid"]
    assert first["secret"] is None

    crashed = app.call("apart", {"do": "crash"})
    assert crashed["isError"] is True
    assert "Tool 'apart' failed: its process ended with signal SIGSEGV" in crashed["content"][0]["text"]
    assert app.call("apart", {"do": "answer"})["structuredContent"]["pid"]

    accepted = app.call("apart", {"do": "stay"}, {"mode": "one-way"})["structuredContent"]

    def told() -> int:
        lines: Any = [line["message"] for line in app.job(accepted["jobId"]).json()["logs"]]
        return next((int(line.removeprefix("pid ")) for line in lines if line.startswith("pid ")), 0)

    pid = wait_until(told)
    os.kill(pid, 0)
    app.process.kill()
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in status(pid))


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "\nState:\tZ"
