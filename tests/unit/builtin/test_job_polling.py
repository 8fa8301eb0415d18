"""What the built-in prompt tells an agent: only what the app's answers really hold."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from shared.auth import TOKEN_HEADER
from shared.builtin.job_polling import job_polling
from shared.contract.envelope import split
from shared.errors import ToolError
from shared.jobs.model import Status
from shared.tool import tool
from shared.tool.binding import acceptance_schema
from shared.tool.decorator import declared
from shared.tool.spec import ExecutionMode, Mode, ToolSpec


@tool(execution_modes=("inline", "headless"), modes=("one-way", "two-way"))
def both() -> str:
    """Both."""
    return ""


@tool(execution_modes=("headless",))
def waits() -> str:
    """Waits."""
    return ""


@tool
def inline() -> str:
    """Inline."""
    return ""


def specs() -> list[ToolSpec]:
    return [found.spec for function in (both, waits, inline) if (found := declared(function))]


def told(name: str | None) -> str:
    answer = asyncio.run(job_polling(specs)(name))
    assert isinstance(answer, str)
    return answer


@pytest.mark.parametrize("name", [None, "BOTH", "waits"])
def test_the_envelopes_it_shows_are_legal(name: str | None) -> None:
    text = told(name)
    shown = re.findall(r'`("__pptb": \{.*?\})`', text)
    assert shown
    for piece in shown:
        arguments: dict[str, Any] = json.loads("{" + piece + "}")
        _, envelope = split(arguments)
        assert envelope.execution_mode is ExecutionMode.HEADLESS
        assert envelope.mode is (Mode.TWO_WAY if name == "waits" else Mode.ONE_WAY)


def test_the_words_it_uses_are_those_of_the_answers() -> None:
    text = told(None)
    accepted = acceptance_schema()["properties"]
    assert TOKEN_HEADER in text
    for word in ("jobId", "statusUrl", "waitLimitMs"):
        assert word in accepted
        assert f"`{word}`" in text
    for status in Status:
        assert f"`{status}`" in text


def test_a_tool_that_only_waits_is_not_told_of_one_way() -> None:
    assert "one-way" not in told("waits")
    assert "instead" not in told("waits")
    assert "'waits'" in told("waits")
    assert "instead" in told("both")


def test_a_tool_that_does_not_run_as_a_job() -> None:
    assert told("inline").startswith("The tool 'inline' does not run as a job: its execution modes are inline.")


def test_an_unknown_tool_is_a_fault_with_the_known_ones() -> None:
    with pytest.raises(ToolError, match=r"no tool 'other'\. Known tools: both, inline, waits"):
        told("other")
