"""What the original's registry makes of a tool, against what comes of the same folder here.

A tool of the original always has a page, so `ui/index.html` stands in each folder; `headless.py` stands there
where the contract says headless.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.contract.names import slug
from shared.contract.tool import Checked, Contracts, check_contract, find_contracts
from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.discovery import unique
from shared.tool.spec import ToolSpec, returns_data
from tests.unit.contract.pptb import cases, defects, kept, write_tool

CASES = cases("contract-runtime.json")
ENTRY = "def invokeHeadless(input, context):\n    return {'ok': True}\n"


def write(folder: Path, given: Any) -> Path:
    config = given.get("configText", given.get("config"))
    agents = config.get("agents") if isinstance(config, dict) else None
    said = agents if isinstance(agents, dict) else {}
    headless = said.get("headless") is True or "headless" in said.get("executionModes", [])
    return write_tool(
        folder,
        config,
        display_name=given.get("displayName", "Tool One"),
        description=given.get("description", "Does one thing."),
        page=True,
        entry=ENTRY if headless else None,
    )


def checked(folder: Path, case: Any) -> Checked:
    return check_contract(write(folder / "tool-1", case["input"]), strict=True)


def spec_of(found: Checked) -> ToolSpec:
    assert found.tool is not None, found.errors
    return found.tool.spec


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any, tmp_path: Path) -> None:
    expected = case["output"]
    if case["input"].get("configText", "") is None:
        write(tmp_path / "tool-1", case["input"])
        assert find_contracts(tmp_path) == Contracts([], [], [])
        return
    found = checked(tmp_path, case)
    if not expected["exposed"]:
        assert found.tool is None
        assert any("not exposed to agents" in str(item) for item in found.findings)
        return
    spec = spec_of(found)
    rules = spec.rules
    assert list(rules.modes) == expected["modes"]
    assert rules.resolve_mode(returns_data=returns_data(spec)) == expected["defaultMode"]
    assert list(rules.execution_modes) == expected["executionModes"]
    assert rules.default_execution_mode == expected["defaultExecutionMode"]
    assert rules.timeout_ms == expected["timeoutMs"]
    assert spec.name == expected["mcpName"]
    # Ours is for people; the original publishes the name twice.
    assert slug(f"{case['input'].get('displayName', 'Tool One')}") == expected["title"]
    assert spec.title == case["input"].get("displayName", "Tool One").strip()
    assert spec.description == expected["description"]
    assert spec.input_schema == expected["inputSchema"]
    assert spec.result_schema == expected["outputSchema"]


def prefill(case: Any) -> Any:
    return case["input"]["config"]["invocation"]["prefill"]


def left_out(*said: str) -> Callable[[Checked, Any], None]:
    def check(found: Checked, case: Any) -> None:
        assert found.tool is None
        for part in said:
            assert any(part in text for text in found.errors), (part, found.errors)
        assert len(found.errors) == len(said)

    return check


def works(said: str | None, *, input_schema: Any = None, **rules: Any) -> Callable[[Checked, Any], None]:
    """Exposed, with a warning that says something; the published schemas have an object at their root."""

    def check(found: Checked, case: Any) -> None:
        spec = spec_of(found)
        told = [str(item) for item in found.findings]
        assert said is None or any(said in text for text in told), told
        if input_schema is not None:
            wanted = input_schema(case) if callable(input_schema) else input_schema
            assert spec.input_schema == wanted
        assert published_input_schema(spec)["type"] == "object"
        published = published_result_schema(spec)
        assert published is None or published["type"] == "object"
        for name, value in rules.items():
            assert getattr(spec.rules, name) == value

    return check


def whole_prefill(case: Any) -> Any:
    return {"type": "object", **prefill(case)}


def accepts_the_acceptance(found: Checked, case: Any) -> None:
    from jsonschema import Draft202012Validator

    published = published_result_schema(spec_of(found))
    assert published is not None
    validator = Draft202012Validator(published)
    assert validator.is_valid({"ok": True})
    assert not validator.is_valid({"other": 1})
    acceptance = {
        "status": "accepted", "executionMode": "headless", "mode": "one-way", "jobId": "1", "statusUrl": "/",
        "jobStatus": "pending",
    }  # fmt: skip
    assert validator.is_valid(acceptance)


EMPTY = {"type": "object", "properties": {}}
MENDED: dict[str, Callable[[Checked, Any], None]] = {
    "invokable-string-true": left_out("$.agents.invokable: must be true or false, got string 'true'"),
    "agents-array": left_out("$.agents: must be a JSON object, got array"),
    "config-with-bom": left_out("$: begins with a byte order mark"),
    "config-root-array": left_out("$: must be a JSON object, got array"),
    "config-duplicate-agents-key": works(
        "the key 'agents' stands twice", input_schema=EMPTY, modes=("one-way",)
    ),
    "modes-empty": left_out("$.agents.modes: must not be empty; name one or more of 'one-way', 'two-way'"),
    "modes-all-illegal": left_out("did you mean 'one-way'?", "$.agents.modes[1]: must be one of"),
    "defaultMode-not-in-modes": left_out("$.agents.defaultMode: must be included in agents.modes"),
    "defaultMode-illegal": left_out("$.agents.defaultMode: must be one of 'one-way', 'two-way'"),
    "exec-overrides-headless-true": works(
        "$.agents.headless: has no effect: it is true, and executionModes leave 'headless' out",
        execution_modes=("windowed",),
    ),
    "exec-default-not-in-list": left_out("$.agents.defaultExecutionMode: must be one of the tool's execution"),
    "timeout-wrong-spelling": works("$.agents.timeoutMs: 'timeoutMs' is not known", timeout_ms=None),
    "entry-outside-still-exposed": left_out("$.agents.headlessEntry: '../outside.js' leaves the tool's folder"),
    "schema-no-prefill": works(None, input_schema=EMPTY),
    "schema-no-invocation": works(None, input_schema=EMPTY),
    "schema-prefill-type-string": left_out("$.invocation.prefill.type: must be 'object' at the root"),
    "schema-returnTopic-array": left_out("$.invocation.returnTopic.type: must be 'object' at the root"),
    "schema-keywords-dropped": works(None, input_schema=whole_prefill),
    "schema-integer": works(None, input_schema=whole_prefill),
    "schema-combinators": left_out("$.invocation.prefill.properties.c.anyOf: must be a list of at least one"),
    "schema-required-flags": left_out("$.invocation.prefill.properties.b.required: must be a list"),
    "schema-required-unknown-names": left_out("'ghost' is no declared property", "''", "got integer 5"),
    "schema-required-without-properties": works(
        "$.invocation.prefill.required[0]: 'a' is no declared property",
        input_schema={"type": "object", "properties": {}, "required": ["a"]},
    ),
    "schema-items-without-array-type": left_out("properties.b.items: must be a schema"),
    "schema-property-not-object": left_out(*(f"properties.{name}: must be an object" for name in "abcd")),
    "schema-own-pptb-property": left_out(
        "$.invocation.prefill.properties.__pptb: is the name of the call's own"
    ),
    "schema-return-required-one-way": accepts_the_acceptance,
}
SEVERAL = {"two-tools-one-name", "tool-without-config-takes-name"}


def test_every_defect_is_mended() -> None:
    assert set(MENDED) | SEVERAL == defects(CASES)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] in MENDED], ids=lambda case: str(case["id"])
)
def test_mended(case: Any, tmp_path: Path) -> None:
    MENDED[case["id"]](checked(tmp_path, case), case)


def several(name: str, folder: Path) -> Contracts:
    case = next(case for case in CASES if case["id"] == name)
    for given in case["input"]["tools"]:
        write(folder / given["id"], given)
    return find_contracts(folder)


def test_two_tools_of_one_name(tmp_path: Path) -> None:
    """The first keeps the name, and the fault names both folders."""
    contracts = several("two-tools-one-name", tmp_path)
    kept_tools, clashes = unique("tool", contracts.entries, lambda entry: {"name": entry.spec.name})
    assert list(kept_tools) == ["alpha-tool-"]
    assert kept_tools["alpha-tool-"].spec.tool_id == "first"
    assert [(clash.folder, clash.reason) for clash in clashes] == [
        ("second", "its tool 'alpha-tool-' has the name of one in 'first'; rename either")
    ]


def test_a_folder_without_a_contract_takes_no_name(tmp_path: Path) -> None:
    contracts = several("tool-without-config-takes-name", tmp_path)
    assert [(folder, entry.spec.name) for folder, entry in contracts.entries] == [("open", "alpha-tool")]
    assert contracts.faults == []


def test_neither_does_one_that_exposes_nothing(tmp_path: Path) -> None:
    hidden = {"agents": {"version": "1.0.0", "invokable": False}}
    write_tool(tmp_path / "hidden", hidden, display_name="Alpha Tool")
    contracts = several("tool-without-config-takes-name", tmp_path)
    assert [folder for folder, _ in contracts.entries] == ["open"]
    assert [(note.folder, note.reason) for note in contracts.warnings] == [
        ("hidden", "$.agents.invokable: is false: the tool is not exposed to agents; set it to true")
    ]


def test_combinators_count_without_the_illegal_one(tmp_path: Path) -> None:
    case = json.loads(json.dumps(next(case for case in CASES if case["id"] == "schema-combinators")))
    del prefill(case)["properties"]["c"]
    assert spec_of(checked(tmp_path, case)).input_schema == whole_prefill(case)
