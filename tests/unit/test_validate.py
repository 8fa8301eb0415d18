from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.discovery import find_tools
from shared.validate import schema_faults

ROOT = Path(__file__).resolve().parents[2]
GOOD = 'from shared.tool import tool\n@tool\ndef {name}() -> str:\n    """Says hi."""\n    return "hi"\n'


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shared.validate", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_shipped_tools_have_no_fault() -> None:
    for entry in find_tools(ROOT / "tools").tools.values():
        assert schema_faults(entry.spec) == []
    done = run("tools")
    assert (done.returncode, done.stdout.splitlines()[-1].split(", ")[1]) == (0, "0 fault(s)")


@pytest.mark.parametrize(
    "schema",
    [{"type": "no-such-type"}, {"type": "object", "required": "a"}, {"type": "object", "properties": {"a": 5}}],
)
def test_a_schema_that_is_none_is_found(schema: Any) -> None:
    @tool(result_schema=schema)
    def sample() -> Any:
        """Sample."""

    entry = declared(sample)
    assert entry is not None
    (fault,) = schema_faults(entry.spec)
    assert fault.startswith("tool 'sample': result schema: $")


def test_a_default_that_would_be_refused_is_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "defaulttools" / "odd"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from typing import Annotated, Literal\n"
        "from pydantic import BaseModel, Field\n"
        "from shared.tool import tool\n"
        "class Inner(BaseModel):\n    n: int = 'one'\n    fine: int | None = None\n"
        "@tool\n"
        "def odd(inner: Inner, a: Literal['x'] = 'y', b: Annotated[int, Field(ge=5)] = 3) -> str: 'Odd.'\n"
        "@tool\n"
        "def worse(a: Annotated[int, Field(json_schema_extra={'type': 5})] = 3) -> str: 'Worse.'\n"
    )
    done = run("--json", str(folder))
    told = json.loads(done.stdout)
    assert [fault["reason"].split(":")[0] for fault in told["faults"]] == ["tool 'worse'"]
    assert [warning["reason"] for warning in told["warnings"]] == [
        "tool 'odd': the default of 'a' does not fit its schema: $: value must be x, got string",
        "tool 'odd': the default of 'b' does not fit its schema: $: must be at least 5, got a smaller integer",
        "tool 'odd': the default of 'n' does not fit its schema: $: expected integer, got string",
    ]


BROKEN: Any = {
    "type": "object",
    "properties": {"a": {"type": "no-such-type"}, "b": {"type": "string", "pattern": "("}},
    "patternProperties": {"[": {}},
}


def test_every_fault_of_a_schema_is_found() -> None:
    @tool(result_schema=BROKEN, execution_modes=("inline", "headless"))
    def sample() -> Any:
        """Sample."""

    entry = declared(sample)
    assert entry is not None
    arguments: Any = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/none"},
            "b": {"type": "string", "pattern": "*"},
            "c": {"$ref": "https://example.com/c.json"},
        },
    }
    faults = schema_faults(dataclasses.replace(entry.spec, input_schema=arguments))
    for said in (
        "tool 'sample': input schema: $.properties.b.pattern: '*' is no regular expression",
        "tool 'sample': input schema: $.properties.a.$ref: '#/$defs/none' points at no schema",
        "tool 'sample': input schema: $.properties.c.$ref: 'https://example.com/c.json' is outside",
        "tool 'sample': result schema: $.anyOf[0].properties.a.type",
        "tool 'sample': result schema: $.anyOf[0].properties.b.pattern: '(' is no regular expression",
        "tool 'sample': result schema: $.anyOf[0].patternProperties: '[' is no regular expression",
    ):
        assert any(fault.startswith(said) for fault in faults), (said, faults)
    assert len(faults) == 6


SAID_OF_MIXED = (
    "tool 'one': write a docstring",
    "'a' has no annotation",
    "'#/none' points at no schema",
    "resource 'two': uri must be absolute",
    "mime_type must be like",
    "size must be a number of bytes",
    "prompt 'three': write a docstring",
    "parameter 'n' must be annotated str",
    "metadata is no JSON",
    "tool 'four': result schema: $.patternProperties",
)


