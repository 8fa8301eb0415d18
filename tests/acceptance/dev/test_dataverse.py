"""`dev.py run --dataverse` as a person uses it: what it shows, that it hides the secret, and leaves nothing."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.local.dataverse.environment import Environment
from infra.local.dataverse.seed import add_companies
from infra.local.dev import dataverse_demo, paths
from infra.local.dev.console import DevError
from infra.local.dev.dataverse import COMPANIES, DataverseProcess
from infra.local.dev.dataverse_settings import NAME, SECRET_SETTING, settings_for
from infra.local.dev.settings import demo_token, effective_settings
from tests.acceptance.dev.support import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.dev.conftest import Family

pytestmark = pytest.mark.acceptance

#: Nothing listens there: what goes through this proxy fails.
_DEAD_PROXY = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
_STAND_IN = "infra.local.dataverse"


@pytest.fixture
def serving(family: Family) -> Iterator[Run]:
    with Run(family, "--dataverse") as run:
        run.read_until("Stop with Ctrl-C.")
        yield run


def _shown(output: str) -> tuple[str, list[str]]:
    """(what was said of the job, the file's lines that were shown)."""
    job, lines = re.split(r"\n(?:Headless call, two-way: dataverse-query|The file's first lines).*\n", output)[
        1:
    ]
    return job, lines.strip().split("\n\n")[0].splitlines()


def _sample() -> list[dict[str, str]]:
    """What the file should hold of the accounts, from the sample data itself."""
    environment = Environment("dev")
    add_companies(environment, COMPANIES)
    rows = [environment.record("account", identifier) for identifier in environment.ids("account")]
    columns = ("accountnumber", "name", "address1_city", "telephone1")
    return [{column: str(row[column]) for column in columns} for row in rows if row]


@pytest.mark.parametrize(
    ("options", "environ"),
    [((), {}), (("--auth",), {"MCP_AUTH_TOKEN": "", "MCP_AUTH_TOKENS": '{"ana": "token-of-ana"}'})],
    ids=["", "auth-of-another-owner"],
)
def test_once(family: Family, tmp_path: Path, options: tuple[str, ...], environ: dict[str, str]) -> None:
    with Run(family, "--once", "--dataverse", *options, environ={**_DEAD_PROXY, **environ}) as run:
        code, errors = run.finish()
    assert code == 0, f"{run.output}\n{errors}"
    job, lines = _shown(run.output)
    assert re.search(r"^status +completed", job, re.MULTILINE)
    pages = re.findall(r"^log .* page (\d+): (\d+) rows", job, re.MULTILINE)
    assert [int(number) for number, _ in pages] == list(range(1, len(pages) + 1))
    assert len(pages) > 2
    assert sum(int(rows) for _, rows in pages) == COMPANIES
    assert re.search(rf"^rows +{COMPANIES}$", job, re.MULTILINE)
    assert re.search(r"^file +http://127\.0\.0\.1:\d+/mcp/jobs/\S+\.csv ", job, re.MULTILINE)
    *csv_lines, rest = lines
    rows = list(csv.DictReader(csv_lines))
    assert all(row.pop("accountid") for row in rows)
    assert rows == _sample()[: dataverse_demo.LINES - 1]
    assert rest == f"… and {COMPANIES + 1 - dataverse_demo.LINES} more"
    assert list(tmp_path.iterdir()) == []  # neither the session's folder nor the stand-in's


def _get(url: str, token: str | None) -> tuple[int, str]:
    headers = {"X-MCP-Auth-Token": token} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_serves_what_it_shows_until_it_is_terminated(serving: Run, tmp_path: Path) -> None:
    secret = _secret(serving)
    (url,) = re.findall(r"^file +(\S+) ", serving.output, re.MULTILINE)
    token = demo_token(effective_settings(paths.LOCAL_SETTINGS, os.environ))
    status, text = _get(url, token)
    assert status == 200
    assert text.splitlines()[: dataverse_demo.LINES] == _shown(serving.output)[1][: dataverse_demo.LINES]
    assert _get(url, None)[0] == 401

    (query,) = [
        command
        for command in re.findall(r"^  (curl (?:.*\\\n)*.*)$", serving.output, re.MULTILINE)
        if "dataverse-query" in command
    ]
    answer = subprocess.run(["sh", "-c", query], capture_output=True, text=True, timeout=60).stdout
    data = [line.removeprefix("data:") for line in answer.splitlines() if line.startswith("data:")]
    found = json.loads(data[-1] if data else answer)["result"]["structuredContent"]
    assert found["rowCount"] == 5
    revenues = [row["revenue"] for row in found["rows"]]
    assert revenues == sorted(revenues, reverse=True)

    (place,) = re.findall(r"^Dataverse +(https://127\.0\.0\.1:\d+)/", serving.output, re.MULTILINE)
    assert f"Connection    {NAME}\n" in serving.output
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"host.log", "dataverse.log", "connections.json"} <= {path.name for path in files}
    assert place in next(path for path in files if path.name == "connections.json").read_text("utf-8")
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []
    assert not any(secret in command for command in serving.family.members().values())

    serving.process.send_signal(signal.SIGTERM)
    code, errors = serving.finish()
    assert code == 0, errors
    assert secret not in serving.output + errors
    assert list(tmp_path.iterdir()) == []


