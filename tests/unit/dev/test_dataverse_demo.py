"""How `dev.py run --dataverse` shows a query's file, and what it says when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.dev import client, dataverse_demo, demo
from infra.local.dev.console import DevError

APP = demo.App(url="http://127.0.0.1:1", token="t", extension_key=None)
JOB = {"status": "completed", "attempt": 1, "progress": {"percent": 100}, "logs": []}
ARTIFACT = {"uri": "artifact://1/q.csv", "url": "/mcp/jobs/1/artifacts/q.csv", "name": "q.csv", "size": 12_345}


def _result(content: dict[str, Any]) -> dict[str, Any]:
    return {"structuredContent": content, "content": [], "_meta": {"toolbox/jobId": "1"}}


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the app answers: a result, a job, a file."""
    answers: dict[str, Any] = {
        "result": _result({"rowCount": 9, "more": False, "artifact": ARTIFACT}), "job": JOB,
        "file": "id,name\n" + "".join(f"{number},Name {number}\n" for number in range(9)),
    }  # fmt: skip
    monkeypatch.setattr(client, "call_tool", lambda *given: answers.update(asked=given) or answers["result"])
    monkeypatch.setattr(client, "get_json", lambda *_: answers["job"])
    monkeypatch.setattr(client, "get_text", lambda url, *_: answers["file"] if url.endswith(".csv") else "")
    return answers


def test_rows_link_and_first_lines(app: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    dataverse_demo.make_call(APP)
    shown = capsys.readouterr().out
    assert "rows      9\n" in shown
    assert "file      http://127.0.0.1:1/mcp/jobs/1/artifacts/q.csv (12,345 bytes)\n" in shown
    assert shown.endswith("id,name\n" + "".join(f"{n},Name {n}\n" for n in range(5)) + "… and 4 more\n")
    _, tool, arguments, *_ = app["asked"]
    assert (tool, arguments["__pptb"]["connectionName"]) == ("dataverse-query", "Stand-in")


def test_a_short_file_is_shown_whole(app: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    app["file"] = "id,name\n1,A\n"
    dataverse_demo.make_call(APP)
    assert capsys.readouterr().out.endswith("q.csv\nid,name\n1,A\n")


def test_a_job_that_was_not_done_in_time_is_a_failure(app: dict[str, Any]) -> None:
    app["result"] = _result({"status": "accepted"})
    with pytest.raises(DevError, match="came back without a file"):
        dataverse_demo.make_call(APP)


def test_a_job_that_failed_is_a_failure(app: dict[str, Any]) -> None:
    app["job"] = {**JOB, "status": "failed", "error": "Signing in failed."}
    with pytest.raises(DevError, match=r"The job is failed, not completed: Signing in failed\."):
        dataverse_demo.make_call(APP)


def test_without_a_token_nothing_is_read(app: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    dataverse_demo.make_call(demo.App(url=APP.url, token=None, extension_key=None))
    shown = capsys.readouterr().out
    assert "no token is set" in shown
    assert "Name 1" not in shown
