"""Cancel, list, wait, files and keys, in the running app: over HTTP and as an agent does it."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from shared.jobs import keys
from tests.acceptance.conftest import OTHER_TOKEN, ROOT, TOKEN, App, start_app, wait_until

pytestmark = pytest.mark.acceptance

UNAUTHORIZED = b'{"error":"Unauthorized: valid MCP access token required"}'
ONE_WAY = {"executionMode": "headless", "mode": "one-way"}
TOOLS = {
    "waits": '''
import asyncio
import time

from shared.tool import Context, tool

MODES = {"execution_modes": ("inline", "headless"), "modes": ("one-way", "two-way"), "default_mode": "two-way"}


@tool(**MODES)
async def waits_async(context: Context) -> str:
    """Waits, and says nothing."""
    context.update_progress(1, "waiting")
    await asyncio.sleep(60)
    return "never"


@tool(**MODES)
def waits_loudly(context: Context) -> str:
    """Waits, and reports."""
    for number in range(6_000):
        context.update_progress(number / 100 + 1, "waiting")
        time.sleep(0.01)
    return "never"
''',
    "waits_apart": '''
import time

from shared.tool import Context, tool


@tool(execution_modes=("headless",), modes=("one-way", "two-way"), default_mode="two-way", isolation="process")
def waits_apart(context: Context) -> str:
    """Waits in a process of its own."""
    context.update_progress(1, "waiting")
    time.sleep(60)
    return "never"
''',
    "files": '''
import io
from collections.abc import Callable, Iterator

from shared.tool import Context, McpResourceLinkContent, tool


def parts() -> Iterator[bytes]:
    for number in range(4):
        yield bytes([number]) * 300_000


@tool(execution_modes=("inline", "headless"), modes=("one-way", "two-way"), default_mode="two-way")
def files(context: Context) -> McpResourceLinkContent:
    """Leaves files."""
    context.artifacts.write("page.html", "<script>alert(1)</script>")
    context.artifacts.write("parts.bin", parts())
    context.artifacts.write("stream.bin", io.BytesIO(b"stream"))
    return context.artifacts.write("report.csv", "name,age\\nänn,31\\n")
''',
}
#: No more: the host takes no fourth message while three are being handled.
WAITING = ("waits_async", "waits_loudly", "waits_apart")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("actions")
    app_dir = folder / "app"
    app_dir.mkdir()
    for name in ("function_app.py", "host.json"):
        shutil.copy(ROOT / name, app_dir / name)
    (app_dir / "shared").symlink_to(ROOT / "shared", target_is_directory=True)
    for name, code in TOOLS.items():
        (app_dir / "tools" / name).mkdir(parents=True)
        (app_dir / "tools" / name / "__init__.py").write_text(code)
    running = start_app(folder, new_storage(), app_dir=app_dir)
    yield running
    assert running.stop() == 0


def begun(app: App, name: str, token: str = TOKEN) -> str:
    """The id of a job whose tool runs."""
    accepted = app.call(name, {}, ONE_WAY, {"X-MCP-Auth-Token": token})["structuredContent"]
    job_id = str(accepted["jobId"])
    wait_until(lambda: app.job(job_id, token).json()["progress"]["message"] == "waiting")
    return job_id


def send(app: App, job_id: str, method: str = "POST", token: str | None = TOKEN) -> httpx.Response:
    headers = {} if token is None else {"X-MCP-Auth-Token": token}
    return app.http.request(method, f"/mcp/jobs/{job_id}/cancel", headers=headers)


@pytest.fixture(scope="module")
def stopped(app: App) -> dict[str, Any]:
    """What became of running jobs of every kind that were cancelled: tool -> status body."""
    jobs = {name: begun(app, name) for name in WAITING}
    for name, job_id in jobs.items():
        if name == "waits_loudly":
            told = app.call("job_cancel", {"jobId": job_id})["structuredContent"]
            assert (told["status"], told["cancelRequested"]) == ("in_progress", True)
        else:
            answer = send(app, job_id)
            assert (answer.status_code, answer.json()["cancelRequested"]) == (202, True)
    return {name: app.ended(job_id) for name, job_id in jobs.items()}


@pytest.mark.parametrize("name", WAITING)
def test_a_running_job_ends_soon_whatever_its_tool_does(stopped: dict[str, Any], name: str) -> None:
    body = stopped[name]
    assert (body["status"], body["errorCode"], body["error"]) == (
        "failed",
        "cancelled",
        "The job was cancelled.",
    )
    assert body["logs"][-1]["message"] == "The job was cancelled."


def test_a_job_that_has_ended_cannot_be_cancelled(app: App, stopped: dict[str, Any]) -> None:
    job_id = stopped["waits_async"]["jobId"]
    answer = send(app, job_id)
    assert (answer.status_code, answer.json()) == (
        409,
        {"error": "The job has ended already: it is failed.", "status": "failed"},
    )
    told = app.call("job_cancel", {"jobId": job_id})
    assert told["isError"] is True
    assert "it is failed" in told["content"][0]["text"]


def test_cancel_is_refused_like_everything_else(app: App, stopped: dict[str, Any]) -> None:
    job_id = stopped["waits_async"]["jobId"]
    for name in (job_id, keys.new_job_id(), "malformed"):
        for method in ("POST", "GET"):
            answer = send(app, name, method, None)
            assert (answer.status_code, answer.content) == (401, UNAUTHORIZED)
        answer = send(app, name, "DELETE")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        answer = send(app, name, token=OTHER_TOKEN)
        assert (answer.status_code, answer.json()) == (404, {"error": "Job not found"})


class TestRead:
    def test_a_reader_waits_for_news_and_is_told_when_there_are_none(
        self, app: App, stopped: dict[str, Any]
    ) -> None:
        job_id = begun(app, "waits_async")
        first = app.job(job_id)
        assert (first.headers["retry-after"], first.headers["cache-control"]) == ("1", "no-store")
        known = {"X-MCP-Auth-Token": TOKEN, "If-None-Match": f'"x", W/{first.headers["etag"]}'}
        again = app.http.get(f"/mcp/jobs/{job_id}?wait=0.3", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        send(app, job_id)
        news = app.http.get(f"/mcp/jobs/{job_id}/status?wait=25", headers=known)
        assert (news.status_code, news.json()["cancelRequested"]) == (200, True)
        known["If-None-Match"] = news.headers["etag"]
        end = app.http.get(f"/mcp/jobs/{job_id}/status?wait=25&logsAfter=1", headers=known)
        assert (end.status_code, end.json()["status"]) == (200, "failed")
        assert "retry-after" not in end.headers
        assert [line["seq"] for line in end.json()["logs"]] == [2]

    def test_an_agent_waits_too(self, app: App, stopped: dict[str, Any]) -> None:
        accepted = app.call("files", {}, ONE_WAY)["structuredContent"]
        body = {}
        for _ in range(10):
            body = app.call("job_status", {"jobId": accepted["jobId"], "waitMs": 5_000})["structuredContent"]
            if body["status"] == "completed":
                break
        assert body["status"] == "completed"
        assert body["content"][0]["type"] == "resource_link"

    def test_wrong_parameters_are_named(self, app: App) -> None:
        headers = {"X-MCP-Auth-Token": TOKEN}
        for path, said in (
            (
                f"/mcp/jobs/{keys.new_job_id()}?wait=30",
                "wait: must be a number of seconds from 0 to 25, not string of 2 characters",
            ),
            (f"/mcp/jobs/{keys.new_job_id()}?when=now", "unknown parameter 'when'; known are logsAfter, wait"),
            ("/mcp/jobs?limit=0", "limit: must be a whole number from 1 to 100, not string of 1 character"),
            ("/mcp/jobs?cursor=x", "cursor: must be one that an earlier page gave"),
        ):
            answer = app.http.get(path, headers=headers)
            assert (answer.status_code, answer.json()) == (400, {"error": said})


class TestList:
    def test_pages_of_ones_own_jobs(self, app: App) -> None:
        mine = [app.call("files", {}, ONE_WAY)["structuredContent"]["jobId"] for _ in range(3)]
        headers = {"X-MCP-Auth-Token": OTHER_TOKEN}
        hers = app.call("files", {}, ONE_WAY, headers)["structuredContent"]["jobId"]
        found: list[str] = []
        path = "/mcp/jobs?limit=1&tool=files"
        cursor = ""
        for _ in range(40):
            page = app.http.get(path + cursor, headers={"X-MCP-Auth-Token": TOKEN}).json()
            found += [job["jobId"] for job in page["jobs"]]
            if "cursor" not in page or set(mine) <= set(found):
                break
            cursor = f"&cursor={page['cursor']}"
        assert found[:3] == mine[::-1]
        listed = app.call("job_list", {"tool": "files"}, None, headers)["structuredContent"]["jobs"]
        assert listed[0]["jobId"] == hers
        assert not {job["jobId"] for job in listed} & set(mine)
        assert app.http.get("/mcp/jobs").content == UNAUTHORIZED
        assert app.http.delete("/mcp/jobs", headers=headers).status_code == 405


@pytest.fixture(scope="module")
def filed(app: App) -> str:
    """The id of a job that has left files."""
    result = app.call("files", {}, {"executionMode": "headless"})
    assert not result.get("isError"), result
    job_id = str(result["_meta"]["toolbox/jobId"])
    (link,) = [block for block in result["content"] if block["type"] == "resource_link"]
    assert (link["uri"], link["mimeType"]) == (f"artifact://{job_id}/report.csv", "text/csv")
    return job_id


class TestFiles:
    def get(self, app: App, job_id: str, name: str, token: str | None = TOKEN, **headers: str) -> Any:
        given = headers if token is None else {"X-MCP-Auth-Token": token, **headers}
        return app.http.get(f"/mcp/jobs/{job_id}/artifacts/{name}", headers=given)

    def test_they_are_downloads_whole_and_in_parts(self, app: App, filed: str) -> None:
        page = self.get(app, filed, "page.html")
        assert (page.status_code, page.content) == (200, b"<script>alert(1)</script>")
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["content-disposition"] == 'attachment; filename="page.html"'
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["content-security-policy"].startswith("sandbox")
        whole = self.get(app, filed, "parts.bin").content
        assert whole == b"".join(bytes([number]) * 300_000 for number in range(4))
        part = self.get(app, filed, "parts.bin", Range="bytes=299999-300000")
        assert (part.status_code, part.content) == (206, b"\0\1")
        assert part.headers["content-range"] == "bytes 299999-300000/1200000"
        assert self.get(app, filed, "parts.bin", Range="bytes=-1").content == b"\3"
        behind = self.get(app, filed, "parts.bin", Range="bytes=1200000-")
        assert (behind.status_code, behind.headers["content-range"]) == (416, "bytes */1200000")
        assert self.get(app, filed, "stream.bin").content == b"stream"
        head = app.http.head(f"/mcp/jobs/{filed}/artifacts/page.html", headers={"X-MCP-Auth-Token": TOKEN})
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", page.headers["etag"])

    def test_they_are_nobody_elses(self, app: App, filed: str) -> None:
        assert self.get(app, filed, "page.html", None).content == UNAUTHORIZED
        for name in ("page.html", "none.txt"):
            answer = self.get(app, filed, name, OTHER_TOKEN)
            assert (answer.status_code, answer.json()) == (404, {"error": "Job not found"})
        answer = self.get(app, filed, "none.txt")
        assert (answer.status_code, answer.json()) == (404, {"error": "Artifact not found"})

    def test_they_are_resources_for_their_owner(self, app: App, filed: str) -> None:
        def read(name: str, **headers: str) -> Any:
            answer = app.rpc("resources/read", headers, uri=f"artifact://{filed}/{name}")
            return answer.get("error") or answer["result"]["contents"]

        (text,) = read("report.csv")
        assert (text["text"], text["mimeType"]) == ("name,age\nänn,31\n", "text/csv")
        assert text["uri"] == f"artifact://{filed}/report.csv"
        (blob,) = read("stream.bin")
        assert base64.b64decode(blob["blob"]) == b"stream"
        for stranger in ({"X-MCP-Auth-Token": OTHER_TOKEN}, {"X-MCP-Auth-Token": "wrong"}):
            assert "could not be read" not in str(read("report.csv", **stranger))
            assert read("report.csv", **stranger)["code"] == -32603
        assert read("none.txt")["code"] == -32603
        templates = app.rpc("resources/templates/list")["result"]["resourceTemplates"]
        assert "artifact://{jobId}/{name}" in [entry["uriTemplate"] for entry in templates]

    def test_an_inline_calls_files_are_its_owners_too(self, app: App) -> None:
        result = app.call("files", {}, {"executionMode": "inline"})
        assert "isError" not in result
        link = next(block for block in result["content"] if block["type"] == "resource_link")
        job_id, name = link["uri"].removeprefix("artifact://").split("/")
        assert app.job(job_id, path=f"/artifacts/{name}").status_code == 200
        assert app.job(job_id, OTHER_TOKEN, f"/artifacts/{name}").status_code == 404


def test_a_call_that_is_sent_again_gets_the_same_job(app: App) -> None:
    envelope = {**ONE_WAY, "idempotencyKey": "acceptance"}
    jobs = {app.call("files", {}, envelope)["structuredContent"]["jobId"] for _ in range(3)}
    assert len(jobs) == 1
    (job_id,) = jobs
    app.ended(job_id)
    again = app.call("files", {}, {"executionMode": "headless", "idempotencyKey": "acceptance"})
    assert again["_meta"]["toolbox/jobId"] == job_id
    assert again["content"][0]["type"] == "resource_link"
    other = app.call("files", {}, envelope, {"X-MCP-Auth-Token": OTHER_TOKEN})["structuredContent"]["jobId"]
    assert other != job_id
    refused = app.call("files", {}, {"executionMode": "inline", "idempotencyKey": "acceptance"})
    assert "__pptb.idempotencyKey" in refused["content"][0]["text"]
