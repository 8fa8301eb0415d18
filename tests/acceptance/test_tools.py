"""Calling `csv_profile` through the MCP endpoint, in every mode, rightly and wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import OTHER_TOKEN, ROOT, TOKEN, App, wait_until

pytestmark = pytest.mark.acceptance

SAMPLE = (ROOT / "tools" / "csv_profile" / "sample.csv").read_text("utf-8")
HEADLESS = {"executionMode": "headless"}


def columns(structured: Any) -> dict[str, Any]:
    return {column["name"]: column for column in structured["columns"]}


@pytest.mark.parametrize("envelope", [None, HEADLESS], ids=["inline", "headless"])
def test_a_real_file_is_profiled(app: App, envelope: Any) -> None:
    result = app.call("csv_profile", {"csv": SAMPLE}, envelope)
    assert not result.get("isError")
    assert result["structuredContent"]["row_count"] == 118
    assert columns(result["structuredContent"])["atomic_number"]["type"] == "integer"
    assert [block["type"] for block in result["content"]] == ["image", "text"]
    assert json.loads(result["content"][1]["text"]) == result["structuredContent"]


def test_inline_and_headless_give_the_same(app: App) -> None:
    inline = app.call("csv_profile", {"csv": SAMPLE})
    headless = app.call("csv_profile", {"csv": SAMPLE}, HEADLESS)
    assert headless["structuredContent"] == inline["structuredContent"]
    assert headless["content"] == inline["content"]


@pytest.mark.parametrize("execution_mode", ["inline", "headless"])
def test_one_way_is_accepted_and_read_later(app: App, execution_mode: str) -> None:
    result = app.call("csv_profile", {"csv": SAMPLE}, {"executionMode": execution_mode, "mode": "one-way"})
    accepted = result["structuredContent"]
    assert {key: accepted[key] for key in ("status", "executionMode", "mode", "jobStatus", "hasAuthToken")} == {
        "status": "accepted",
        "executionMode": execution_mode,
        "mode": "one-way",
        "jobStatus": "pending",
        "hasAuthToken": False,
    }
    assert accepted["jobStatusPath"] == f"/mcp/jobs/{accepted['jobId']}"
    assert accepted["statusUrl"] == f"/mcp/jobs/{accepted['jobId']}/status"
    body = app.ended(accepted["jobId"])
    assert body["status"] == "completed"
    assert body["result"]["row_count"] == 118
    assert [block["type"] for block in body["content"]] == ["image"]


def test_a_large_file_shows_real_progress_and_logs_while_it_runs(app: App) -> None:
    rows = "".join(
        f"{number},{number * 0.25},name{number % 97},2026-01-{number % 28 + 1:02d}\n"
        for number in range(330_000)
    )
    text = "id,value,name,day\n" + rows
    accepted = app.call("csv_profile", {"csv": text}, {**HEADLESS, "mode": "one-way"})["structuredContent"]
    seen: list[tuple[int, int]] = []

    def over() -> Any:
        body = app.job(accepted["jobId"]).json()
        if body["status"] == "in_progress":
            seen.append((body["progress"]["percent"], len(body["logs"])))
        return body if body["status"] in ("completed", "failed") else None

    body = wait_until(over, 60)
    assert body["status"] == "completed", body.get("error")
    assert body["result"]["row_count"] == 330_000
    percents = [percent for percent, _ in seen]
    assert percents == sorted(percents)
    assert any(0 < percent < 100 for percent in percents)
    assert any(lines >= 2 for _, lines in seen)
    assert body["progress"] == {"percent": 100, "message": "completed"}
    assert [line["seq"] for line in body["logs"]] == list(range(1, len(body["logs"]) + 1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"csv": 5}, "$.csv: expected string, got integer"),
        ({"csv": "a,b", "delimiter": 7}, "$.delimiter: expected string, got integer"),
        ({"csv": "a,b", "delimeter": ";"}, "unknown field 'delimeter'; did you mean 'delimiter'?"),
        ({"csv": "a,b\n1,2\n", "delimiter": "ab"}, "delimiter"),
        ({"csv": ""}, "csv"),
        (
            {"csv": "a,b", "__pptb": {"mode": "both"}},
            "__pptb.mode: must be one of one-way, two-way, got 'both'",
        ),
        (
            {"csv": "a,b", "__pptb": {"executionMode": "windowed"}},
            "Requested execution mode 'windowed' is not supported",
        ),
        ({"csv": "a,b", "__pptb": {"timeoutMs": "soon"}}, "__pptb.timeoutMs: must be a positive number"),
        ({"csv": "a,b", "__pptb": 5}, "__pptb: expected object, got integer"),
    ],
)
def test_a_wrong_call_is_answered_in_words(app: App, arguments: dict[str, Any], said: str) -> None:
    result = app.call("csv_profile", arguments)
    assert result["isError"] is True
    assert said in result["content"][0]["text"]
    assert "Traceback" not in result["content"][0]["text"]


def test_a_failed_job_names_its_id(app: App) -> None:
    result = app.call("csv_profile", {"csv": ""}, HEADLESS)
    assert result["isError"] is True
    job_id = result["_meta"]["toolbox/jobId"]
    assert job_id in result["content"][0]["text"]
    body = app.ended(job_id)
    assert (body["status"], body["errorCode"]) == ("failed", "tool_error")
    assert body["logs"][-1]["level"] == "error"


def test_the_list_is_what_a_person_would_write(app: App) -> None:
    (entry,) = [tool for tool in app.rpc("tools/list")["result"]["tools"] if tool["name"] == "csv_profile"]
    schema = entry["inputSchema"]
    assert schema["type"] == "object"
    assert schema["required"] == ["csv"]
    assert schema["properties"]["delimiter"]["type"] == "string"
    assert schema["properties"]["__pptb"]["properties"]["executionMode"]["enum"] == ["inline", "headless"]
    assert entry["outputSchema"]["type"] == "object"
    assert len(entry["outputSchema"]["anyOf"]) == 2
    assert entry["_meta"]["toolbox/annotations"]["readOnlyHint"] is True


class TestOwners:
    def test_a_call_with_a_token_makes_a_job_of_its_owner(self, app: App) -> None:
        result = app.call("csv_profile", {"csv": SAMPLE}, HEADLESS, {"X-MCP-Auth-Token": OTHER_TOKEN})
        job_id = result["_meta"]["toolbox/jobId"]
        assert app.job(job_id, OTHER_TOKEN).status_code == 200
        refused = app.job(job_id, TOKEN)
        assert (refused.status_code, refused.json()) == (404, {"error": "Job not found"})

    @pytest.mark.parametrize("token", ["wrong", "", f"{TOKEN},{TOKEN}"])
    def test_a_wrong_token_is_refused_not_downgraded(self, app: App, token: str) -> None:
        result = app.call("csv_profile", {"csv": SAMPLE}, None, {"X-MCP-Auth-Token": token})
        assert result["isError"] is True
        assert result["content"][0]["text"] == "Unauthorized: valid MCP access token required"


def test_no_secret_of_a_call_is_logged_or_answered(app: App) -> None:
    secret = "sentinel-secret-of-this-call"
    result = app.call("csv_profile", {"csv": "a,b\n1,2\n"}, {**HEADLESS, "authToken": secret})
    body = app.job(result["_meta"]["toolbox/jobId"])
    assert secret not in json.dumps(result)
    assert secret not in body.text
    assert secret not in app.log.read_text()
    assert Path(app.log).stat().st_size > 0
