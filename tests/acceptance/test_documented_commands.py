"""Commands of the README and of docs/ are run as they stand, but for the names in capitals and the port."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from tests.acceptance.conftest import ROOT, TOKEN, App
from tests.support import documents

pytestmark = pytest.mark.acceptance

#: What pages say where `dev.py run` serves.
SHOWN = "http://127.0.0.1:7071"
CSV = {"csv": "name,age\nann,31\n"}
BLOCKS = [
    pytest.param(commands, id=block.name)
    for block in documents.command_blocks()
    if block.needs is None
    and (commands := [text for text in block.commands() if documents.run_elsewhere(text) is None])
]


@pytest.fixture(scope="module")
def job_id(app: App) -> str:
    accepted = app.call("csv_profile", CSV, {"executionMode": "headless", "mode": "one-way"})
    job = str(accepted["structuredContent"]["jobId"])
    app.ended(job)
    return job


def filled_in(command: str, app: App, job_id: str) -> str:
    """The command with the reader's own values, and on the app of these tests."""
    command = command.replace(SHOWN, f"http://127.0.0.1:{app.port}")
    command = re.sub(r"(?<![\w$])JOB_ID\b", job_id, command)
    command = re.sub(r"(?<![\w$])TOKEN\b", TOKEN, command)
    return re.sub(r"\bpython3\b", shlex.quote(sys.executable), command)


def answer_of(output: str) -> Any:
    """The JSON of an answer, also where it comes as one event."""
    return json.loads(output.partition("data: ")[2] if output.startswith(("event:", "data:")) else output)


@pytest.mark.parametrize("commands", BLOCKS)
def test_a_documented_command_does_what_it_says(app: App, job_id: str, commands: list[str]) -> None:
    environment = {
        **os.environ,
        "AzureWebJobsStorage": app.connection,
        "TOKEN": TOKEN,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", filled_in(command, app, job_id)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        assert done.stdout.strip(), f"{command}\nsaid nothing"
        if command.startswith("curl "):
            answer = answer_of(done.stdout)
            # The session's app may have health findings of its own; those are no fault of the command's.
            assert "error" not in answer, answer
            assert not answer.get("isError", False), answer
            assert not answer.get("result", {}).get("isError", False), answer


def test_there_are_commands_to_run() -> None:
    assert len(BLOCKS) > 5
