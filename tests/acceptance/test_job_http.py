"""`GET /mcp/jobs/{id}`: who may read what, and what everybody else is told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.jobs import keys
from tests.acceptance.conftest import TOKEN, App, start_app

pytestmark = pytest.mark.acceptance

UNAUTHORIZED = b'{"error":"Unauthorized: valid MCP access token required"}'
BAD_IDS = ["x", "..", "%2e%2e", "01A229B6-94EC-75FD-A4A6-1BECEA00C572", "a'b", "%F0%9F%8E%88", "job%0d%0aX: y"]


@pytest.fixture(scope="module")
def job_id(app: App) -> str:
    result = app.call("csv_profile", {"csv": "a,b\n1,2\n"}, {"executionMode": "headless"})
    return str(result["_meta"]["toolbox/jobId"])


def test_both_paths_give_the_completed_job_with_its_log(app: App, job_id: str) -> None:
    for path in ("", "/status"):
        answer = app.job(job_id, path=path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["cache-control"] == "no-store"
        body = answer.json()
        assert (body["jobId"], body["toolName"], body["status"]) == (job_id, "csv_profile", "completed")
        assert (body["mode"], body["executionMode"], body["attempt"]) == ("two-way", "headless", 1)
        assert body["createdAt"] <= body["startedAt"] <= body["completedAt"]
        assert body["createdAt"].endswith("Z")
        assert body["timeoutMs"] == 300_000
        assert (body["owner"], "a,b" in body["inputSummary"]) == ("default", True)
        assert body["attempts"] == [
            {
                "attempt": 1,
                "startedAt": body["startedAt"],
                "endedAt": body["completedAt"],
                "outcome": "completed",
            }
        ]
        assert body["result"]["row_count"] == 1
        assert body["logs"][0]["level"] == "info"
        assert body["logsDropped"] == 0
        assert body["statusUrl"] == f"/mcp/jobs/{job_id}/status"
        assert "error" not in body


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN.upper(), TOKEN + "x"])
def test_without_the_token_every_id_looks_the_same(app: App, job_id: str, token: str | None) -> None:
    for name in (job_id, keys.new_job_id(), "malformed"):
        for path in ("", "/status"):
            answer = app.job(name, token, path)
            assert (answer.status_code, answer.content) == (401, UNAUTHORIZED)


def test_unknown_and_malformed_ids_are_not_found(app: App) -> None:
    for name in (keys.new_job_id(), *BAD_IDS):
        answer = app.job(name)
        assert answer.status_code == 404
        if answer.content:  # a path that is no job's path at all is the host's own 404
            assert answer.json() == {"error": "Job not found"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_verbs_are_refused_with_the_legal_ones(app: App, job_id: str, method: str) -> None:
    answer = app.http.request(method, f"/mcp/jobs/{job_id}", headers={"X-MCP-Auth-Token": TOKEN})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    without: Any = app.http.request(method, f"/mcp/jobs/{job_id}")
    assert without.status_code == 401


def test_curl_gets_the_same(app: App, job_id: str) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.fail("curl is needed for this test")
    url = f"http://127.0.0.1:{app.port}/mcp/jobs/{job_id}/status"

    def run(*options: str) -> str:
        command = [curl, "--noproxy", "*", "-s", "-o", "-", "-w", "\n%{http_code}", *options, url]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    assert run().splitlines()[-1] == "401"
    told = run("-H", f"X-MCP-Auth-Token: {TOKEN}").splitlines()
    assert told[-1] == "200"
    assert '"status":"completed"' in told[0]


def test_without_any_configured_token_nothing_is_ever_shown(
    tmp_path: Path, new_storage: Callable[[], str]
) -> None:
    running = start_app(tmp_path, new_storage(), MCP_AUTH_TOKEN="", MCP_AUTH_TOKENS="")
    try:
        result = running.call("csv_profile", {"csv": "a,b\n1,2\n"}, {"executionMode": "headless"})
        job_id = result["_meta"]["toolbox/jobId"]
        for token in (None, "", "x"):
            answer = running.job(job_id, token)
            assert answer.status_code == 503
            assert "MCP_AUTH_TOKEN" in answer.json()["error"]
    finally:
        running.stop()
