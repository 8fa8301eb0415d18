"""The engine with one tool, on a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from shared import settings as app_settings
from shared.contract.envelope import CallPlan
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.submit import submit
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.spec import ExecutionMode, JsonObject, Mode

SEALER = Sealer((bytes(range(32)),))

SETTINGS = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})


class Bench:
    """An engine with one tool."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        execution_modes = ("inline", "headless")
        found = declared(
            tool(name="work", description="Works.", execution_modes=execution_modes, **options)(function)
        )
        assert found is not None
        self.entry: ToolEntry = found
        self.store = MemoryJobStore()
        self.worker = Worker({"work": self.entry}, self.store, SEALER, SETTINGS)

    def submit(
        self, arguments: JsonObject | None = None, *, timeout_ms: int = 10_000, token: str | None = None
    ) -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, timeout_ms, token)
        return asyncio.run(
            submit(self.entry.spec, arguments or {}, plan, owner="default", store=self.store, sealer=SEALER)
        )

    def deliver(self, body: str | None = None) -> None:
        asyncio.run(self.worker.handle(self.store.messages.popleft() if body is None else body))

    def job(self, job: Job) -> Job:
        found = self.store.get(job.job_id)
        assert found is not None
        return found

    def lines(self, job: Job) -> list[str]:
        found = self.store.with_logs(job.job_id)
        assert found is not None
        return [line.message for line in found[1]]
