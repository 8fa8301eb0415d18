"""One call from payload to envelope: whatever goes wrong becomes an answer that helps and tells no secret."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from shared import settings as app_settings
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool import Context, McpTextContent, McpToolResponse, ToolCall, ToolError, tool
from shared.tool.decorator import DecoratedTool, declared
from shared.tool.result import ToolResult

TOKEN, KEY, AUTH = "sentinel-owner-token", "sentinel-functions-key", "sentinel-auth-token"
BOTH: Any = {
    "modes": ("one-way", "two-way"),
    "default_mode": "two-way",
    "execution_modes": ("inline", "headless"),
}


class Bench:
    def __init__(self, function: Callable[..., Any], options: Any = None, **settings: str) -> None:
        entry = declared(tool(name="work", description="Works.", **(options or {}))(function))
        assert entry is not None
        self.entry: DecoratedTool = entry
        self.settings = app_settings.load(
            {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "MCP_AUTH_TOKEN": TOKEN, **settings}
        )
        self.store = MemoryJobStore()
        self.sealer = Sealer((bytes(32),))
        self.invoker = Invoker(self.settings, self.sealer, lambda: self.store)

    def call(self, arguments: Any = None, work: bool = True, **headers: str) -> ToolResult:
        payload: dict[str, Any] = {"name": "work", "sessionid": "s"}
        if arguments is not None:
            payload["arguments"] = arguments
        payload["transport"] = {"name": "http-streamable", "properties": {"headers": headers}}
        worker = Worker({"work": self.entry}, self.store, self.sealer, self.settings)

        async def main() -> ToolResult:
            answering = asyncio.create_task(self.invoker.answer(self.entry, json.dumps(payload)))
            while not answering.done():
                if self.store.messages and work:
                    await worker.handle(self.store.messages.popleft())
                await asyncio.sleep(0.001)
            return await answering

        return asyncio.run(main())


def test_arguments_may_be_left_out_or_null() -> None:
    bench = Bench(lambda: "ok")
    assert bench.call().structured == {"result": "ok"}


@pytest.mark.parametrize("arguments", [[], "text", 5])
def test_arguments_of_another_kind_are_named(arguments: Any) -> None:
    result = Bench(lambda: "ok").call(arguments)
    assert result.is_error
    assert "arguments: expected object, got" in result.text


@pytest.mark.parametrize("argument", ["[" * 100_000 + "]" * 100_000, "9" * 5_000])
def test_what_python_cannot_parse_is_the_callers_mistake(
    argument: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(lambda: "ok")
    payload = f'{{"name": "work", "arguments": {{"n": {argument}}}}}'
    result = asyncio.run(bench.invoker.answer(bench.entry, payload))
    assert result.text == "arguments: nested too deeply, or a number with too many digits"
    assert caplog.text == ""


def test_what_a_tool_raises_is_told_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    secrets = {"key": KEY}

    def work(*, context: Context) -> None:
        raise ValueError(f"secret detail {context.auth_token} {secrets.get('key')}")

    headers: Any = {"X-Functions-Key": KEY, "X-MCP-Auth-Token": TOKEN}
    result = Bench(work, BOTH).call({"__pptb": {"authToken": AUTH}}, **headers)
    assert result.is_error
    assert result.text == "Tool 'work' failed: ValueError: secret detail [redacted] [redacted]"
    assert "Traceback" in caplog.text
    # A job's tool has no way to learn the request's keys; the call's own token it has.
    secrets.clear()
    bench = Bench(work, BOTH)
    result = bench.call({"__pptb": {"authToken": AUTH, "executionMode": "headless"}}, **headers)
    assert result.text.startswith("Tool 'work' failed: ValueError: secret detail [redacted] None (job ")
    for secret in (AUTH, KEY, TOKEN):
        assert secret not in result.text + caplog.text + repr(bench.store.rows)


def test_what_no_encoding_can_carry_is_neither_told_nor_logged(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        raise ValueError("lone \ud800 half")

    result = Bench(work).call()
    assert result.text == "Tool 'work' failed: ValueError: lone \ufffd half"
    caplog.text.encode()


def test_a_text_of_the_authors_own_is_told_as_it_is() -> None:
    def work() -> None:
        raise ToolError("Give a city.")

    result = Bench(work).call()
    assert (result.is_error, result.text) == (True, "Give a city.")


def test_an_error_response_is_an_error() -> None:
    def work() -> McpToolResponse:
        return McpToolResponse([McpTextContent("bad input")], is_error=True)

    for envelope in ({}, {"executionMode": "headless"}):
        result = Bench(work, BOTH).call({"__pptb": envelope})
        assert result.is_error
        assert result.text.startswith("bad input")


def test_a_broken_promise_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> dict[str, int]:
        return {"a": "text"}  # type: ignore[dict-item]

    result = Bench(work).call()
    assert result.text == "Output validation failed: $.a: expected integer, got string"
    assert result.meta == {"toolbox/errorCode": "invalid_result"}
    assert "Output validation failed" in caplog.text


def test_what_no_schema_can_refuse_is_refused_in_words_before_a_job_is_made() -> None:
    import datetime as dt

    def work(day: dt.date) -> str:
        return day.isoformat()

    for envelope in ({}, {"executionMode": "headless"}):
        bench = Bench(lambda: None, BOTH)
        bench = Bench(_with_hints(work), BOTH)
        result = bench.call({"day": "not a day", "__pptb": envelope})
        assert result.text.startswith("Input validation failed: $.day: expected a date (ISO 8601")
        assert bench.store.rows == {}


def _with_hints(function: Callable[..., Any]) -> Callable[..., Any]:
    import datetime as dt

    function.__annotations__ = {"day": dt.date, "return": str}
    return function


def test_a_call_that_takes_too_long_says_how_to_run_it_instead() -> None:
    async def work() -> None:
        await asyncio.sleep(30)

    result = Bench(work, BOTH).call({"__pptb": {"timeoutMs": 20}})
    assert result.text == (
        "Inline execution timed out after 20 ms; run it as a job with __pptb.executionMode 'headless'"
    )
    assert Bench(work).call({"__pptb": {"timeoutMs": 20}}).text == "Inline execution timed out after 20 ms"


def test_a_wait_that_ends_early_gives_the_acceptance_and_how_to_go_on() -> None:
    bench = Bench(lambda: "ok", BOTH, TOOLBOX_MAX_WAIT_MS="20")
    result = bench.call({"__pptb": {"executionMode": "headless"}}, work=False)
    assert result.structured is not None
    assert result.structured["status"] == "accepted"
    assert (result.structured["mode"], result.structured["jobStatus"]) == ("two-way", "pending")
    assert result.structured["waitLimitMs"] == 20
    assert result.structured["statusUrl"] in result.structured["message"]


def test_inline_and_headless_give_the_same_answer() -> None:
    def work(n: int, *, call: ToolCall) -> McpToolResponse:
        return McpToolResponse([McpTextContent(f"{call.owner} {call.session_id}")], {"n": n})

    inline = Bench(work, BOTH).call({"n": 1})
    headless = Bench(work, BOTH).call({"n": 1, "__pptb": {"executionMode": "headless"}})
    assert inline.text == "default s"
    assert (headless.content, headless.structured) == (inline.content, inline.structured)


def test_without_a_seal_key_a_job_is_refused_with_the_settings_name() -> None:
    bench = Bench(lambda: "ok", BOTH)
    bench.invoker = Invoker(bench.settings, Sealer(()), lambda: bench.store)
    result = bench.call({"__pptb": {"executionMode": "headless"}})
    assert "TOOLBOX_SEAL_KEY" in result.text
    assert bench.store.rows == {}


def test_an_unforeseen_fault_of_ours_names_its_kind_only(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(lambda: "ok")
    monkeypatch.setattr(bench.entry, "load", lambda: 1 / 0)
    result = bench.call()
    assert result.is_error
    assert result.text == (
        "The call of 'work' could not be carried out (ZeroDivisionError). The server's log has the details."
    )


def test_an_inline_tools_lines_go_to_the_log_redacted(caplog: pytest.LogCaptureFixture) -> None:
    def work(*, context: Context) -> None:
        context.logger.warn(f"looking with {context.auth_token}")
        context.update_progress(5)

    with caplog.at_level(logging.INFO):
        Bench(work).call({"__pptb": {"authToken": AUTH}})
    assert "looking with [redacted]" in caplog.text


def test_an_error_that_a_tool_answers_with_keeps_its_data_as_a_job_too() -> None:
    def work() -> McpToolResponse:
        return McpToolResponse([McpTextContent("it broke")], {"code": 5}, is_error=True)

    inline, job = (
        Bench(work, BOTH).call({"__pptb": {"executionMode": how, "mode": "two-way"}})
        for how in ("inline", "headless")
    )
    assert inline.is_error
    assert job.is_error
    assert inline.structured == job.structured == {"code": 5}
    assert job.text.startswith("it broke (job ")
