"""Windows of a contract tool over HTTP, called directly, on a store in memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import azure.functions as func

from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.tool import ContractTool, check_contract
from shared.invoke import Invoker
from shared.jobs import keys
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject
from shared.web.windows import SESSION_HEADER, WindowsApi

SEALER = Sealer((bytes(range(32)),))
TOKEN, OTHER = "token-of-default", "token-of-ana"
CONFIG: JsonObject = {
    "invocation": {
        "version": "1.0.0",
        "prefill": {"properties": {"question": {"type": "string"}}},
        "returnTopic": {"properties": {"answer": {"type": "integer", "minimum": 1}}, "required": ["answer"]},
    },
    "agents": {
        "version": "1.0.0",
        "invokable": True,
        "modes": ["two-way", "one-way"],
        "window": {"apiMethods": ["dataverseAPI.create"], "timeoutMS": 60_000},
    },
}
INDEX = "<!doctype html><html><head><title>T</title></head><body><script>let a = 1;</script></body></html>"


class Site:
    """The app's windows. `connections`: saved ones by name, which sign in by nothing."""

    def __init__(self, folder: Path, config: JsonObject = CONFIG, **environ: str) -> None:
        self.folder = folder / "asker"
        (self.folder / "ui").mkdir(parents=True)
        (self.folder / "pptb.config.json").write_text(json.dumps(config))
        (self.folder / "package.json").write_text(json.dumps({"displayName": "Asker", "description": "Asks."}))
        (self.folder / "ui" / "index.html").write_text(INDEX)
        checked = check_contract(self.folder)
        assert checked.errors == []
        assert checked.tool is not None
        self.tool: ContractTool = checked.tool
        self.settings = app_settings.load(
            {
                "AzureWebJobsStorage": "UseDevelopmentStorage=true",
                "MCP_AUTH_TOKEN": TOKEN,
                "MCP_AUTH_TOKENS": json.dumps({"ana": OTHER}),
                "TOOLBOX_BASE_URL": "https://tools.example.com",
                **environ,
            }
        )
        saved = {
            "id": "dev",
            "name": "Dev",
            "url": "https://contoso.crm.dynamics.com",
            "auth": {"type": "default"},
        }
        environments = Environments(ConnectionBook(json.dumps([saved])))
        self.store = MemoryJobStore()
        self.invoker = Invoker(self.settings, SEALER, lambda: self.store, environments=environments)
        self.api = WindowsApi(self.settings, SEALER, lambda: self.store, {"asker": self.tool}, environments)

    def call(
        self, arguments: JsonObject | None = None, token: str | None = None, **envelope: Any
    ) -> ToolResult:
        """One MCP call; one-way unless the envelope says otherwise."""
        given = {**(arguments or {}), "__pptb": {"mode": "one-way", **envelope}}
        headers = {} if token is None else {"X-MCP-Auth-Token": token}
        transport = {"name": "http-streamable", "properties": {"headers": headers}}
        payload = json.dumps({"name": "asker", "arguments": given, "transport": transport})
        return asyncio.run(self.invoker.answer(self.tool, payload))

    def launched(self, arguments: JsonObject | None = None, **envelope: Any) -> tuple[str, str]:
        """(the job's id, its ticket) of a new window."""
        answer = self.call(arguments, **envelope)
        assert answer.structured is not None, answer.text
        job_id, _, ticket = answer.structured["window"]["url"].partition("#window=")[2].partition(".")
        return job_id, ticket

    def opened(self, arguments: JsonObject | None = None, **envelope: Any) -> tuple[str, str]:
        """(the job's id, a session)"""
        job_id, ticket = self.launched(arguments, **envelope)
        return job_id, str(body(self.post("session", job_id, {"ticket": ticket}))["session"])

    def post(
        self,
        function: str,
        job_id: str,
        given: Any = None,
        *,
        session: str | None = None,
        token: str | None = None,
        raw: bytes | None = None,
        method: str = "POST",
        **headers: str,
    ) -> func.HttpResponse:
        sent = {"Content-Type": "application/json"}
        sent |= {} if session is None else {SESSION_HEADER: session}
        sent |= {} if token is None else {"X-MCP-Auth-Token": token}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = func.HttpRequest(
            method=method,
            url=f"https://elsewhere.example/mcp/windows/{job_id}/{function}",
            headers=sent,
            route_params={"jobId": job_id},
            body=json.dumps({} if given is None else given).encode() if raw is None else raw,
        )
        answer: func.HttpResponse = asyncio.run(getattr(self.api, function)(request))
        return answer

    def get(self, job_id: str, path: str, method: str = "GET") -> func.HttpResponse:
        request = func.HttpRequest(
            method=method,
            url="https://elsewhere.example/",
            headers={},
            route_params={"jobId": job_id, "path": path},
            body=b"",
        )
        return asyncio.run(self.api.page(request))

    def job(self, job_id: str) -> Job:
        found = self.store.get(job_id)
        assert found is not None
        return found


def body(answer: func.HttpResponse) -> Any:
    return json.loads(answer.get_body())


def unknown() -> str:
    return keys.new_job_id()
