"""Locked tools as tools of the app: names, schemas, rules, results that break their promise, prompts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.errors import InputError
from shared.tool.binding import published_input_schema, trigger_fields
from shared.tool.context import Context
from shared.tool.prompts import PromptMessage, messages
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject
from shared.upstream.lock import Lock, LockedPrompt, LockedTool, Schemas
from shared.upstream.policy import Policy
from shared.upstream.publish import ORIGIN, UpstreamEntry, published, spec_of, united

from .test_lock import PROMPT, TOOL

CLOSED = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "note": {"type": ["string", "null"]}},
    "required": ["text"],
    "additionalProperties": False,
}
ECHO = replace(TOOL, scopes={"global": Schemas("h", CLOSED, {"type": "object", "required": ["text"]})})


class Calls:
    """Answers what it is told to."""

    def __init__(self, answer: ToolResult | None = None) -> None:
        self.answer = answer or ToolResult(structured={"text": "x"})
        self.asked: list[object] = []

    async def call(self, tool: LockedTool, arguments: JsonObject, context: Context) -> ToolResult:
        self.asked.append((tool.qualified, arguments))
        return self.answer

    async def prompt(self, prompt: LockedPrompt, arguments: dict[str, str | None]) -> list[Any]:
        self.asked.append((prompt.qualified, arguments))
        return [PromptMessage("user", "hello")]


def write(folder: Path, made: Lock) -> Path:
    path = folder / "upstream.lock.json"
    path.write_text(made.to_text(), "utf-8")
    return path


def test_every_locked_tool_is_an_entry_but_for_disabled_and_denied_ones(tmp_path: Path) -> None:
    made = Lock(
        "safe",
        (
            ECHO,
            replace(ECHO, tool="off", name="docs_off", disabled=True),
            replace(ECHO, tool="delete_all", name="docs_delete_all"),
        ),
    )
    found = published(write(tmp_path, made), Policy.parse('{"deny": ["mcp:*:delete_*"]}'), Calls())
    assert [entry.spec.name for _, entry in found.tools] == ["docs_read_6e32feee"]
    assert found.tools[0][0] == "upstream 'docs'"
    assert found.faults == []


def test_a_tool_that_some_owner_may_call_is_there(tmp_path: Path) -> None:
    policy = Policy.parse('{"owners": {"*": {"deny": ["*"]}, "ana": {"allow": ["mcp:docs:*"]}}}')
    assert len(published(write(tmp_path, Lock("safe", (ECHO,))), policy, Calls()).tools) == 1


def test_a_damaged_lock_is_a_fault_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "upstream.lock.json"
    path.write_text("{")
    found = published(path, Policy(), Calls())
    assert (found.tools, found.prompts) == ([], [])
    assert found.faults[0].folder == "upstream.lock.json"


def test_the_trigger_takes_the_envelope_though_the_schema_is_closed() -> None:
    schema = published_input_schema(spec_of(ECHO))
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {"text", "note", "__pptb"}
    fields = trigger_fields(spec_of(ECHO))
    assert fields["tool_name"] == "docs_read_6e32feee"
    origin = json.loads(fields["metadata"])[ORIGIN]
    # Not in which scopes it is: whose projects have it is nobody else's business.
    assert origin == {"server": "docs", "tool": "read", "qualifiedName": "docs.read"}


def test_the_acceptance_of_a_job_fits_the_published_result_schema() -> None:
    published_schema = json.loads(trigger_fields(spec_of(ECHO))["output_schema"])
    assert {"type": "object", "required": ["text"]} in published_schema["anyOf"]


def test_a_tool_that_does_no_harm_may_run_again() -> None:
    assert spec_of(ECHO).rules.max_attempts == 3
    assert spec_of(replace(ECHO, annotations={})).rules.max_attempts == 1


def run(locked: LockedTool, answer: ToolResult, arguments: JsonObject | None = None) -> ToolResult:
    calls = Calls(answer)
    handler = UpstreamEntry(locked, calls).load()
    given = handler.check_input({"text": "x"} if arguments is None else arguments)
    context = Context(
        tool_id="t",
        tool_name="t",
        invocation_mode=spec_of(locked).rules.modes[0],
        execution_mode=spec_of(locked).rules.execution_modes[0],
        correlation_id="mcp-1",
        timeout_ms=1_000,
        owner="default",
    )
    result = handler.finish(asyncio.run(_awaited(handler.run(given, context))))
    assert calls.asked == [(locked.qualified, given)]
    return result


async def _awaited(value: Any) -> Any:
    return await value


def test_arguments_go_through_as_they_are_null_too() -> None:
    result = run(ECHO, ToolResult(structured={"text": "y"}), {"text": "x", "note": None})
    assert result.structured == {"text": "y"}


def test_arguments_that_do_not_fit_are_all_named() -> None:
    with pytest.raises(InputError) as caught:
        UpstreamEntry(ECHO, Calls()).load().check_input({"note": 5, "extra": 1})
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            ToolResult(({"type": "text", "text": "kept"},)),
            "sent no structured content, which its",
        ),
        (ToolResult(({"type": "text", "text": "kept"},), {"no": 1}), "does not fit its own schema: $.text"),
    ],
)
def test_a_broken_promise_is_an_error_that_keeps_what_was_sent(answer: ToolResult, said: str) -> None:
    result = run(ECHO, answer)
    assert result.is_error
    assert said in result.text
    assert "kept" in result.text
    assert result.structured is None


def test_an_error_need_not_keep_the_promise() -> None:
    failed = ToolResult(({"type": "text", "text": "no"},), is_error=True)
    assert run(ECHO, failed) == failed


def test_scopes_that_differ_are_published_as_what_fits_all() -> None:
    other = {
        "type": "object",
        "properties": {"text": {"type": "integer"}, "more": {"type": "string"}},
        "required": ["text", "more"],
    }
    locked = replace(
        ECHO,
        scopes={"global": ECHO.scopes["global"], "project:p": Schemas("h2", other, None)},
    )
    spec = spec_of(locked)
    assert spec.result_schema is None
    handler = UpstreamEntry(locked, Calls()).load()
    for fits in ({"text": "x"}, {"text": 5, "more": "m"}):
        assert handler.check_input(fits) == fits
    with pytest.raises(InputError):
        handler.check_input({"more": "m"})


def test_a_schema_without_properties_gets_empty_ones() -> None:
    """Some clients refuse a schema of an object that has none."""
    bare = replace(TOOL, scopes={"global": Schemas("h", {"type": "object"})})
    assert spec_of(bare).input_schema == {"type": "object", "properties": {}}


def test_definitions_of_scopes_that_disagree_leave_the_judgement_to_the_server() -> None:
    first = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    second = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}}
    assert united([first, second]) == {"type": "object", "properties": {"a": {}}}


def test_a_locked_prompt_asks_its_server(tmp_path: Path) -> None:
    calls = Calls()
    found = published(write(tmp_path, Lock("safe", (), (PROMPT,))), Policy(), calls)
    [(home, entry)] = found.prompts
    assert home == "upstream 'docs'"
    assert entry.spec.trigger_fields()["prompt_name"] == "docs_ask"
    told = asyncio.run(_awaited(entry.function(q="why")))
    assert calls.asked == [("docs.ask", {"q": "why"})]
    assert "hello" in messages(entry.spec, told)


def test_a_prompt_that_is_denied_to_all_is_none(tmp_path: Path) -> None:
    made = Lock("safe", (), (PROMPT, replace(PROMPT, prompt="other", name="docs_other")))
    found = published(write(tmp_path, made), Policy.parse('{"deny": ["mcp:docs:ask"]}'), Calls())
    assert [entry.spec.name for _, entry in found.prompts] == ["docs_other"]


def test_both_names_of_a_tool_are_known(tmp_path: Path) -> None:
    found = published(write(tmp_path, Lock("safe", (ECHO,))), Policy(), Calls())
    assert found.aliases == {"docs.read": "docs_read_6e32feee"}


def test_a_tool_that_is_published_dotted_still_has_its_alias(tmp_path: Path) -> None:
    """So that what was written for the one style goes on with the other."""
    made = Lock("dotted", (replace(ECHO, name="docs.read"),))
    found = published(write(tmp_path, made), Policy(), Calls())
    assert found.aliases == {"docs.read": "docs.read", "docs_read_6e32feee": "docs.read"}
