"""The HTTP functions about jobs, called directly, on a store in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import azure.functions as func

from shared import settings as app_settings
from shared.jobs.model import Job
from shared.jobs.testing import MemoryJobStore
from shared.web.jobs import JobsApi
from tests.unit.jobs.bench import SEALER, Bench

TOKEN, OTHER = "token-of-default", "token-of-ana"
SETTINGS = app_settings.load(
    {
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": TOKEN,
        "MCP_AUTH_TOKENS": json.dumps({"ana": OTHER}),
    }
)


class Web:
    """A bench with its HTTP functions. Each call says how many storage requests it took."""

    def __init__(self, function: Callable[..., Any] = lambda: None, **options: Any) -> None:
        self.bench = Bench(function, **options)
        self.api = JobsApi(SETTINGS, SEALER, lambda: self.store)
        self.took = 0

    @property
    def store(self) -> MemoryJobStore:
        return self.bench.store

    async def send(
        self,
        function: str,
        job: Job | str | None = None,
        *,
        method: str = "GET",
        token: str | None = TOKEN,
        name: str | None = None,
        headers: dict[str, str] | None = None,
        **params: str,
    ) -> func.HttpResponse:
        route = {} if job is None else {"jobId": job if isinstance(job, str) else job.job_id}
        if name is not None:
            route["name"] = name
        given = dict(headers or {})
        if token is not None:
            given["X-MCP-Auth-Token"] = token
        request = func.HttpRequest(
            method=method,
            url="http://localhost/mcp/jobs",
            headers=given,
            params=params,
            route_params=route,
            body=b"",
        )
        before = self.store.requests.total()
        answer: func.HttpResponse = await getattr(self.api, function)(request)
        self.took = self.store.requests.total() - before
        return answer

    def __call__(self, function: str, *args: Any, **kwargs: Any) -> func.HttpResponse:
        return asyncio.run(self.send(function, *args, **kwargs))


def body(answer: func.HttpResponse) -> Any:
    return json.loads(answer.get_body())
