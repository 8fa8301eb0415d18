"""From a folder to a tool: what it comes down to, and that nothing in a folder can break the app."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shared.contract.config import Contract
from shared.contract.differences import DIFFERENCES
from shared.contract.execution import Folder, execution_modes
from shared.contract.findings import Findings, Severity
from shared.contract.reading import parse_object
from shared.contract.tool import Checked, check_contract, find_contracts
from shared.contract.validation import check_document
from shared.errors import ToolError
from shared.tool.discovery import unique
from shared.tool.spec import ExecutionMode, Isolation, Mode, ToolSpec
from tests.unit.contract.pptb import write_tool

ROOT = Path(__file__).resolve().parents[3]
ENTRY = '"""Counts rows."""\ndef invokeHeadless(input, context):\n    return {"n": len(input)}\n'


def config(prefill: Any = None, return_topic: Any = None, **agents: Any) -> dict[str, Any]:
    invocation: dict[str, Any] = {"version": "1.0.0"}
    if prefill is not None:
        invocation["prefill"] = prefill
    if return_topic is not None:
        invocation["returnTopic"] = return_topic
    return {"invocation": invocation, "agents": {"version": "1.0.0", "invokable": True, **agents}}


def spec(folder: Path, document: Any, **around: Any) -> ToolSpec:
    found = check_contract(
        write_tool(folder / "row_counter", document, **{"entry": ENTRY, **around}), strict=True
    )
    assert found.tool is not None, found.errors
    return found.tool.spec


def errors(folder: Path, document: Any, **around: Any) -> str:
    return "; ".join(check_contract(write_tool(folder / "t", document, **{"entry": ENTRY, **around})).errors)


def test_two_files_are_a_tool(tmp_path: Path) -> None:
    found = spec(tmp_path, config())
    assert (found.name, found.tool_id, found.title) == ("row-counter", "row_counter", "row_counter")
    assert found.description == "Counts rows. [modes: two-way; default: two-way; returnsData: no]"
    assert found.input_schema == {"type": "object", "properties": {}}
    assert found.result_schema is None
    assert found.rules.execution_modes == (ExecutionMode.HEADLESS,)
    assert found.rules.default_execution_mode is ExecutionMode.HEADLESS
    assert found.rules.max_attempts == 1
    assert found.timeout_ms == 120_000


def test_it_runs(tmp_path: Path) -> None:
    found = check_contract(write_tool(tmp_path / "t", config(), entry=ENTRY))
    assert found.tool is not None
    handler = found.tool.load()
    assert handler is found.tool.load()
    assert handler.finish(handler.run({"a": 1}, None)).structured == {"n": 1}


def test_integers_arrive_as_such(tmp_path: Path) -> None:
    entry = "def invokeHeadless(input, context):\n    return {'x': ['x'] * input['n']}\n"
    prefill = {"properties": {"n": {"type": "integer"}}}
    found = check_contract(write_tool(tmp_path / "t", config(prefill), entry=entry))
    assert found.tool is not None
    handler = found.tool.load()
    assert handler.run(handler.check_input({"n": 2.0}), None) == {"x": ["x", "x"]}


def test_many_first_calls_make_one_handler(tmp_path: Path) -> None:
    slow = f"import time\ntime.sleep(0.05)\n{ENTRY}"
    found = check_contract(write_tool(tmp_path / "t", config(), entry=slow)).tool
    assert found is not None
    handlers: list[Any] = []
    threads = [threading.Thread(target=lambda: handlers.append(found.load())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(handlers) == 8
    assert len(set(map(id, handlers))) == 1


def test_our_own_fields(tmp_path: Path) -> None:
    own = {"idempotent": True, "isolation": "thread", "timeoutMS": 1500.0}
    found = spec(tmp_path, config(**own, modes=["one-way", "two-way"]))
    assert found.rules.max_attempts == 3
    assert found.annotations.idempotent is True
    assert found.rules.timeout_ms == 1500
    assert spec(tmp_path, config(**own, maxAttempts=2)).rules.max_attempts == 2
    apart = {**own, "isolation": "process"}
    assert spec(tmp_path, config(**apart)).rules.isolation is Isolation.PROCESS
    said = errors(tmp_path, config(maxAttempts=11, isolation="container", idempotent=1))
    assert "$.agents.maxAttempts: must be a whole number from 1 to 10, got integer 11" in said
    assert "$.agents.isolation: must be one of 'thread', 'process'" in said
    assert "$.agents.idempotent: must be true or false" in said


def test_the_apps_limit_of_the_timeout_counts(tmp_path: Path) -> None:
    folder = write_tool(tmp_path / "t", config(timeoutMS=60_001), entry=ENTRY)
    assert check_contract(folder, max_timeout_ms=60_001).errors == []
    (said,) = check_contract(folder, max_timeout_ms=60_000).errors
    assert said.startswith(
        "$.agents.timeoutMS: must be a number of milliseconds from 1 to 60000, got integer 60001"
    )
    assert "TOOLBOX_MAX_TIMEOUT_MS" in said


def test_the_default_in_the_description_is_what_a_call_gets(tmp_path: Path) -> None:
    both = ["two-way", "one-way"]
    assert "default: one-way; returnsData: no" in spec(tmp_path, config(modes=both)).description
    data = {"properties": {"n": {"type": "integer"}}}
    assert "default: two-way; returnsData: yes" in spec(tmp_path, config(None, data, modes=both)).description
    declared = spec(tmp_path, config(modes=both, defaultMode="two-way"))
    assert "default: two-way; returnsData: no" in declared.description
    assert declared.rules.resolve_mode(returns_data=False) is Mode.TWO_WAY


@pytest.mark.parametrize("name", ["package.json", "pyproject.toml"])
def test_a_package_file_that_cannot_be_read_is_a_fault(name: str, tmp_path: Path) -> None:
    write_tool(tmp_path / "t", config(), entry=ENTRY)
    (tmp_path / "t" / name).write_text("{ no")
    found = check_contract(tmp_path / "t")
    assert found.tool is None
    assert [text.partition(":")[0] for text in found.errors] == [f"{name} $"]


def test_metadata_of_packages(tmp_path: Path) -> None:
    folder = write_tool(tmp_path / "t", config(), entry="def invokeHeadless(a, b): ...\n")
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "rows"\ndescription = "From Python."\n[tool.toolbox]\ndisplayName = "Row Tool"\n'
    )
    found = check_contract(folder).tool
    assert found is not None
    assert (found.spec.name, found.spec.tool_id) == ("row-tool", "rows")
    assert found.spec.description.startswith("From Python. [modes")
    (folder / "package.json").write_text(
        '\ufeff{"name": "@c/rows", "displayName": "NPM Rows", "main": "x.html"}'
    )
    found = check_contract(folder).tool
    assert found is not None
    assert (found.spec.name, found.spec.title, found.spec.tool_id) == ("npm-rows", "NPM Rows", "@c/rows")
    (folder / "package.json").write_text('{"name": 5, "displayName": ["x"]}')
    assert check_contract(folder).errors == [
        "package.json $.displayName: must be a string, got array",
        "package.json $.name: must be a string, got integer 5",
    ]


def test_without_a_description_there_is_a_warning(tmp_path: Path) -> None:
    found = check_contract(write_tool(tmp_path / "t", config(), entry="def invokeHeadless(a, b): ...\n"))
    assert found.tool is not None
    assert [item.text for item in found.findings] == ["the tool has no description, and agents choose by it"]
    assert found.tool.spec.description.startswith("t [modes")


@pytest.mark.parametrize(
    ("agents", "entry", "page", "expected"),
    [
        ({}, True, False, ("headless",)),
        ({}, False, True, ("windowed",)),
        ({}, True, True, ("windowed", "headless")),
        ({}, False, False, "$.agents: No headless runtime entry found"),
        ({"headless": True}, True, False, ("headless",)),
        ({"headless": True}, True, True, ("windowed", "headless")),
        ({"headless": True}, False, True, "$.agents.headless: No headless runtime entry found"),
        ({"headless": False}, True, True, ("windowed",)),
        ({"headless": False}, True, False, "headless is false, and there is no ui/index.html"),
        ({"headless": False, "executionModes": ["headless"]}, True, False, ("headless",)),
        ({"executionModes": ["inline", "headless"]}, True, False, ("inline", "headless")),
        ({"executionModes": ["inline"]}, False, True, "$.agents.executionModes: No headless runtime entry"),
        (
            {"executionModes": ["windowed"]},
            True,
            False,
            "'windowed' needs a page, and there is no ui/index.html",
        ),
    ],
)
def test_execution_modes_follow_what_is_there(agents: Any, entry: bool, page: bool, expected: Any) -> None:
    contract = check_document(config(**agents), Findings())
    assert contract.agents is not None
    found = Findings()
    modes = execution_modes(contract.agents, Folder(entry, page), found)
    if isinstance(expected, str):
        assert any(expected in str(item) for item in found.all)
        assert found.error_count
    else:
        assert modes is not None
        assert (modes[0], found.error_count) == (expected, 0)
        assert modes[1] == ("windowed" if "windowed" in expected else expected[0])


def test_a_wrong_invokable_hides_no_other_fault(tmp_path: Path) -> None:
    folder = write_tool(tmp_path / "t", config(invokable="true", headlessEntry="../x.py"), entry=ENTRY)
    (folder / "package.json").write_text("{")
    found = check_contract(folder)
    for said in ("$.agents.invokable: must be true or false", "'../x.py' leaves", "package.json $: is no JSON"):
        assert said in "; ".join(found.errors)
    assert found.texts(Severity.NOTE) == []
    assert found.tool is None


@pytest.mark.parametrize("modes", [[], ["x"], None, "inline"])
def test_illegal_execution_modes_are_told_once(modes: Any, tmp_path: Path) -> None:
    told = errors(tmp_path, config(executionModes=modes, defaultExecutionMode="inline"))
    assert told.startswith("$.agents.executionModes")
    assert "defaultExecutionMode" not in told


def test_an_entry_for_the_original_is_named(tmp_path: Path) -> None:
    folder = write_tool(tmp_path / "t", config())
    (folder / "dist").mkdir()
    (folder / "dist" / "headless.js").write_text("")
    assert "dist/headless.js cannot run here" in "; ".join(check_contract(folder).errors)


def test_a_tool_for_a_window_only_refuses_to_run_by_itself(tmp_path: Path) -> None:
    found = check_contract(write_tool(tmp_path / "t", config(), page=True))
    assert found.tool is not None
    assert not any("windowed" in str(item) for item in found.findings)
    with pytest.raises(ToolError, match="runs in a window only"):
        found.tool.load().run({}, None)


def test_one_fault_a_folder_and_the_others_work(tmp_path: Path) -> None:
    write_tool(tmp_path / "good", config(), entry=ENTRY)
    write_tool(tmp_path / "bad", {"agents": {"invokable": True, "modes": [], "timeoutMs": 5}}, entry=ENTRY)
    write_tool(tmp_path / "null", "null")
    (tmp_path / "plain").mkdir()
    (tmp_path / "a-file").write_text("")
    contracts = find_contracts(tmp_path)
    assert [name for name, _ in contracts.entries] == ["good"]
    assert {fault.folder: fault.reason for fault in contracts.faults} == {
        "bad": (
            "$.agents.modes: must not be empty; name one or more of 'one-way', 'two-way'; "
            '$.agents.version: is required; write a version such as "1.0.0"'
        ),
        "null": "$: must be a JSON object, got null",
    }
    assert [warning.folder for warning in contracts.warnings] == ["bad"]
    assert find_contracts(tmp_path / "nowhere") == ([], [], [])


def test_reading_contracts_loads_nothing_heavy(tmp_path: Path) -> None:
    schema = {"properties": {"a": {"type": "string", "format": "uuid", "pattern": "^a"}}}
    write_tool(tmp_path / "t", config(schema, schema), entry="raise RuntimeError('not at load')\n")
    script = (
        "import sys; from pathlib import Path; from shared.contract.tool import find_contracts\n"
        "found = find_contracts(Path(sys.argv[1])); assert len(found.entries) == 1, found\n"
        "print([name for name in ('jsonschema', 'pydantic', 'httpx', 'azure.data') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# One row of the table, one contract.


def prefilled(schema: Any) -> Any:
    return config(schema)


def prop(**schema: Any) -> Any:
    return config({"properties": {"a": schema, "b": {}}})


EXAMPLES: dict[tuple[str, str], Any] = {
    ("(file)", "no JSON, no object, BOM"): "\ufeff{}",
    ("(file)", "a key twice"): json.dumps(config())[:-1] + ', "invocation": {"version": "1.0.0"}}',
    ("(any key)", "unknown"): {**config(), "Agents": 1},
    ("agents", "no object"): {"agents": []},
    ("agents.version", "absent, no version"): {"agents": {"invokable": True}},
    ("agents.invokable", "no boolean"): config(invokable="true"),
    ("agents.modes", "illegal members"): config(modes=["two-way", "x"]),
    ("agents.modes", "[]"): config(modes=[]),
    ("agents.modes", "a mode twice"): config(modes=["two-way", "two-way"]),
    ("agents.defaultMode", "illegal, or not in modes"): config(modes=["one-way"], defaultMode="two-way"),
    ("agents.defaultMode", "one-way without modes"): config(defaultMode="one-way"),
    ("agents.timeoutMS", "no number, 0, below 0 or 1"): config(timeoutMS=0.5),
    ("agents.timeoutMS", "above the app's limit"): config(timeoutMS=1e300),
    ("agents.timeoutMS", "a fraction"): config(timeoutMS=5.5),
    ("agents.executionModes", "illegal members"): config(executionModes=["headless", "zzz"]),
    ("agents.executionModes", "[]"): config(executionModes=[]),
    ("agents.executionModes", "headless without an entry"): (
        config(executionModes=["headless"]),
        {"entry": None},
    ),
    ("agents.executionModes", "windowed without a page"): config(executionModes=["windowed"]),
    ("agents.defaultExecutionMode", "not in executionModes"): config(defaultExecutionMode="inline"),
    ("agents.headless", "no boolean"): config(headless="yes"),
    ("agents.headless", "against executionModes"): config(headless=False, executionModes=["headless"]),
    ("agents.headlessEntry", "no text, blank"): config(headlessEntry=" "),
    ("agents.headlessEntry", "no such file, a folder"): config(headlessEntry="x.py"),
    ("agents.headlessEntry", "outside the folder"): config(headlessEntry="../x.py"),
    ("invocation.capabilities", "unknown tag"): {
        **config(),
        "invocation": {"version": "1.0.0", "capabilities": ["x"]},
    },
    ("invocation.prefill", "a bare map of properties"): prefilled({"a": {"type": "string"}}),
    ("invocation.prefill", "a root of another type"): prefilled({"type": "array"}),
    ("invocation.prefill", "unknown type"): prop(type="date"),
    ("invocation.prefill", "illegal keyword values"): prop(minLength=-1),
    ("invocation.prefill", "unknown keyword"): prop(minLenght=1),
    ("invocation.prefill", "enum: []"): prop(enum=[]),
    ("invocation.prefill", "an enum member of another type"): prop(type="string", enum=["a", 1]),
    ("invocation.prefill", "items as a list"): prop(items=[{}]),
    ("invocation.prefill", 'required: "true"'): prop(required="true"),
    ("invocation.prefill", "required: true beside a list"): prefilled(
        {"properties": {"a": {"required": True}, "b": {}}, "required": ["b"]}
    ),
    ("invocation.prefill", "a required name that is not declared"): prefilled(
        {"properties": {"entity": {}}, "required": ["entiyt"]}
    ),
    ("invocation.prefill", "required without properties"): prefilled({"type": "object", "required": ["a"]}),
    ("invocation.prefill", "a name required twice"): prefilled(
        {"properties": {"a": {}}, "required": ["a", "a"]}
    ),
    ("invocation.prefill", "a property that is no object"): prefilled({"properties": {"a": True}}),
    ("invocation.prefill", "a property __pptb"): prefilled({"properties": {"__pptb": {}}}),
    ("invocation.prefill", "$ref out of the schema"): prop(**{"$ref": "https://example.com/s.json"}),
    ("displayName", "no letter a-z, no digit"): (config(), {"display_name": "🚀"}),
    ("displayName", "a name above 64 characters"): (config(), {"display_name": "x" * 65}),
    ("displayName", "a name that another tool has"): None,
}


def test_the_table_has_an_example_for_each_row() -> None:
    assert [(row.field, row.value) for row in DIFFERENCES] == list(EXAMPLES)


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.field} {row.value}")
def test_the_table_of_differences_holds(row: Any, tmp_path: Path) -> None:
    example_of = EXAMPLES[row.field, row.value]
    if example_of is None:
        for name in ("a", "b"):
            write_tool(tmp_path / name, config(), entry=ENTRY, display_name="Same")
        entries = find_contracts(tmp_path).entries
        assert unique("tool", entries, lambda entry: {"name": entry.spec.name})[1]
        return
    document, around = example_of if isinstance(example_of, tuple) else (example_of, {})
    found = check_contract(write_tool(tmp_path / "t", document, **{"entry": ENTRY, **around}))
    at_field = [
        item for item in found.findings if row.field.startswith(("(", "disp")) or row.field in item.path
    ]
    assert row.severity in {item.severity for item in at_field}, found.findings
    assert (found.tool is None) == (row.severity is Severity.ERROR)


# Nothing in a folder can break the app.

WORDS = st.sampled_from(
    [
        "invocation", "agents", "version", "prefill", "returnTopic", "capabilities", "invokable", "modes",
        "defaultMode", "timeoutMS", "headless", "executionModes", "defaultExecutionMode", "headlessEntry",
        "maxAttempts", "isolation", "idempotent", "properties", "type", "required", "items", "enum", "$ref",
        "$defs", "#/$defs/a", "anyOf", "allOf", "if", "additionalProperties", "pattern", "minLength",
        "multipleOf", "const", "default", "format", "__pptb", "__proto__", "constructor", "object", "string",
        "integer", "one-way", "two-way", "inline", "windowed", "1.0.0", "headless.py", "../x.py", "a",
    ]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=5), st.just(10**400)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(WORDS, st.text(max_size=3)), inner, max_size=5)
    ),
    max_leaves=25,
)
SECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "invocation": st.one_of(JSON, st.fixed_dictionaries({"version": st.just("1.0.0")}, optional={
            "prefill": JSON, "returnTopic": JSON, "capabilities": JSON})),
        "agents": st.one_of(JSON, st.dictionaries(WORDS, JSON)),
    },
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.one_of(JSON, SECTIONS))
@example({"invocation": {"version": "1.0.0", "prefill": {"properties": {"a": {"type": ["string", {}, []]}}}}})
@example(
    {"invocation": {"version": "1.0.0", "prefill": {"properties": {"a": {"type": {"a": 1}, "enum": [1]}}}}}
)
def test_any_document_gives_a_contract_or_faults(document: Any) -> None:
    found = Findings()
    assert isinstance(check_document(document, found), Contract)
    assert all(str(item).encode() for item in found.all)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(SECTIONS.map(json.dumps), JSON.map(json.dumps), st.text(max_size=60)))
@example('{"agents": ' + "[" * 100_000)
def test_any_file_gives_a_tool_or_says_why_not(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "t"
    folder.mkdir(exist_ok=True)
    (folder / "headless.py").write_text(ENTRY)
    (folder / "pptb.config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    found: Checked = check_contract(folder, strict=True)
    assert found.tool is not None or found.findings


def test_a_deep_document_can_be_walked() -> None:
    """The deepest that is taken, from a thread whose stack is used already."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(122):
        schema = {"properties": {"n": schema}}
    found = Findings()
    document = parse_object(json.dumps(config(schema)), found)

    def deeper(levels: int, then: Callable[[], Any]) -> Any:
        return deeper(levels - 1, then) if levels else then()

    contract = deeper(100, lambda: check_document(document, found))
    assert found.error_count == 0
    assert contract.invocation.prefill is not None