def _secret(run: Run) -> str:
    """The stand-in's secret, from the environment of the app's process."""
    (host,) = [pid for pid, command in run.family.members().items() if "infra.local.host" in command]
    names = dict(
        entry.partition(b"=")[::2] for entry in Path(f"/proc/{host}/environ").read_bytes().split(b"\0")
    )
    secret = names[SECRET_SETTING.encode()].decode()
    assert len(secret) > 20
    return secret


def test_killed(serving: Run, tmp_path: Path) -> None:
    serving.process.kill()
    code, _ = serving.finish(left_after=25)
    assert code == -signal.SIGKILL
    # dev.py had no chance to remove its folder. The stand-in had.
    assert [path.name.rpartition("-")[0] for path in tmp_path.iterdir()] == ["toolbox-run"]
    assert list(tmp_path.glob("*/dataverse-stand-in-*")) == []
    assert list(tmp_path.glob("*/dataverse.json*")) == []


def test_ends_when_the_stand_in_does(serving: Run) -> None:
    os.kill(serving.child(_STAND_IN), signal.SIGKILL)
    code, errors = serving.finish()
    assert code == 1
    assert "The Dataverse stand-in ended with exit code -9." in errors


def test_interrupted_while_the_stand_in_starts(family: Family, tmp_path: Path) -> None:
    with Run(family, "--dataverse") as run:
        run.read_until("Starting the Dataverse stand-in")
        run.process.send_signal(signal.SIGINT)
        code, _ = run.finish()
    assert code == 128 + signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_refused(family: Family, tmp_path: Path) -> None:
    own = {"name": "stand-IN", "url": "https://acme.crm.dynamics.com", "auth": {"type": "default"}}
    with Run(family, "--once", "--dataverse", environ={"CONNECTIONS": json.dumps([own])}) as run:
        code, errors = run.finish()
    assert code == 1
    assert "CONNECTIONS already has a connection with the name 'Stand-in'" in errors
    assert "run without --dataverse" in errors
    assert list(tmp_path.iterdir()) == []


#: What a tool's process does: a connection by its name, a token, a request. Prints what came back.
_ASK = """
import json, os, time
from shared.apis.connections.environments import from_settings
from shared.apis.environment import use_resolver
from shared.apis.powerplatform import powerplatformAPI
from shared.tool.context import Context, running
from shared.tool.spec import ExecutionMode, Mode

environments = from_settings(os.environ["CONNECTIONS"], "")
use_resolver(environments.resolve)
context = Context(
    tool_id="t", tool_name="t", invocation_mode=Mode.TWO_WAY, execution_mode=ExecutionMode.HEADLESS,
    correlation_id="c", timeout_ms=30_000, owner="ana", deadline=time.monotonic() + 30,
    connections=environments.named(["Stand-in"], "ana", "t"),
)
running(lambda: context)
print(json.dumps(powerplatformAPI.Licensing.Get("reports?top=2")))
"""


def test_the_power_platform_api_is_reached_too(tmp_path: Path) -> None:
    """No tool of the demo calls it. It wants a token of its own audience."""
    process = DataverseProcess(environ=os.environ, folder=tmp_path)
    try:
        place = process.wait_until_ready()
        assert not (tmp_path / "dataverse.json").exists()
        environ = {**os.environ, **_DEAD_PROXY, **settings_for(place, os.environ, ["ana"], tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            cwd=paths.REPO,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        process.stop()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["category"], found["path"], found["query"]) == ("licensing", "reports", {"top": "2"})


def test_terminated_while_it_starts(tmp_path: Path) -> None:
    """Between its folder and its readiness: the signal must not end the process before it has tidied up."""
    process = DataverseProcess(environ=os.environ, folder=tmp_path)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("dataverse-stand-in-*")):
            assert time.monotonic() < deadline
        process.process.terminate()
        assert process.process.wait(30) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["dataverse.log"]
    finally:
        process.stop()


def test_a_stand_in_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "dataverse.json.part").mkdir()  # in the way of the file that says where it is
    process = DataverseProcess(environ=os.environ, folder=tmp_path)
    try:
        with pytest.raises(DevError, match="did not start: it ended with exit code 1") as raised:
            process.wait_until_ready()
    finally:
        process.stop()
    assert "The ready file cannot be written: Is a directory" in raised.value.details
    assert "Traceback" not in raised.value.details
