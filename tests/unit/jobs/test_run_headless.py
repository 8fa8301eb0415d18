"""The test kit for authors: a tool's whole run as a job, with nothing but memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from shared.errors import DeclarationError, InputError, ToolError, UnsupportedModeError
from shared.jobs.model import ErrorCode, Status
from shared.jobs.testing import run_headless
from shared.tool import Context, McpResourceLinkContent, tool

HEADLESS: Any = {"execution_modes": ("headless",), "description": "Works."}


@tool(**HEADLESS)
def shout(text: Annotated[str, Field(min_length=1)], times: int = 1, *, context: Context) -> str:
    context.update_progress(50, "half")
    context.update_progress(20)
    context.logger.info(f"shouting {text}")
    context.logger.warn("loudly")
    return text.upper() * times


def test_a_run_shows_what_the_jobs_owner_sees() -> None:
    run = run_headless(shout, {"text": "a", "times": 3})
    assert run.status is Status.COMPLETED
    assert run.result == {"result": "AAA"}
    assert run.log == ("shouting a", "loudly")
    assert [line.level.word for line in run.lines] == ["info", "warn"]
    assert run.progress == ((50, "half"), (50, "half"))
    assert (run.error, run.error_code, run.artifacts, run.content) == ("", None, {}, ())
    assert run.job.attempt == 1


def test_files_are_at_hand() -> None:
    @tool(**HEADLESS)
    async def export(*, context: Context) -> McpResourceLinkContent:
        return await asyncio.to_thread(context.artifacts.write, "a.csv", "n\n1\n")

    run = run_headless(export)
    assert run.artifacts == {"a.csv": b"n\n1\n"}
    assert [block["type"] for block in run.content] == ["resource_link"]


def test_a_tool_that_fails_is_a_failed_run() -> None:
    @tool(**HEADLESS)
    def fails(how: str, *, context: Context) -> dict[str, int]:
        context.logger.info("begun")
        if how == "kindly":
            raise ToolError("The delimiter must be one character.")
        if how == "late":
            import time

            time.sleep(0.1)
        return {"a": "text"}  # type: ignore[dict-item]

    kindly = run_headless(fails, {"how": "kindly"})
    assert (kindly.status, kindly.error, kindly.error_code, kindly.result) == (
        Status.FAILED,
        "The delimiter must be one character.",
        ErrorCode.TOOL_ERROR,
        None,
    )
    assert kindly.log == ("begun",)
    assert run_headless(fails, {"how": "wrong"}).error_code is ErrorCode.INVALID_RESULT
    assert run_headless(fails, {"how": "late"}, timeout_ms=10).error_code is ErrorCode.TIMEOUT


def test_what_a_call_is_refused_for_is_raised() -> None:
    with pytest.raises(InputError, match=r"\$\.times: expected integer"):
        run_headless(shout, {"text": "a", "times": "b"})
    with pytest.raises(InputError, match="text"):
        run_headless(shout)

    @tool(description="Works.")
    def inline_only() -> str:
        return ""

    with pytest.raises(UnsupportedModeError, match="'headless' is not supported"):
        run_headless(inline_only)
    for other in (len, "no/such/folder", lambda: 1):
        with pytest.raises(DeclarationError):
            run_headless(other)


def test_the_context_is_that_of_a_job_and_its_token_is_kept_out_of_what_is_stored() -> None:
    @tool(**HEADLESS)
    def tells(*, context: Context) -> dict[str, Any]:
        return {
            "owner": context.owner,
            "token": context.auth_token,
            "is_it": context.auth_token == "sentinel-token",
            "job": context.job_id,
            "timeout": context.timeout_ms,
        }

    run = run_headless(tells, auth_token="sentinel-token", owner="ana", timeout_ms=9_000)
    assert run.result == {
        "owner": "ana",
        "token": "[redacted]",
        "is_it": True,
        "job": run.job.job_id,
        "timeout": 9_000,
    }


def test_it_may_be_called_inside_an_event_loop() -> None:
    async def main() -> Any:
        return run_headless(shout, {"text": "a"}).result

    assert asyncio.run(main()) == {"result": "A"}


def test_a_decorated_tool_with_a_process_of_its_own_runs_here() -> None:
    here: list[int] = []

    @tool(**HEADLESS, isolation="process")
    def apart() -> int:
        here.append(1)
        return 1

    assert run_headless(apart).result == {"result": 1}
    assert here == [1]


class TestContract:
    def folder(self, tmp_path: Path, **agents: Any) -> Path:
        home = tmp_path / "word-count"
        home.mkdir()
        config = {
            "invocation": {
                "version": "1.0.0",
                "prefill": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
                "returnTopic": {"type": "object", "properties": {"words": {"type": "integer"}}},
            },
            "agents": {"version": "1.0.0", "invokable": True, "executionModes": ["headless"], **agents},
        }
        (home / "pptb.config.json").write_text(json.dumps(config))
        (home / "headless.py").write_text(
            "def invokeHeadless(input, context):\n"
            "    context.logger.info('counting')\n"
            "    context.updateProgress(30, 'on')\n"
            "    return {'words': len(input['text'].split())}\n"
        )
        return home

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_folder_runs(self, kind: Any, tmp_path: Path) -> None:
        run = run_headless(kind(self.folder(tmp_path)), {"text": "a b"})
        assert run.result == {"words": 2}, run.error
        assert (run.log, run.progress) == (("counting",), ((30, "on"),))

    def test_faults_of_a_folder_are_told(self, tmp_path: Path) -> None:
        home = self.folder(tmp_path, modes=["both"])
        with pytest.raises(DeclarationError, match=r"agents\.modes\[0\]"):
            run_headless(home, {"text": "a b"})
