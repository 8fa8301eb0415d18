"""What the page calls, in the running app: its files, lists of invocations and tools, calls of tools."""

from __future__ import annotations

import itertools
import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import httpx
import pytest

from infra.local.azurite import Azurite
from shared import ids
from shared.invocations.record import TABLE, Line
from shared.invocations.record import entities as entities_of
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from shared.tool.spec import ExecutionMode, Mode
from shared.web.answers import SECURITY_HEADERS
from shared.web.page import PAGE_HEADERS, PAGE_POLICY
from tests.acceptance.conftest import OTHER_TOKEN, TOKEN, App, start_app, wait_until
from tests.support.fault_proxy import FaultProxy
from tests.unit.invocations.test_log import a_record

pytestmark = pytest.mark.acceptance

CSV = {"csv": "a,b\n1,2\n"}


def ask(app: App, path: str, token: str | None = TOKEN, method: str = "GET", **options: Any) -> httpx.Response:
    headers = {} if token is None else {"X-MCP-Auth-Token": token}
    return app.http.request(method, path, headers={**headers, **options.pop("headers", {})}, **options)


def entries(app: App, token: str = TOKEN, **params: str) -> list[dict[str, Any]]:
    answer = ask(app, "/mcp/invocations", token, params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["invocations"]
    return found


class TestPage:
    def test_it_is_at_the_root_and_needs_no_token(self, app: App) -> None:
        answer = app.http.get("/")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "<title>" in answer.text
        assert answer.headers["content-security-policy"] == PAGE_POLICY
        again = app.http.get("/", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert app.http.head("/").status_code == 200
        assert app.http.post("/").status_code == 405

    def test_its_files_are_served_and_no_others(self, app: App) -> None:
        files = re.findall(r"\"/?(assets/[^\"]+)\"", app.http.get("/").text)
        assert files
        for path in [*files, "favicon.ico"]:
            answer = app.http.get(f"/{path}")
            assert answer.status_code == 200, path
            assert answer.headers["content-type"].split(";")[0] in (
                "image/svg+xml", "image/png", "text/css", "text/javascript",
            )  # fmt: skip
        for name in ("x.js", "..%2fpage.py", "%2e%2e%2fpage.py", "page.py", "..%5cpage.py", "..", ".", "%00"):
            answer = app.http.get(f"/assets/{name}")
            assert answer.status_code in (200, 404), name
            assert b"StaticFiles" not in answer.content
        for path in ("/page", "/index.html", "/assets", "/assets/sub/app.js", "/assets/../shared/web/page.py"):
            assert app.http.get(path).status_code == 404, path


class TestInvocations:
    def test_every_kind_of_call_shows_up_newest_first(self, app: App) -> None:
        app.call("csv_profile", CSV)
        app.call("csv_profile", {"csv": 5})
        app.call("csv_profile", CSV, {"executionMode": "headless"}, {"X-MCP-Auth-Token": OTHER_TOKEN})
        accepted = app.call("csv_profile", CSV, {"executionMode": "headless"})
        job_id = accepted["_meta"]["toolbox/jobId"]

        def found() -> Any:
            listed = entries(app, limit="3")
            return (
                listed
                if [entry["status"] for entry in listed] == ["completed", "rejected", "completed"]
                else None
            )

        job, refused, inline = wait_until(found)
        assert (job["jobId"], job["executionMode"], job["progress"]["percent"]) == (job_id, "headless", 100)
        assert (refused["errorCode"], "jobId" in refused) == ("invalid_input", False)
        assert (inline["executionMode"], inline["toolName"], inline["owner"]) == (
            "inline",
            "csv_profile",
            "default",
        )
        assert job["id"] > refused["id"] > inline["id"]
        assert inline["durationMs"] >= 0
        (hers, *_) = entries(app, OTHER_TOKEN)
        assert (hers["owner"], hers["jobId"] == job_id) == ("ana", False)

    def test_a_refused_token_is_the_operators_business(self, app: App) -> None:
        app.call("csv_profile", CSV, headers={"X-MCP-Auth-Token": "wrong-token"})

        def found() -> Any:
            return [entry for entry in entries(app, status="rejected") if "owner" not in entry]

        (entry, *_) = wait_until(found)
        assert entry["errorCode"] == "unauthorized"
        assert "inputSummary" not in entry
        assert all("owner" in entry for entry in entries(app, OTHER_TOKEN))

    def test_polling_costs_no_body_while_nothing_happens(self, app: App) -> None:
        def quiet() -> Any:
            tag = ask(app, "/mcp/invocations").headers["etag"]
            answer = ask(app, "/mcp/invocations", headers={"If-None-Match": tag})
            return answer if answer.status_code == 304 else None

        answer = wait_until(quiet)
        assert answer.content == b""
        app.call("csv_profile", CSV)
        tag = answer.headers["etag"]
        wait_until(lambda: ask(app, "/mcp/invocations", headers={"If-None-Match": tag}).status_code == 200)


class TestOneInvocation:
    def test_calls_of_every_kind_are_found_by_their_ids(self, app: App) -> None:
        app.call("csv_profile", CSV)
        app.call("csv_profile", {"csv": 5})
        accepted = app.call("csv_profile", CSV, {"executionMode": "headless"})
        job_id = accepted["_meta"]["toolbox/jobId"]
        app.call("csv_profile", CSV, {"executionMode": "inline"}, {"X-MCP-Auth-Token": OTHER_TOKEN})

        def stored() -> Any:
            mine, hers = entries(app, limit="3"), entries(app, OTHER_TOKEN, limit="1")
            kinds = [entry["status"] for entry in mine] == ["completed", "rejected", "completed"]
            return (mine, hers[0]) if kinds and mine[0]["id"] == job_id and hers else None

        mine, hers = wait_until(stored)
        for entry in mine:
            answer = ask(app, f"/mcp/invocations/{entry['id']}")
            assert (answer.status_code, answer.json()) == (200, entry)
            again = ask(
                app, f"/mcp/invocations/{entry['id']}", headers={"If-None-Match": answer.headers["etag"]}
            )
            assert (again.status_code, again.content) == (304, b"")
        assert ask(app, f"/mcp/invocations/{hers['id']}", OTHER_TOKEN).json() == hers
        unknown = [ids.new_id(), hers["id"], "x", "01A229B6-94EC-75FD-A4A6-1BECEA00C572"]
        answers = [ask(app, f"/mcp/invocations/{name}") for name in unknown]
        assert {(answer.status_code, answer.content) for answer in answers} == {
            (404, b'{"error":"Invocation not found"}')
        }

    def test_a_stranger_learns_nothing_and_other_verbs_are_refused(self, app: App) -> None:
        job_id = app.call("csv_profile", CSV, {"executionMode": "headless"})["_meta"]["toolbox/jobId"]
        for name in (job_id, ids.new_id(), "x"):
            for token in (None, "wrong"):
                for method in ("GET", "DELETE"):
                    answer = ask(app, f"/mcp/invocations/{name}", token, method)
                    assert (answer.status_code, answer.content) == (
                        401,
                        b'{"error":"Unauthorized: valid MCP access token required"}',
                    )
            refused = ask(app, f"/mcp/invocations/{name}", TOKEN, "DELETE")
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET")


class TestTools:
    def test_the_list_says_what_mcp_says(self, app: App) -> None:
        answer = ask(app, "/mcp/tools")
        listed = {entry["name"]: entry for entry in answer.json()["tools"]}
        published = {entry["name"]: entry for entry in app.rpc("tools/list")["result"]["tools"]}
        assert listed.keys() == published.keys()
        for name, entry in published.items():
            assert listed[name]["inputSchema"] == entry["inputSchema"]
            assert listed[name].get("outputSchema") == entry.get("outputSchema")
        assert listed["csv_profile"]["folder"] == "csv_profile"
        assert isinstance(answer.json()["faults"], list)

    @pytest.mark.parametrize("name", ["csv_profile", "CSV_Profile"])
    def test_a_call_answers_as_over_mcp(self, app: App, name: str) -> None:
        over_mcp = app.call("csv_profile", CSV)
        answer = ask(app, f"/mcp/tools/{name}", method="POST", json=CSV)
        assert answer.status_code == 200
        body = answer.json()
        assert body["isError"] is False
        assert body["structuredContent"] == over_mcp["structuredContent"]
        assert body["content"] == over_mcp["content"]

    def test_a_headless_call_makes_the_owners_job(self, app: App) -> None:
        envelope = {"__pptb": {"executionMode": "headless", "mode": "one-way"}}
        answer = ask(app, "/mcp/tools/csv_profile", OTHER_TOKEN, "POST", json={**CSV, **envelope})
        job_id = answer.json()["structuredContent"]["jobId"]
        assert app.ended(job_id, OTHER_TOKEN)["status"] == "completed"
        assert app.job(job_id).status_code == 404
        assert entries(app, OTHER_TOKEN)[0]["jobId"] == job_id

    def test_what_cannot_be_called_is_told(self, app: App) -> None:
        assert ask(app, "/mcp/tools/nothing", method="POST", json={}).status_code == 404
        assert ask(app, "/mcp/tools/csv_profile", method="POST", json=[]).status_code == 400
        assert ask(app, "/mcp/tools/csv_profile", method="POST", data={"csv": "a"}).status_code == 415
        assert ask(app, "/mcp/tools/csv_profile", None, "POST", json=CSV).status_code == 401


def test_every_answer_of_every_route_has_the_security_headers(app: App) -> None:
    functions = app.http.get("/admin/functions").json()
    triggers = [
        binding
        for function in functions
        for binding in function["config"]["bindings"]
        if binding["type"] == "httpTrigger"
    ]
    assert len(triggers) >= 13
    assert {"healthz", "mcp/health"} <= {trigger["route"] for trigger in triggers}
    for trigger in triggers:
        assert trigger["authLevel"].lower() == "anonymous"
        assert not trigger.get("methods"), f"{trigger['route']}: 405 must be ours"
        path = "/" + re.sub(
            r"\{ignored[^}]*\}", "", re.sub(r"\{(?!ignored)[^}]*\}", ids.new_id(), trigger["route"])
        )
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
            for token in (TOKEN, "wrong", None):
                answer = ask(app, path, token, method)
                # What other tests left in the shared storage may make the app's health 503.
                assert answer.status_code < 500 or path == "/mcp/health", (method, path, answer.text)
                for name, value in SECURITY_HEADERS.items():
                    told = answer.headers.get(name)
                    if name == "Content-Security-Policy" and "/page/" in path:
                        # Of a tool's page: an opaque origin, also for what says that there is none.
                        assert told == f"sandbox; {value}", (method, path, told)
                    else:
                        assert told in (value, PAGE_HEADERS[name]), (method, path, name, told)
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert "access-control-allow-origin" not in answer.headers
                assert "set-cookie" not in answer.headers


def calls_of_a_day(storage: Storage, count: int) -> tuple[list[str], set[str]]:
    """Stores calls as a day with one every 17 s leaves them, each in a row of its own.

    (the ids of all, newest first; those of jobs)

    Every fiftieth is a job.
    """
    now = time.time_ns() // 1_000_000
    records = [
        a_record(
            id=ids.new_id(now - number * 17_000),
            owner="default",
            tool_name="csv_profile",
            execution_mode="inline",
            mode="two-way",
            prefill_summary=json.dumps({"csv": "x" * 150}),
        )
        for number in range(count)
    ]
    storage.table(TABLE).create_table()
    rows = [row for record in records for row in entities_of([Line(record.id, record.line())])]
    for _, together in itertools.groupby(rows, key=lambda row: row["PartitionKey"]):
        storage.table(TABLE).submit_transaction([("create", row) for row in together])
    jobs = [ids.new_id(now - number * 17_000 - 1) for number in range(0, count, 50)]
    for job_id in jobs:
        job = Job(
            job_id=job_id,
            owner="default",
            tool_id="t",
            tool_name="t",
            mode=Mode.ONE_WAY,
            execution_mode=ExecutionMode.HEADLESS,
            correlation_id=ids.correlation_id(job_id),
            timeout_ms=1_000,
            max_attempts=1,
            created_at=utc_now(),
            status=Status.COMPLETED,
            input_at="",
        )
        TableJobStore(storage).create(job, b"")
    return sorted([*(record.id for record in records), *jobs], reverse=True), set(jobs)


def test_five_thousand_calls_are_listed_at_once_with_one_query_to_each_table(tmp_path: Path) -> None:
    with Azurite.start(tmp_path / "storage", free_ports=True) as azurite, FaultProxy(azurite.ports) as proxy:
        wanted, jobs = calls_of_a_day(Storage(azurite.connection_string), 5_000)
        running = start_app(tmp_path, proxy.connection_string, "--no-triggers", "queue,timer")

        def page(**params: str) -> Any:
            """One page, which must take one query of each table."""
            proxy.forget()
            answer = ask(running, "/mcp/invocations", params={"limit": "100", **params})
            tables = sorted(request.target.split("()")[0].rpartition("/")[2] for request in proxy.seen())
            assert tables == ["invocations", "jobs"]
            return answer.json()

        try:
            entries(running, limit="1")  # the SDK is loaded now
            times = []
            for _ in range(3):
                started = time.perf_counter()
                first = page()
                times.append(time.perf_counter() - started)
            assert min(times) < 1, times
            second = page(cursor=first["cursor"])
            third = page(cursor=second["cursor"])
            found = [entry["id"] for part in (first, second, third) for entry in part["invocations"]]
            assert found == wanted[:300]
            # One call of long ago costs no more than one of now.
            for call in (wanted[0], wanted[-1], next(one for one in reversed(wanted) if one in jobs)):
                proxy.forget()
                answer = ask(running, f"/mcp/invocations/{call}")
                assert (answer.status_code, answer.json()["id"]) == (200, call)
                assert sum("invocations" in request.target for request in proxy.seen()) <= 2
                assert sum("jobs" in request.target for request in proxy.seen()) == 1
            # Windows that wait, which the page asks for all the time: storage looks at no jobs of long ago.
            proxy.forget()
            assert entries(running, executionMode="windowed", status="pending") == []
            (asked,) = proxy.seen()
            end = re.search(r"PartitionKey lt '([0-9a-f]+)'", unquote_plus(asked.target))
            assert end is not None, asked.target
            assert ids.inverted(wanted[0]) < end[1] < ids.inverted(wanted[-1])
        finally:
            running.stop()
