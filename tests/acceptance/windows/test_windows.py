"""An MCP client calls a tool windowed; somebody opens the window over HTTP, as a browser would, and answers."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.acceptance.conftest import OTHER_TOKEN, TOKEN
from tests.acceptance.windows.conftest import SESSION, Windows

pytestmark = pytest.mark.acceptance

ONE_WAY = {"executionMode": "windowed", "mode": "one-way"}
QUESTION = {"question": "Why?"}


def launched(windows: Windows, name: str = "form", arguments: Any = None, **envelope: Any) -> tuple[str, Any]:
    """(the job, what its session is told) of a one-way call."""
    answer = windows.app.call(name, arguments or QUESTION, {**ONE_WAY, **envelope})
    assert "isError" not in answer, answer
    return windows.open(answer["structuredContent"]["window"]["url"])


def test_a_two_way_call_returns_what_a_person_gave(windows: Windows) -> None:
    with ThreadPoolExecutor() as pool:
        call = windows.begin(pool, "form", QUESTION)
        job_id = windows.waiting("form")
        assert windows.app.job(job_id).json()["window"]["state"] == "waiting"
        told = windows.open_as_owner(job_id)
        assert told["context"]["question"] == "Why?"
        assert told["context"]["__pptb"]["expectsResponse"] is True
        assert windows.app.job(job_id).json()["window"]["state"] == "open"
        wrong = windows.gives(told["session"], job_id, {"answer": "x"})
        assert wrong.status_code == 422
        assert "$.answer" in wrong.json()["error"]
        assert windows.gives(told["session"], job_id, {"answer": "because"}).status_code == 200
        answer = call.result()
    assert answer["structuredContent"] == {"answer": "because"}
    assert json.loads(answer["content"][0]["text"]) == {"answer": "because"}
    assert answer["_meta"]["toolbox/jobId"] == job_id
    late = windows.gives(told["session"], job_id, {"answer": "another"})
    assert (late.status_code, late.json()["status"]) == (409, "completed")
    body = windows.app.job(job_id).json()
    assert (body["result"], body["window"]) == ({"answer": "because"}, {"state": "done"})
    assert [line["message"] for line in body["logs"]] == [
        "the window was opened by its owner",
        "a person has given the result",
    ]


def test_closing_without_data_is_no_error(windows: Windows) -> None:
    with ThreadPoolExecutor() as pool:
        call = windows.begin(pool, "other", QUESTION)
        job_id = windows.waiting("other")
        session = windows.open_as_owner(job_id)["session"]
        assert windows.post(job_id, "close", {}, **{SESSION: session}).json()["window"] == "closed"
        answer = call.result()
    assert "isError" not in answer
    assert answer["structuredContent"] == {
        "status": "no_result",
        "executionMode": "windowed",
        "correlationId": f"mcp-{job_id}",
        "message": "User did not complete the action — the tool window was closed without returning data.",
    }
    listed = windows.app.http.get("/mcp/invocations", headers={"X-MCP-Auth-Token": TOKEN}).json()["invocations"]
    (entry,) = [one for one in listed if one.get("jobId") == job_id]
    assert (entry["status"], entry["outcome"], entry["window"]) == (
        "completed",
        "no-result",
        {"state": "closed"},
    )


def test_the_deadline_ends_it_and_nothing_is_taken_after_that(windows: Windows) -> None:
    with ThreadPoolExecutor() as pool:
        call = windows.begin(pool, "form", QUESTION, timeoutMs=1_500)
        job_id = windows.waiting("form")
        session = windows.open_as_owner(job_id)["session"]
        answer = call.result()
    assert answer["isError"] is True
    text = "Failed to launch tool: Timed out waiting for 'form' to return data after 1500 ms"
    assert answer["content"][0]["text"] == f"{text} (job {job_id})"
    assert answer["_meta"]["toolbox/errorCode"] == "timeout"
    late = windows.gives(session, job_id, {"answer": "late"})
    assert (late.status_code, late.json()["status"]) == (409, "failed")
    body = windows.app.job(job_id).json()
    assert (body["status"], body["errorCode"], body["error"]) == ("failed", "timeout", text)


def test_a_link_works_once(windows: Windows) -> None:
    answer = windows.app.call("form", QUESTION, ONE_WAY)
    url = answer["structuredContent"]["window"]["url"]
    assert re.fullmatch(rf"http://127\.0\.0\.1:{windows.app.port}/#window=[0-9a-f-]{{36}}\.[\w-]{{43}}", url)
    # What previews links gets the app's page, and uses nothing up: the fragment never leaves the browser.
    assert windows.app.http.get(url).status_code == 200
    job_id, told = windows.open(url)
    ticket = url.rpartition(".")[2]
    again = windows.post(job_id, "session", {"ticket": ticket})
    assert again.status_code == 401
    assert "used already" in again.json()["error"]
    assert windows.gives(told["session"], job_id, {"answer": "once"}).status_code == 200
    assert windows.app.ended(job_id)["result"] == {"answer": "once"}


def test_an_expired_link_opens_nothing(windows: Windows) -> None:
    answer = windows.app.call("form", QUESTION, {**ONE_WAY, "timeoutMs": 1})
    job_id, _, ticket = answer["structuredContent"]["window"]["url"].partition("#window=")[2].partition(".")
    assert windows.post(job_id, "session", {"ticket": ticket}).status_code == 401
    assert windows.app.ended(job_id)["errorCode"] == "timeout"


def test_two_windows_at_once_do_not_mix(windows: Windows) -> None:
    with ThreadPoolExecutor() as pool:
        calls, jobs = {}, {}
        for name in ("form", "other"):
            calls[name] = windows.begin(pool, name, {"question": name})
            jobs[name] = windows.waiting(name)
        told = {name: windows.open_as_owner(job_id) for name, job_id in jobs.items()}
        assert {name: one["context"]["question"] for name, one in told.items()} == {
            name: name for name in calls
        }
        crossed = windows.gives(told["form"]["session"], jobs["other"], {"answer": "crossed"})
        assert crossed.status_code == 401
        for name in ("other", "form"):
            windows.gives(told[name]["session"], jobs[name], {"answer": f"of {name}"})
        answers = {name: call.result()["structuredContent"] for name, call in calls.items()}
    assert answers == {"form": {"answer": "of form"}, "other": {"answer": "of other"}}


def test_another_owner_finds_nothing(windows: Windows) -> None:
    job_id, told = launched(windows)
    headers = {"X-MCP-Auth-Token": OTHER_TOKEN}
    assert windows.post(job_id, "session", {}, **headers).status_code == 404
    assert windows.post(job_id, "session", {}).status_code == 401
    for what, body in (("return", {"data": {"answer": "xx"}}), ("close", {}), ("call", {})):
        assert windows.post(job_id, what, body, **headers).status_code == 401
    assert windows.app.job(job_id).json()["status"] == "pending"
    assert windows.gives(told["session"], job_id, {"answer": "mine"}).status_code == 200


def test_cancelling_closes_the_window(windows: Windows) -> None:
    job_id, told = launched(windows)
    cancelled = windows.app.http.post(f"/mcp/jobs/{job_id}/cancel", headers={"X-MCP-Auth-Token": TOKEN})
    assert cancelled.json()["window"] == {"state": "closed"}
    assert windows.gives(told["session"], job_id, {"answer": "late"}).status_code == 409


def test_the_page_and_its_files_are_served_sandboxed(windows: Windows) -> None:
    job_id, told = launched(windows)
    page = told["page"]
    assert told["session"] not in page
    folder = page.rpartition("/")[0]
    index = windows.app.http.get(page)
    assert index.status_code == 200
    assert f'src="{folder}/_toolbox/bridge.js"' in index.text
    for name in ("index.html", "form.js", "form.css", "_toolbox/bridge.js"):
        # An origin that is none asks so, for modules and fonts.
        found = windows.app.http.get(f"{folder}/{name}", headers={"Origin": "null"})
        assert found.status_code == 200, name
        policy = found.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox allow-scripts; default-src 'none'; script-src 'self'")
        for part in ("connect-src 'none'", "form-action 'none'", "frame-ancestors 'self'"):
            assert part in policy
        assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert windows.app.http.get(page.replace("index.html", "")).status_code in (200, 404)
    for name in (
        "../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "%2e%2e%2fsecret.txt", "..%5csecret.txt",
        "../pptb.config.json", "form.js%00.txt", "%252e%252e/secret.txt",
    ):  # fmt: skip
        found = windows.app.http.get(f"{folder}/{name}")
        assert found.status_code in (400, 401, 404), name
        assert "not below ui" not in found.text
        assert "invocation" not in found.text
    wrong = windows.app.http.get(f"/mcp/windows/{job_id}/page/{'0' * 32}/index.html")
    assert wrong.status_code == 401


def test_the_picker_asks_dataverse_under_the_calls_connection(windows: Windows) -> None:
    """What its page does, call by call."""
    job_id, told = launched(windows, "entity-picker", {"entityName": "account"}, connectionName="dev")
    session = told["session"]
    assert [one["name"] for one in told["connections"]] == ["Dev"]

    def asks(method: str, *args: Any) -> Any:
        found = windows.calls(session, job_id, "dataverseAPI", method, *args)
        assert found.status_code == 200, found.text
        return found.json()["value"]

    columns = ["PrimaryIdAttribute", "PrimaryNameAttribute", "DisplayName"]
    about = asks("getEntityMetadata", "account", True, columns)
    assert about["PrimaryNameAttribute"] == "name"
    entity_set = asks("getEntitySetName", "account")
    rows = asks("queryData", f"{entity_set}?$select=accountid,name&$orderby=name,accountid&$top=3")["value"]
    assert [row["name"] for row in rows] == ["Account 00001", "Account 00002", "Account 00003"]
    for method in ("update", "delete", "executeBatch"):
        assert windows.calls(session, job_id, "dataverseAPI", method, "account", "x").status_code == 403
    broken = windows.calls(session, job_id, "dataverseAPI", "queryData", "accounts?$select=nothing")
    assert broken.status_code == 422
    picked = {"selectedId": rows[1]["accountid"], "selectedName": rows[1]["name"]}
    assert windows.gives(session, job_id, picked).status_code == 200
    assert windows.app.ended(job_id)["result"] == picked


def test_a_method_that_the_contract_names_may_write(windows: Windows) -> None:
    job_id, told = launched(windows, connectionName="dev")
    made = windows.calls(told["session"], job_id, "dataverseAPI", "create", "account", {"name": "Of a window"})
    assert made.status_code == 200, made.text
    found = windows.calls(
        told["session"], job_id, "dataverseAPI", "queryData", "accounts?$filter=name eq 'Of a window'"
    )
    assert len(found.json()["value"]["value"]) == 1


def test_both_modes_are_offered_and_every_answer_is_in_the_schema(windows: Windows) -> None:
    tools = {tool["name"]: tool for tool in windows.app.rpc("tools/list")["result"]["tools"]}
    modes = tools["entity-picker"]["inputSchema"]["properties"]["__pptb"]["properties"]["executionMode"]
    assert modes["enum"] == ["headless", "windowed"]
    assert "a person" in modes["description"]
    form = tools["form"]["outputSchema"]
    assert form["type"] == "object"
    assert [part.get("properties", {}).get("status") for part in form["anyOf"]] == [
        None,
        {"const": "accepted"},
        {"const": "no_result"},
    ]


def test_no_secret_of_a_window_is_in_the_log(windows: Windows) -> None:
    answer = windows.app.call("form", QUESTION, {**ONE_WAY, "authToken": "sentinel-of-a-token"})
    accepted = answer["structuredContent"]
    assert accepted["hasAuthToken"] is False
    assert "The authToken was not used" in accepted["message"]
    url = accepted["window"]["url"]
    job_id, told = windows.open(url)
    windows.app.http.get(told["page"])
    windows.calls(told["session"], job_id, "dataverseAPI", "queryData", "accounts")
    windows.gives(told["session"], job_id, {"answer": "yes"})
    windows.app.ended(job_id)
    log = windows.app.log.read_text()
    for secret in (url.rpartition(".")[2], told["session"], "sentinel-of-a-token"):
        assert secret not in log
        assert secret not in json.dumps(windows.app.job(job_id).json())
