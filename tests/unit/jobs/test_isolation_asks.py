"""What a tool in a process of its own asks the worker for: settings, other tools, its checkpoint."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.apis import ports
from shared.contract.envelope import CallPlan
from shared.invoke import Invoker
from shared.jobs.isolation import frames
from shared.jobs.model import Job, Status, expire, utc_now
from shared.jobs.submit import submit
from shared.launching import DEPTH_LIMIT, ToolLauncher
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.apis.toolbox.test_toolbox import MemorySettings
from tests.unit.jobs import isolation_support
from tests.unit.jobs.isolation_support import SEALER, SETTINGS, Ended, contract

APART = """
import asyncio
import os
import signal
import time


def invokeHeadless(input, context):
    return globals()[input["do"]](input, context)


def settings(input, context):
    settings = toolboxAPI.settings
    before = settings.getAll()
    settings.set("a", {"b": 1})
    settings.set("c", "\\ud800 \\u00e4")
    try:
        settings.set("d", object())
    except Exception as error:
        fault = str(error)
    return {"before": before, "a": settings.get("a").b, "all": settings.getAll(), "fault": fault,
            "events": [event.event for event in toolboxAPI.events.getHistory()]}


def asks_twice(input, context):
    try:
        first = toolboxAPI.settings.getAll()
    except Exception as error:
        first = str(error)
    return {"first": first, "second": toolboxAPI.settings.getAll()}


async def settings_later(input, context):
    await asyncio.gather(*(toolboxAPI.settings.set(f"k{n}", n) for n in range(5)))
    read = await asyncio.gather(*(toolboxAPI.settings.get("k3") for _ in range(400)))
    return {"read": sum(read)}


def launch(input, context):
    object.__setattr__(context, "depth", 0)
    object.__setattr__(context, "owner", "somebody else")
    return toolboxAPI.invocation.launchTool("helper", input["given"], input.get("options"))


async def launch_later(input, context):
    made = [toolboxAPI.invocation.launchTool("helper", {"do": "echoes", "n": n}) for n in range(3)]
    return {"found": [found.n for found in await asyncio.gather(*made)]}


def finds(input, context):
    invocation = toolboxAPI.invocation
    return {"found": [tool.toolName for tool in invocation.findToolsByCapability(["help", "x"])],
            "none": invocation.findToolsByCapability("nothing"), "tags": invocation.getKnownCapabilityTags()}


async def finds_later(input, context):
    found = await toolboxAPI.invocation.findToolsByCapability("help")
    return {"found": [tool.toolName for tool in found]}


async def gives_up(input, context):
    launched = toolboxAPI.invocation.launchTool("helper", {"do": "sleeps", "file": input["file"]})
    while not os.path.exists(input["file"]):
        await asyncio.sleep(0.01)
    try:
        await asyncio.wait_for(launched, 0.05)
    except TimeoutError:
        pass
    return {"after": await toolboxAPI.settings.getAll()}


async def waits(input, context):
    return await toolboxAPI.invocation.launchTool("helper", {"do": "sleeps", "file": input["file"]})


def leaks(input, context):
    from shared import redaction
    # As a token that was got for a connection, in here.
    redaction.remember("sentinel-of-a-connection")
    options = {"executionMode": "headless"}
    given = {"do": "tells", "text": "sentinel-of-a-connection"}
    return toolboxAPI.invocation.launchTool("helper", given, options)


def forks(input, context):
    reading, writing = os.pipe()
    if not os.fork():
        try:
            toolboxAPI.settings.getAll()
        except Exception as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    return {"said": os.read(reading, 1000).decode()}


def hogs(input, context):
    # Asks, and then keeps Python from reading the answers.
    import gc
    import re
    import threading
    from shared.jobs.isolation.channel import Channel
    (channel,) = [found for found in gc.get_objects() if isinstance(found, Channel)]
    ask = {"type": "ask", "what": "settings.read", "given": {}}
    asks = threading.Thread(target=lambda: [channel.send({**ask, "number": n}) for n in range(200)])
    asks.start()
    asks.join()
    re.match("(a+)+$", "a" * 50 + "b")


def keeps(input, context):
    kept = context.checkpoint
    found = {"value": kept.value, "parts": [part.decode() for part in kept.parts()]}
    if context.attempt > 1:
        return found
    faults = []
    for value, part in (({"x": object()}, b""), ({}, "text"), ([], b"")):
        try:
            kept.save(value, part)
        except Exception as error:
            faults.append(type(error).__name__)
    kept.save({"n": 1}, b"one")
    kept.clear()
    kept.save({"n": 2}, b"two" * 1_000_000)
    kept.save({"n": 3, "faults": faults}, b"three")
    context.update_progress(50)
    open(input["file"], "w").close()
    time.sleep(60)
