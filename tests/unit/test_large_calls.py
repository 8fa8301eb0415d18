"""A large call: read on a thread, once, within a limit, while other calls are answered."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from shared import large_json
from shared import settings as app_settings
from shared.invocations.log import InvocationLog
from shared.invocations.record import Record
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.tool import ToolError, tool
from shared.tool.decorator import DecoratedTool, declared
from shared.tool.handler import Handler
from shared.tool.result import META_PREFIX, ToolResult
from shared.tool.spec import ToolSpec

SECRET = "sentinel-password"
LARGE = "x" * (large_json.SMALL + 1)
LEAST = "262144"


class Records(InvocationLog):
    """Keeps what it is told, made at once."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Record] = []

    def add(self, draft: Callable[[], Record], *, stored: bool = True) -> None:
        self.found.append(draft())


class Watched:
    """A tool whose loading does something, and notes on which thread."""

    def __init__(self, entry: DecoratedTool, at_load: Callable[[], None] = lambda: None) -> None:
        self._entry = entry
        self._at_load = at_load
        self.threads: list[threading.Thread] = []

    @property
    def spec(self) -> ToolSpec:
        return self._entry.spec

    def load(self) -> Handler:
        self.threads.append(threading.current_thread())
        self._at_load()
        return self._entry.load()


def made(function: Callable[..., Any], **options: Any) -> DecoratedTool:
    entry = declared(tool(name="work", description="Works.", **options)(function))
    assert entry is not None
    found: DecoratedTool = entry
    return found


def invoker(log: InvocationLog | None = None, store: MemoryJobStore | None = None, **settings: str) -> Invoker:
    found = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true", **settings})
    jobs = store or MemoryJobStore()
    return Invoker(found, Sealer((bytes(32),)), lambda: jobs, log)


def payload(**arguments: Any) -> str:
    return json.dumps({"name": "work", "arguments": arguments}, ensure_ascii=False)


def called(ask: Invoker, entry: Any, text: str) -> dict[str, Any]:
    """The answer that the host is given, as a client gets it."""
    answer = json.loads(asyncio.run(ask.trigger(entry)(text, None)))  # type: ignore[arg-type]
    found: dict[str, Any] = json.loads(answer["content"])
    return found


def echo(text: str) -> str:
    return f"{len(text)} characters"


def test_small_calls_are_answered_while_a_large_one_is_read() -> None:
    answered = threading.Event()

    def wait_for_the_other() -> None:
        assert answered.wait(20), "the small call had to wait for the large one"

    large, small = Watched(made(echo), wait_for_the_other), Watched(made(echo))
    ask = invoker()

    async def main() -> tuple[ToolResult, ToolResult]:
        first = asyncio.create_task(ask.answer(large, payload(text=LARGE)))
        await asyncio.sleep(0)
        second = await ask.answer(small, payload(text="abc"))
        answered.set()
        return await first, second

    first, second = asyncio.run(main())
    assert (first.structured, second.structured) == (
        {"result": f"{len(LARGE)} characters"}, {"result": "3 characters"},
    )  # fmt: skip
    # A small one goes nowhere: that would cost it more than being read.
    assert small.threads == [threading.main_thread()]
    assert large.threads[0].name.startswith("large-json")


def test_a_large_call_is_read_once_and_its_secrets_are_known_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    loads = large_json.loads

    def counted(text: str, *rest: Any) -> Any:
        sizes.append(len(text))
        return loads(text, *rest)

    monkeypatch.setattr(large_json, "loads", counted)

    def work(login: dict[str, Any], pad: str) -> str:
        secret = login.pop("password")  # the tool may do what it likes with what it is given
        raise ToolError(f"refused: {secret}")

    log = Records()
    text = payload(login={"password": SECRET, "user": "ana"}, pad=LARGE)
    answer = called(invoker(log), made(work), text)
    assert answer["content"][0]["text"] == "refused: [redacted]"
    (record,) = log.found
    assert record.error == "refused: [redacted]"
    assert record.prefill_summary.startswith('{"login":{"password":"[redacted]","user":"ana"},"pad":"xxx')
    assert sizes == [len(text)]


def test_what_is_wrong_with_a_large_call_is_told_as_of_any(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Records()
    ask = invoker(log)
    entry = made(echo)
    assert (
        "$.text: expected string, got array" in called(ask, entry, payload(text=[LARGE]))["content"][0]["text"]
    )
    broken = payload(text=LARGE).replace('"text"', '"n": ' + "9" * 5_000 + ', "text"')
    assert "a number with too many digits" in called(ask, entry, broken)["content"][0]["text"]
    no_object = json.dumps({"arguments": [LARGE]})
    assert called(ask, entry, no_object)["content"][0]["text"] == "arguments: expected object, got array"
    assert [record.outcome for record in log.found] == ["rejected"] * 3


def test_a_large_job_is_accepted_with_its_input() -> None:
    store = MemoryJobStore()
    entry = made(echo, modes=("one-way",), execution_modes=("headless",))
    answer = called(invoker(store=store), entry, payload(text=LARGE))
    assert answer["structuredContent"]["status"] == "accepted"
    (job,) = [row for row in store.rows.values() if "jobId" in row]
    assert job["prefillSummary"].startswith('{"text":"xxx')


@pytest.mark.parametrize("execution", ["inline", "headless"])
@pytest.mark.parametrize("letter", ["x", "é", "€", "😀"])
def test_a_call_above_the_limit_is_refused_unread(
    execution: str, letter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, log = MemoryJobStore(), Records()
    entry = Watched(made(echo, execution_modes=(execution,)))
    ask = invoker(log, store, TOOLBOX_MAX_INPUT_BYTES=LEAST)
    rest = len(payload(text="").encode())
    most, size = (int(LEAST) - rest) // len(letter.encode()), len(letter.encode())
    text = payload(text=letter * (most + 1))
    monkeypatch.setattr(large_json, "loads", lambda *_: pytest.fail("it was read"))
    answer = called(ask, entry, text)
    said = (
        f"arguments: the call has {rest + (most + 1) * size} bytes as JSON; at most {LEAST} are taken "
        "(the app's setting TOOLBOX_MAX_INPUT_BYTES)"
    )
    assert answer["content"][0]["text"] == said
    assert answer["_meta"][f"{META_PREFIX}errorCode"] == "invalid_input"
    assert (entry.threads, store.rows) == ([], {})
    (record,) = log.found
    assert (record.outcome, record.error, record.prefill_summary) == ("rejected", said, "{}")


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_a_call_at_the_limit_is_taken(letter: str) -> None:
    ask = invoker(TOOLBOX_MAX_INPUT_BYTES=LEAST)
    rest, size = len(payload(text="").encode()), len(letter.encode())
    text = letter * ((int(LEAST) - rest) // size)
    assert called(ask, made(echo), payload(text=text))["content"][0]["text"] == f"{len(text)} characters"
