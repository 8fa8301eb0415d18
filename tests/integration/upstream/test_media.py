"""Media of upstream results on a real storage account: stored by an inline call and by a job, owned, purged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import azure.functions as func
import pytest
from azure.core.exceptions import ServiceRequestError

from shared import settings as app_settings
from shared.builtin.artifact_files import artifact_files
from shared.errors import JobNotFoundError
from shared.invoke import Invoker
from shared.jobs import keys, model
from shared.jobs.reaper import Reaper
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool import Context, tool
from shared.tool.call import caller
from shared.tool.decorator import declared
from shared.tool.handler import Handler
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject, ToolSpec
from shared.upstream.content import read_result, to_tool_result
from shared.web.jobs import JobsApi
from tests.unit.jobs.bench import SEALER
from tests.unit.upstream.content.support import PNG, Settings, b64, facts, sent

pytestmark = pytest.mark.integration

DEFAULT, ANA = "token-of-default", "token-of-ana"
KEEP = timedelta(days=7)
MODES: Any = {
    "modes": ("one-way", "two-way"),
    "default_mode": "two-way",
    "execution_modes": ("inline", "headless"),
}
SETTINGS = app_settings.load(
    {
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": DEFAULT,
        "MCP_AUTH_TOKENS": json.dumps({"ana": ANA}),
    }
)
LARGE = PNG + bytes(range(256)) * 8


class Entry:
    """A published upstream tool whose server answers with `wire`."""

    def __init__(self) -> None:
        plain = declared(tool(name="shots", description="Takes pictures.", **MODES)(lambda: None))
        assert plain is not None
        self.spec: ToolSpec = replace(plain.spec, result_schema=None)
        self.wire: JsonObject = {}

    def load(self) -> Handler:
        return Handler(self.spec, self._run, is_async=True, needs_context=True, to_result=lambda value: value)

    async def _run(self, _: JsonObject, context: Context | None) -> ToolResult:
        result = await read_result(self.wire, server="camera", tool="shots", duration_ms=3, request_id=1)
        return await to_tool_result(result, context, Settings())


class App:
    """The parts of the app that such a call goes through, on a storage account."""

    def __init__(self, connection: str) -> None:
        self.storage = Storage(connection)
        self.store = TableJobStore(self.storage)
        self.entry = Entry()
        self.invoker = Invoker(SETTINGS, SEALER, lambda: self.store)
        self.worker = Worker({"shots": self.entry}, self.store, SEALER, SETTINGS)
        self.web = JobsApi(SETTINGS, SEALER, lambda: self.store)
        self.requests: list[str] = []
        session = self.storage._transport.session
        assert session is not None
        send = session.request

        def request(*args: Any, **kwargs: Any) -> Any:
            self.requests.append(" ".join(str(arg) for arg in args[:2]))
            return send(*args, **kwargs)

        session.request = request

    def call(self, *content: JsonObject, **options: Any) -> ToolResult:
        """The answer to an MCP call of owner `ana`."""
        self.entry.wire = {"content": list(content)}
        headers = {"X-MCP-Auth-Token": ANA}
        payload = {
            "name": "shots",
            "arguments": {"__pptb": options},
            "transport": {"name": "http-streamable", "properties": {"headers": headers}},
        }
        answer = asyncio.run(self.invoker.answer(self.entry, json.dumps(payload)))
        sent(answer)
        return answer

    def get(self, function: str, path: str, token: str = ANA) -> func.HttpResponse:
        parts = path.strip("/").split("/")
        request = func.HttpRequest(
            method="GET",
            url=f"http://localhost{path}",
            headers={"X-MCP-Auth-Token": token},
            route_params={"jobId": parts[2], "name": parts[-1]},
            body=b"",
        )
        answer: func.HttpResponse = asyncio.run(getattr(self.web, function)(request))
        return answer

    def reap(self, after: timedelta) -> None:
        then = model.utc_now() + after
        upkeep = Reaper(self.store, retention=KEEP, budget=1_000, on_poison=print, clock=lambda: then)
        upkeep.run()


@pytest.fixture(scope="module")
def connection(new_storage: Callable[[], str]) -> str:
    """Of an account of this module alone: its tests purge all that is stored."""
    return new_storage()


@pytest.fixture
def app(connection: str) -> App:
    return App(connection)


def image(data: bytes) -> JsonObject:
    return {"type": "image", "data": b64(data), "mimeType": "image/png"}


def test_a_text_costs_no_request(app: App) -> None:
    answer = app.call({"type": "text", "text": "a"})
    assert answer.text == "a"
    assert app.requests == []


def test_an_inline_calls_images_are_its_owners_until_retention_removes_them(app: App) -> None:
    answer = app.call({"type": "text", "text": "two shots"}, image(PNG), image(LARGE))
    assert not answer.is_error
    text, small, link = answer.content
    assert (text["text"], small) == ("two shots", image(PNG))
    assert link["type"] == "resource_link"
    paths = facts(answer)["media_paths"]
    for path, data in zip(paths, (PNG, LARGE), strict=True):
        found = app.get("artifact", path)
        assert (found.status_code, found.get_body(), found.mimetype) == (200, data, "image/png")
        assert app.get("artifact", path, DEFAULT).status_code == 404
        assert app.get("artifact", path, "wrong").status_code == 401
    job_id = link["uri"].split("/")[2]
    assert paths[1] == f"/mcp/jobs/{job_id}/artifacts/{link['name']}"
    status = json.loads(app.get("status", f"/mcp/jobs/{job_id}").get_body())
    assert (status["status"], status["executionMode"], status["toolName"]) == ("completed", "inline", "shots")
    assert app.get("status", f"/mcp/jobs/{job_id}", DEFAULT).status_code == 404

    app.reap(KEEP - timedelta(hours=1))
    assert app.get("artifact", paths[0]).status_code == 200
    app.reap(KEEP + timedelta(hours=1))
    assert app.get("artifact", paths[0]).status_code == 404
    assert app.store.get(job_id) is None
    assert list(app.storage.container("jobs").list_blob_names(name_starts_with=keys.blob_prefix(job_id))) == []


def test_the_resource_template_reads_them_too(app: App) -> None:
    (link,) = app.call(image(LARGE)).content
    template = artifact_files(lambda: app.store)
    job_id, name = link["uri"].removeprefix("artifact://").split("/")

    async def read(owner: str) -> Any:
        caller.set(owner)
        return await template(job_id, name)

    assert asyncio.run(read("ana")).blob == b64(LARGE)
    with pytest.raises(JobNotFoundError):
        asyncio.run(read("default"))


def test_a_small_image_takes_two_requests(app: App) -> None:
    app.call(image(PNG))  # makes the table and the container, if it is the first
    app.requests.clear()
    app.call(image(PNG))
    assert [request.split()[0] for request in app.requests] == ["POST", "PUT"]


def test_a_job_stores_them_under_itself(app: App) -> None:
    accepted = app.call(image(PNG), image(LARGE), mode="one-way", executionMode="headless")
    assert accepted.structured is not None
    job_id = accepted.structured["jobId"]
    asyncio.run(app.worker.handle(json.dumps({"jobId": job_id})))
    status = json.loads(app.get("status", f"/mcp/jobs/{job_id}").get_body())
    assert status["status"] == "completed", status
    small, link = status["content"]
    assert small == image(PNG)
    assert link["uri"] == f"artifact://{job_id}/{link['name']}"
    assert app.get("artifact", f"/mcp/jobs/{job_id}/artifacts/{link['name']}").get_body() == LARGE


def test_storage_that_cannot_be_reached_costs_the_large_image_only(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Storage("UseDevelopmentStorage=true")
    monkeypatch.setattr(gone, "table", unreachable)
    monkeypatch.setattr(app, "store", TableJobStore(gone))
    answer = app.call({"type": "text", "text": "a"}, image(PNG), image(LARGE))
    assert not answer.is_error
    assert [block["type"] for block in answer.content] == ["text", "image", "text"]
    assert "could not be stored: storage failed (ServiceRequestError)" in answer.content[2]["text"]


def unreachable(*_: Any) -> Any:
    raise ServiceRequestError("no such host: secret.example")