"""
HELPER = """
import asyncio


async def invokeHeadless(input, context):
    return await globals()[input["do"]](input, context)


async def echoes(input, context):
    return {**input, "owner": context.owner, "depth": context.depth, "mode": context.executionMode}


async def fails(input, context):
    raise ValueError("no such table")


async def tells(input, context):
    context.logger.info(input["text"])
    return {"n": 1}


async def sleeps(input, context):
    open(input["file"], "w").close()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        open(input["file"] + ".cancelled", "w").close()
        raise
"""


class Bench(isolation_support.Bench):
    """The app's parts put together, with two tools: `apart`, which has a process, and `helper`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.settings = MemorySettings()
        ports.use_store(lambda: self.settings)
        invoker = Invoker(SETTINGS, SEALER, lambda: self.store)
        ports.use_launcher(ToolLauncher(self.found.tools, invoker))

    def ask(
        self, do: str, *, owner: str = "ana", depth: int = 0, timeout_ms: int = 30_000, **arguments: Any
    ) -> Ended:
        """A job of `apart`, and whatever it launches, to the end."""

        async def all_of_it() -> Job:
            plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, timeout_ms, None)
            spec = self.found.tools["apart"].spec
            job = await submit(
                spec, {"do": do, **arguments}, plan, owner=owner, depth=depth, store=self.store, sealer=SEALER
            )
            worker, handled = self.worker(), set()
            while not self.ended(job).job.status.terminal:
                while self.store.messages:
                    handled.add(asyncio.create_task(worker.handle(self.store.messages.popleft())))
                await asyncio.sleep(0.005)
            await asyncio.gather(*handled)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return job

        return self.ended(asyncio.run(all_of_it()))

    def answer(self, do: str, **arguments: Any) -> Any:
        """The result of one that succeeds."""
        ended = self.ask(do, **arguments)
        assert ended.job.status is Status.COMPLETED, ended.job.error
        return ended.result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("asks")
    tools = root / "asking_tools"
    tools.mkdir()
    contract(tools / "apart", APART, idempotent=True)
    contract(tools / "helper", HELPER, isolation="thread", executionModes=["inline", "headless"])
    config = json.loads((tools / "helper" / "pptb.config.json").read_text())
    config["invocation"] = {"version": "1.0.0", "capabilities": ["help", "more"]}
    (tools / "helper" / "pptb.config.json").write_text(json.dumps(config))
    sys.path.append(str(root))
    yield tools
    sys.path.remove(str(root))


@pytest.fixture
def bench(folder: Path) -> Iterator[Bench]:
    yield Bench(folder)
    ports.use_store(None)
    ports.use_launcher(None)


def test_settings_are_the_workers(bench: Bench) -> None:
    bench.settings.rows["ana", "apart"] = ({"old": 0}, 1)
    bench.settings.rows["bob", "apart"] = ({"bobs": 0}, 1)
    bench.settings.disturbances = 2
    found = bench.answer("settings")
    assert found["before"] == {"old": 0}
    assert found["a"] == 1
    assert found["all"] == {"old": 0, "theirs": 0, "a": {"b": 1}, "c": "\ufffd ä"}
    assert "a value cannot be written as JSON" in found["fault"]
    assert found["events"] == ["settings:updated", "settings:updated"]
    assert bench.settings.rows["bob", "apart"] == ({"bobs": 0}, 1)
    assert set(bench.settings.rows) == {("ana", "apart"), ("bob", "apart")}


def test_a_process_that_does_not_read_its_answers_is_ended_in_time(bench: Bench) -> None:
    bench.settings.rows["ana", "apart"] = ({"large": "x" * 30_000}, 1)
    ended = bench.ask("hogs", timeout_ms=2_000)
    assert ended.job.error == "Headless execution timed out after 2000 ms"
    isolation_support.wait_for(
        lambda: not {"answers", "process-apart"} & {thread.name for thread in threading.enumerate()}
    )


def test_many_questions_at_once_are_all_answered(bench: Bench) -> None:
    assert bench.answer("settings_later") == {"read": 1_200}