def test_all_faults_of_one_module_are_listed(tmp_path: Path) -> None:
    code = (
        "from shared.tool import prompt, resource, tool\n"
        "@tool(result_schema={'$ref': '#/none'})\ndef one(a): pass\n"
        "@resource(uri='nowhere', size=-1, mime_type='x')\ndef two() -> str: 'R.'\n"
        "@prompt(metadata='[')\ndef three(n: int) -> str: pass\n"
        "@tool(result_schema={'type': 'object', 'patternProperties': {'(': {}}})\ndef four() -> None: 'T.'\n"
    )
    for folder in ("mixed", "other"):
        (tmp_path / "manytools" / folder).mkdir(parents=True)
    (tmp_path / "manytools" / "mixed" / "__init__.py").write_text(code)
    (tmp_path / "manytools" / "other" / "__init__.py").write_text(GOOD.format(name="other"))
    for path, names in (("manytools", ["four", "other"]), ("manytools/mixed", ["four"])):
        done = run("--json", str(tmp_path / path))
        assert done.returncode == 1
        told = json.loads(done.stdout)
        reasons = " | ".join(fault["reason"] for fault in told["faults"])
        for said in SAID_OF_MIXED:
            assert said in reasons
        assert len(told["faults"]) == 4
        assert told["tools"] == names


def test_all_faults_of_all_folders_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "sometools"
    codes = {
        "bad_code": "raise RuntimeError('no luck')\n",
        "bad_tool": "from shared.tool import tool\n@tool\ndef f(a, b) -> str:\n    pass\n",
        "bad_schema": GOOD.format(name="bad_schema").replace("@tool", "@tool(result_schema={'type': 'nope'})"),
        "good": GOOD.format(name="good"),
    }
    for name, code in codes.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(code)
    done = run(str(folder))
    assert done.returncode == 1
    for said in ("bad_code: cannot be imported: RuntimeError in __init__.py, line 1: no luck",
                 "'a' has no annotation",
                 "'b' has no annotation", "docstring", "bad_schema: tool 'bad_schema': result schema: $",
                 "2 tool(s), 3 fault(s), 0 warning(s)"):  # fmt: skip
        assert said in done.stdout
    listed = json.loads(run("--json", str(folder)).stdout)
    assert sorted(fault["folder"] for fault in listed["faults"]) == ["bad_code", "bad_schema", "bad_tool"]
    assert sorted(listed["tools"]) == ["bad_schema", "good"]


def test_names_and_uris_of_the_app_itself_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "takentools" / "usurper"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        "from shared.tool import prompt, resource, tool\n"
        "@tool(name='Job_Status')\ndef one() -> str: 'T.'\n"
        "@resource(uri='toolbox://tools')\ndef two() -> str: 'R.'\n"
        "@prompt(name='job_polling')\ndef three() -> str: 'P.'\n"
    )
    for path in (folder, folder.parent):
        done = run("--json", str(path))
        assert done.returncode == 1
        told = json.loads(done.stdout)
        assert told["tools"] == []
        assert [fault["reason"] for fault in told["faults"]] == [
            "its tool 'Job_Status' has the name of one in 'the app itself'; rename it",
            "its resource 'two' has the uri of one in 'the app itself'; change it",
            "its prompt 'job_polling' has the name of one in 'the app itself'; rename it",
        ]


def test_the_folder_of_tools_may_be_a_package(tmp_path: Path) -> None:
    folder = tmp_path / "tools" / "hello"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text(GOOD.format(name="hello"))
    assert json.loads(run("--json", str(folder.parent)).stdout)["tools"] == ["hello"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = run(str(tmp_path / "none"))
    assert done.returncode == 2
    assert "is no folder" in done.stderr


CONTRACT = {
    "invocation": {"version": "1.0.0", "prefill": {"properties": {"name": {"type": "string"}}}},
    "agents": {"version": "1.0.0", "invokable": True, "modes": ["one-way", "two-way"], "timeoutMS": 12000},
}


def test_contracts_are_checked_with_the_others_or_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mixedtools"
    for name, document in (
        ("fine", CONTRACT),
        ("broken", {"agents": {"invokable": True, "modes": ["both"], "timeoutMS": -1, "colour": "red"}}),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "pptb.config.json").write_text(json.dumps(document))
        (folder / name / "headless.py").write_text("def invokeHeadless(input, context):\n    return {}\n")
    (folder / "plain").mkdir()
    (folder / "plain" / "__init__.py").write_text(GOOD.format(name="plain"))
    done = run(str(folder))
    assert done.returncode == 1
    for said in ("$.agents.version", "$.agents.modes", "$.agents.timeoutMS", "colour", "2 tool(s)"):
        assert said in done.stdout
    for name, code in (("fine", 0), ("broken", 1), ("plain", 0)):
        alone = run("--json", str(folder / name))
        assert alone.returncode == code, alone.stdout
        assert json.loads(alone.stdout)["tools"] == ([] if code else [name])
