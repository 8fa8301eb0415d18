"""What a launched tool leaves behind when synchronous code has launched it: nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.apis import bridge, ports
from tests.unit.apis.toolbox.test_toolbox import Bench

#: A tool that goes on in the background, in every way in which it can.
LEAVES = """
events = []

async def goes_on():
    try:
        await asyncio.sleep(60)
    finally:
        events.append("cancelled")

async def stream():
    try:
        yield 1
        yield 2
    finally:
        events.append("closed")

input["kept"] = asyncio.create_task(goes_on())
async for number in (numbers := stream()):
    break
asyncio.get_running_loop().events = events
asyncio.get_running_loop().streams = numbers
await asyncio.sleep(0)
return {"n": 1}
"""


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.AbstractEventLoop]:
    """The event loops that were made for calls from synchronous code."""
    made: list[asyncio.AbstractEventLoop] = []
    new_event_loop = asyncio.new_event_loop

    def new() -> asyncio.AbstractEventLoop:
        made.append(new_event_loop())
        return made[-1]

    monkeypatch.setattr("shared.apis.bridge.asyncio.new_event_loop", new)
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    parent = "return toolboxAPI.invocation.launchTool('child', {})"
    made.tool("parent", parent, is_async=False, executionModes=["inline", "headless"])
    yield made
    ports.use_launcher(None)


@pytest.mark.parametrize("mode", ["inline", "headless"])
def test_no_task_of_the_launched_tool_remains(
    bench: Bench, loops: list[Any], caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    bench.tool("child", LEAVES, executionModes=["inline"])
    assert bench.call("parent", executionMode=mode) == {"n": 1}
    loop = next(loop for loop in loops if hasattr(loop, "events"))
    assert loop.is_closed()
    assert sorted(loop.events) == ["cancelled", "closed"]
    assert asyncio.all_tasks(loop) == set()
    gc.collect()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_task_that_fails_while_it_is_ended_is_told_of(
    bench: Bench, loops: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    body = """
async def fails():
    try:
        await asyncio.sleep(60)
    finally:
        raise ValueError("on the way out")

asyncio.get_running_loop().kept = asyncio.create_task(fails())
await asyncio.sleep(0)
return {"n": 1}
"""
    bench.tool("child", body, executionModes=["inline"])
    assert bench.call("parent") == {"n": 1}
    assert "a task that was left behind has failed" in caplog.text
    assert all(loop.is_closed() for loop in loops if hasattr(loop, "kept"))


def test_a_task_that_does_not_end_is_not_waited_for(
    bench: Bench, loops: list[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "_GRACE", 0.05)
    body = """
async def stubborn():
    for _ in range(2):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

asyncio.get_running_loop().kept = asyncio.create_task(stubborn())
await asyncio.sleep(0)
return {"n": 1}
"""
    bench.tool("child", body, executionModes=["inline"])
    assert bench.call("parent") == {"n": 1}
    assert "tasks that were left behind do not end: 1" in caplog.text
    caplog.clear()
    (loop,) = [loop for loop in loops if hasattr(loop, "kept")]
    loop.kept._log_destroy_pending = False  # what remains is this one, as was told