def test_storage_that_fails_is_an_error_of_the_tools(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(owner: str, tool: str) -> tuple[JsonObject, str]:
        raise ConnectionError("sentinel of storage")

    monkeypatch.setattr(bench.settings, "read", broken)
    assert bench.ask("settings").job.error == "settings.read has failed (ConnectionError)"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"large": "x" * 30_000}, "more than a tool's own process takes"),
        ({"odd": {1}}, "cannot be written as JSON"),
    ],
)
def test_an_answer_that_cannot_travel_is_an_error_of_the_tools(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, value: Any, said: str
) -> None:
    """And the next one arrives: nobody waits for either until the deadline."""
    monkeypatch.setattr(frames, "FRAME_LIMIT", 20_000)
    found: list[Any] = [value, {"k": 1}]
    monkeypatch.setattr(bench.settings, "read", lambda owner, tool: (found.pop(0), "1"))
    assert said in bench.answer("asks_twice")["first"]


def test_an_app_without_storage_for_settings_says_so(bench: Bench) -> None:
    ports.use_store(None)
    assert "this app has no storage for settings" in bench.ask("settings").job.error


@pytest.mark.parametrize("mode", ["inline", "headless"])
def test_another_tool_is_launched_for_the_jobs_owner_whatever_the_process_says(bench: Bench, mode: str) -> None:
    found = bench.answer("launch", given={"do": "echoes", "n": 4}, options={"executionMode": mode})
    assert found == {"do": "echoes", "n": 4, "owner": "ana", "depth": 1, "mode": mode}


def test_several_tools_are_launched_at_once(bench: Bench) -> None:
    assert bench.answer("launch_later") == {"found": [0, 1, 2]}


def test_a_process_cannot_talk_its_way_around_the_depth_limit(bench: Bench) -> None:
    ended = bench.ask("launch", given={"do": "echoes"}, depth=DEPTH_LIMIT)
    assert f"nested more than {DEPTH_LIMIT} deep" in ended.job.error


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"do": "fails"}, "Failed to launch tool: Tool 'helper' failed: ValueError: no such table"),
        ({"do": "echoes", "__pptb": {"mode": "no-way"}}, "Failed to launch tool: __pptb.mode"),
    ],
)
def test_a_launched_tools_error_is_the_tools(bench: Bench, given: JsonObject, text: str) -> None:
    assert text in bench.ask("launch", given=given).job.error


def test_tools_are_found(bench: Bench) -> None:
    assert bench.answer("finds") == {"found": ["helper"], "none": [], "tags": ["help", "more"]}
    assert bench.answer("finds_later") == {"found": ["helper"]}


def test_a_launch_that_is_given_up_ends_in_the_worker(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "begun"
    assert bench.answer("gives_up", file=str(file)) == {"after": {}}
    assert Path(f"{file}.cancelled").exists()


def test_a_launch_ends_with_the_job_that_made_it(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "begun"
    ended = bench.ask("waits", file=str(file), timeout_ms=3_000)
    assert "timed out" in ended.job.error
    assert Path(f"{file}.cancelled").exists()


def test_a_token_that_a_process_passes_on_is_redacted_in_the_worker(bench: Bench) -> None:
    assert bench.answer("leaks") == {"n": 1}
    launched = next(row for row in bench.store.rows.values() if row.get("toolName") == "helper")
    found = bench.store.with_logs(launched["jobId"])
    assert found is not None
    assert [line.message for line in found[1]][1] == "[redacted]"
    assert "sentinel-of-a-connection" not in f"{bench.store.rows} {bench.store.blobs}"


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_is_told_that_it_cannot_ask(bench: Bench) -> None:
    assert "not one that it forked" in bench.answer("forks")["said"]


def test_a_process_finds_what_an_earlier_one_has_kept(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "kept"

    async def both() -> Job:
        plan = CallPlan(Mode.TWO_WAY, ExecutionMode.HEADLESS, 30_000, None)
        arguments = {"do": "keeps", "file": str(file)}
        spec = bench.found.tools["apart"].spec
        job = await submit(spec, arguments, plan, owner="ana", store=bench.store, sealer=SEALER)
        lost = asyncio.create_task(bench.worker().handle(bench.store.messages.popleft()))
        while not file.exists() or bench.ended(job).job.progress_percent < 50:
            await asyncio.sleep(0.01)
        lost.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lost
        now = bench.ended(job).job
        assert (now.status, now.kept) == (Status.IN_PROGRESS, True)
        bench.store.write(expire(replace(now, lease_until=utc_now()), utc_now()))
        await bench.worker().handle(json.dumps({"jobId": job.job_id}))
        return job

    ended = bench.ended(asyncio.run(both()))
    assert ended.result is not None, ended.job.error
    assert ended.result["value"] == {"n": 3, "faults": ["ToolError", "ToolError", "ToolError"]}
    assert ended.result["parts"] == ["two" * 1_000_000, "three"]
    assert [name for name in bench.store.blobs if "/part-" in name] == []
