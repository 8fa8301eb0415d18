"""`toolboxAPI.invocation.getLaunchContext()`: a tool's own invocation, wherever its code asks."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared.apis import toolboxAPI
from shared.contract.tool import check_contract
from shared.errors import NoInvocationError
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool import Context, tool
from shared.tool.decorator import declared
from shared.tool.handler import ToolEntry
from shared.tool.result import ToolResult

BOTH: Any = {
    "modes": ("one-way", "two-way"),
    "default_mode": "two-way",
    "execution_modes": ("inline", "headless"),
}


class Bench:
    def __init__(self, entry: ToolEntry | None) -> None:
        assert entry is not None
        self.entry = entry
        self.settings = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
        self.store = MemoryJobStore()
        sealer = Sealer((bytes(32),))
        self.invoker = Invoker(self.settings, sealer, lambda: self.store)
        self.worker = Worker({entry.spec.name: entry}, self.store, sealer, self.settings)

    async def answer(self, arguments: Any) -> ToolResult:
        payload = json.dumps({"name": self.entry.spec.name, "arguments": arguments})
        answering = asyncio.create_task(self.invoker.answer(self.entry, payload))
        while not answering.done():
            if self.store.messages:
                await self.worker.handle(self.store.messages.popleft())
            await asyncio.sleep(0.001)
        result = await answering
        assert not result.is_error, result.text
        return result

    def call(self, arguments: Any) -> Any:
        found = asyncio.run(self.answer(arguments)).structured or {}
        return found.get("result", found)


def decorated(function: Callable[..., Any], **options: Any) -> Bench:
    return Bench(declared(tool(name="work", description="Works.", **options)(function)))


def test_outside_of_an_invocation_there_is_none() -> None:
    assert toolboxAPI.invocation.getLaunchContext() is None
    with pytest.raises(NoInvocationError, match="only available inside a tool's invocation"):
        toolboxAPI.getToolContext()


def test_an_inline_call_sees_its_input_and_its_options() -> None:
    def work(city: str) -> Any:
        return toolboxAPI.invocation.getLaunchContext()

    found = decorated(work).call({"city": "Oslo", "__pptb": {"timeoutMs": 5000}})
    correlation = found["__pptb"].pop("correlationId")
    assert correlation.startswith("mcp-")
    assert found == {
        "city": "Oslo",
        "__pptb": {"source": "mcp", "mode": "two-way", "timeoutMs": 5000, "expectsResponse": True},
    }


def test_the_token_is_not_in_it() -> None:
    def work(city: str, context: Context) -> Any:
        assert context.auth_token == "caller-token"
        return toolboxAPI.invocation.getLaunchContext()

    found = decorated(work).call({"city": "Oslo", "__pptb": {"authToken": "caller-token"}})
    assert "caller-token" not in json.dumps(found)


@pytest.mark.parametrize("mode", ["one-way", "two-way"])
def test_a_job_sees_the_correlation_id_of_its_row_and_its_acceptance(mode: str) -> None:
    seen: list[Any] = []

    def work(city: str) -> str:
        seen.append(toolboxAPI.invocation.getLaunchContext())
        return "ok"

    async def main() -> ToolResult:
        result = await bench.answer({"city": "Oslo", "__pptb": {"mode": mode, "executionMode": "headless"}})
        while bench.store.messages:
            await bench.worker.handle(bench.store.messages.popleft())
        return result

    bench = decorated(work, **BOTH)
    answer = asyncio.run(main())
    (row,) = [row for row in bench.store.rows.values() if "jobId" in row]
    (launch,) = seen
    assert launch["city"] == "Oslo"
    assert launch["__pptb"]["correlationId"] == row["correlationId"] == f"mcp-{row['jobId']}"
    assert launch["__pptb"]["expectsResponse"] is (mode == "two-way")
    if mode == "one-way":
        assert answer.structured is not None
        assert answer.structured["correlationId"] == row["correlationId"]


def test_async_code_its_tasks_and_its_threads_see_it() -> None:
    async def work(n: int) -> list[Any]:
        ask = toolboxAPI.invocation.getLaunchContext
        own_thread: list[Any] = []
        thread = threading.Thread(
            target=contextvars.copy_context().run, args=(lambda: own_thread.append(ask()),)
        )
        thread.start()

        async def inner() -> Any:
            return ask()

        found = [ask(), await asyncio.create_task(inner()), await asyncio.to_thread(ask)]
        await asyncio.to_thread(thread.join)
        return [launch["n"] for launch in [*found, *own_thread]]

    assert decorated(work).call({"n": 7}) == [7, 7, 7, 7]


def test_overlapping_calls_never_see_each_other() -> None:
    async def work(n: int) -> list[int]:
        seen = []
        for _ in range(20):
            launch = toolboxAPI.invocation.getLaunchContext()
            assert launch is not None
            seen.append(launch["n"])
            await asyncio.sleep(0)
        return seen

    bench = decorated(work)

    async def main() -> list[ToolResult]:
        return await asyncio.gather(*(bench.answer({"n": n}) for n in range(50)))

    answers = asyncio.run(main())
    assert [(answer.structured or {})["result"] for answer in answers] == [[n] * 20 for n in range(50)]


def test_what_a_tool_does_to_it_changes_nothing() -> None:
    def work(items: list[int]) -> Any:
        launch = toolboxAPI.invocation.getLaunchContext()
        assert launch is not None
        launch["items"].clear()
        return [items, toolboxAPI.invocation.getLaunchContext()]

    items, launch = decorated(work).call({"items": [1, 2]})
    assert items == launch["items"] == [1, 2]


def test_a_headless_entry_has_the_api_as_a_global(tmp_path: Path) -> None:
    folder = tmp_path / "greeter"
    folder.mkdir()
    (folder / "pptb.config.json").write_text(
        json.dumps(
            {
                "invocation": {
                    "version": "1.0.0",
                    "prefill": {"properties": {"who": {"type": "string"}}},
                },
                "agents": {"version": "1.0.0", "invokable": True, "modes": ["two-way"]},
            }
        )
    )
    (folder / "helpers.py").write_text("def asked():\n    return toolboxAPI.invocation.getLaunchContext()\n")
    (folder / "headless.py").write_text(
        "import helpers\n\ndef invokeHeadless(input, context):\n"
        "    return {'here': toolboxAPI.invocation.getLaunchContext(), 'there': helpers.asked()}\n"
    )
    checked = check_contract(folder)
    assert checked.errors == []
    bench = Bench(checked.tool)
    result = asyncio.run(bench.answer({"who": "Ana"})).structured
    assert result is not None
    assert result["here"] == result["there"]
    assert result["here"]["who"] == "Ana"
    assert result["here"]["__pptb"]["source"] == "mcp"
