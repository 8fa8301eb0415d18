"""`dev.py run` as a person uses it: what it shows, how it ends, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from infra.local.dev import paths
from infra.local.dev.settings import demo_token, effective_settings
from tests.acceptance.dev.support import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.dev.conftest import Family

pytestmark = pytest.mark.acceptance


@pytest.fixture
def serving(family: Family) -> Iterator[Run]:
    with Run(family) as run:
        run.read_until("Stop with Ctrl-C.")
        yield run


@pytest.mark.parametrize("options", [(), ("--auth",)], ids=["", "auth"])
def test_once(family: Family, options: tuple[str, ...]) -> None:
    with Run(family, "--once", *options) as run:
        code, errors = run.finish()
    assert code == 0, f"{run.output}\n{errors}"
    inline, headless, job = re.split(r"\n(?:Inline call|Headless call|The job, read).*\n", run.output)[1:]
    for result in (inline, headless):
        assert '"row_count"' in result
        assert "image/png" in result
    assert inline.strip() == headless.strip()
    assert re.search(r"^status +completed", job, re.MULTILINE)
    assert re.search(r"^progress +100 %", job, re.MULTILINE)
    assert re.search(r"^log .* info +\S", job, re.MULTILINE)


def _status(url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_serves_until_it_is_terminated(serving: Run) -> None:
    (job_url,) = re.findall(r"^The job +(http://\S+)$", serving.output, re.MULTILINE)
    assert _status(job_url, {})[0] == 401
    token = demo_token(effective_settings(paths.LOCAL_SETTINGS, os.environ))
    assert token is not None
    status, body = _status(job_url, {"X-MCP-Auth-Token": token})
    assert (status, json.loads(body)["status"]) == (200, "completed")
    assert json.loads(body)["logs"]

    serving.process.send_signal(signal.SIGTERM)
    code, errors = serving.finish()
    assert code == 0, errors
    assert "running functions get" in serving.output  # the host was asked, and stopped in its own way


def test_shown_curl_commands_work(serving: Run) -> None:
    commands = re.findall(r"^  (curl (?:.*\\\n)*.*)$", serving.output, re.MULTILINE)
    assert len(commands) == 2
    listed, job = (
        subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30).stdout
        for command in commands
    )
    assert "csv_profile" in listed
    assert json.loads(job)["status"] == "completed"
    serving.process.send_signal(signal.SIGINT)
    assert serving.finish()[0] == 0


def test_interrupted_while_starting(family: Family) -> None:
    with Run(family) as run:
        run.read_until("Starting the app")
        run.process.send_signal(signal.SIGINT)
        code, _ = run.finish()
    assert code == 128 + signal.SIGINT


def test_killed(serving: Run) -> None:
    serving.process.kill()
    code, _ = serving.finish(left_after=25)
    assert code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("child", "said"), [("azurite.js", "Azurite ended"), ("infra.local.host", "The app ended")]
)
def test_ends_when_a_child_does(serving: Run, child: str, said: str) -> None:
    os.kill(serving.child(child), signal.SIGKILL)
    code, errors = serving.finish()
    assert code == 1
    assert said in errors
