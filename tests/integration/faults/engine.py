"""The engine in the tests' own process, on a real account: what one delivery does, without a host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from shared import settings as app_settings
from shared.contract.envelope import CallPlan
from shared.invoke import Invoker
from shared.jobs import view
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.jobs.submit import submit
from shared.jobs.worker import Worker
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.integration.faults.support import AUTH_TOKEN

SEALER: Final = Sealer((bytes(range(32)),))
SETTINGS: Final = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})


class Engine:
    """A tool `work` and what runs it."""

    def __init__(self, store: JobStore, function: Callable[..., Any]) -> None:
        make = tool(
            name="work",
            description="Works.",
            modes=("one-way", "two-way"),
            execution_modes=("headless",),
        )
        found = declared(make(function))
        assert found is not None
        self.entry: ToolEntry = found
        self.store = store

    def submit(self, arguments: JsonObject | None = None, key: str | None = None) -> Job:
        plan = CallPlan(Mode.ONE_WAY, ExecutionMode.HEADLESS, 60_000, AUTH_TOKEN, key)
        made = submit(self.entry.spec, arguments or {}, plan, owner="default", store=self.store, sealer=SEALER)
        return asyncio.run(made)

    def call(self, key: str | None = None) -> Any:
        """The answer to an MCP call."""
        options = {"mode": "one-way", "authToken": AUTH_TOKEN, "idempotencyKey": key}
        invoker = Invoker(SETTINGS, SEALER, lambda: self.store)
        return asyncio.run(invoker.answer(self.entry, json.dumps({"arguments": {"__pptb": options}})))

    def deliver(self, *job_ids: str, store: JobStore | None = None) -> None:
        """A message for each, all at once, each to a worker of its own. Raises what they raise."""

        async def all_at_once() -> None:
            workers = [Worker({"work": self.entry}, store or self.store, SEALER, SETTINGS) for _ in job_ids]
            given = zip(workers, map(message, job_ids), strict=True)
            await asyncio.gather(*(worker.handle(body) for worker, body in given))

        asyncio.run(all_at_once())

    def job(self, job_id: str) -> Job:
        found = self.store.get(job_id)
        assert found is not None
        return found

    def status(self, job_id: str) -> JsonObject:
        return view.look(job_id, "default", self.store).body(self.store)


def message(job_id: str) -> str:
    return json.dumps({"jobId": job_id})
