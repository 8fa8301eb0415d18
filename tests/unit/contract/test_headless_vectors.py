"""Which entry of a tool runs, and what its result is worth: the part of headless.json that needs no job.

Job records, progress, logs and timeouts of the same cases belong to the job engine's tests; `LATER` names the
cases that are about nothing else.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from shared.contract.tool import check_contract
from shared.errors import DeclarationError, ResultError, ToolboxError
from shared.tool import McpTextContent, McpToolResponse
from shared.tool.context import Context
from shared.tool.execution import run_on_own_thread
from shared.tool.spec import ExecutionMode, JsonObject, Mode
from tests.unit.contract.pptb import load, write_tool

DOCUMENT = load("headless.json")
CASES = {case["id"]: case for case in DOCUMENT["cases"]}
DEFAULTS = DOCUMENT["defaults"]
LATER = {
    "one-way-completes", "output-circular-one-way", "throws-error", "throws-error-one-way", "throws-object",
    "throws-empty-message", "throws-with-token", "progress-clamped-and-floored", "progress-not-a-number",
    "progress-kept-on-failure", "progress-message-not-text", "timeout-late-result", "timeout-two-way",
}  # fmt: skip
#: Every entry appends its name here when it runs.
RAN = "ran.txt"

KEPT = (
    "two-way-completes", "returns-empty-object", "entry-configured-wins", "entry-root", "entry-package-main",
    "export-default-function", "export-default-object", "export-module-syntax",
)  # fmt: skip
RETURN_OBJECT = "Headless runtime must return an object result"
#: What comes of the call instead, or in spite of the named defect: a result, or a part of the error's text.
MENDED: dict[str, JsonObject | str] = {
    "returns-list": RETURN_OBJECT,
    "returns-nothing": RETURN_OBJECT,
    "output-missing-required": "$.ok: required field is missing; $.n: required field is missing",
    "output-not-a-number": "Output validation failed: $.n: a number that JSON cannot hold",
    "output-circular-two-way": "the result refers to itself",
    "entry-none": "No headless runtime entry found; add agents.headlessEntry",
    "entry-configured-is-folder": "$.agents.headlessEntry: 'dist' must name a .py file",
    "entry-absolute": "must be relative to the tool's folder",
    "entry-link-out": "dist/headless.py: 'dist/headless.py' is a link that leaves the tool's folder",
    "export-default-compiled": {"ok": True, "from": "root"},
    "falls-through-after-throw": "failed after writing",
    "falls-through-both-throw": "first",
    "error-masked-by-html-main": "the real error",
}
#: Which entries ran, where that is not what the original ran.
MENDED_RAN: dict[str, list[str]] = {
    "entry-configured-is-folder": [],
    "entry-absolute": [],
    "entry-link-out": [],
    "export-default-compiled": ["headless.py"],
    "falls-through-after-throw": ["dist/headless.py"],
    "falls-through-both-throw": ["dist/headless.py"],
}


def python_name(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_suffix(".py")) if path.suffix in (".js", ".mjs", ".cjs") else name


def code(file: str, given: Any, log: Path) -> str:
    """A Python entry that does what the case's entry does."""
    body = [f"with open({str(log)!r}, 'a') as log: log.write({file + chr(10)!r})"]
    for step in given["steps"]:
        (kind, value), *_ = step.items()
        if kind == "return":
            body.append(f"return json.loads({json.dumps(value)!r})")
        elif kind == "throw":
            body.append(f"raise RuntimeError({value!r})")
        elif kind == "progress":
            body.append(f"context.updateProgress(*{value!r})")
        elif kind == "returnCounter":
            body += ["global count", "count += 1", "return {'ok': True, 'count': count}"]
        elif value == "nan":
            body.append("return {'n': float('nan')}")
        else:
            body += ["itself = {}", "itself['itself'] = itself", "return itself"]
    lines = ["import json", "count = 0", "def run(input, context):", *(f"    {line}" for line in body)]
    exported = {
        "default": "default = run",
        "invokeHeadless": "invokeHeadless = run",
        "default.invokeHeadless": "class Default:\n    invokeHeadless = staticmethod(run)\ndefault = Default()",
    }
    return "\n".join([*lines, exported[given.get("exports", "invokeHeadless")], ""])


def write(folder: Path, given: Any) -> Path:
    agents = {**DEFAULTS["agents"], **given.get("agents", {})}
    if "headlessEntry" in agents:
        entry = agents["headlessEntry"].replace("<path>", str(folder.parent))
        agents["headlessEntry"] = python_name(entry)
    invocation = {
        "version": "1.0.0",
        "prefill": given.get("prefill", DEFAULTS["prefill"]),
        "returnTopic": given.get("returnTopic", DEFAULTS["returnTopic"]),
    }
    write_tool(folder, {"invocation": invocation, "agents": agents})
    package = {
        "name": folder.name,
        "displayName": folder.name,
        "description": "D.",
        **given.get("packageJson", {}),
    }
    if "main" in package:
        package["main"] = str(
            PurePosixPath(package["main"]).parent / python_name(package["main"]).split("/")[-1]
        )
    (folder / "package.json").write_text(json.dumps(package))
    for name, content in given["files"].items():
        file = folder / python_name(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        if "linkTo" in content:
            file.symlink_to(python_name(content["linkTo"]))
        else:
            text = content["text"] if "text" in content else code(python_name(name), content, folder / RAN)
            file.write_text(text)
    return folder


def call(folder: Path) -> JsonObject | str:
    """One two-way call: the result, or the error's text."""
    found = check_contract(folder)
    if found.tool is None:
        return "; ".join(found.errors)
    context = Context(
        tool_id=found.tool.spec.tool_id,
        tool_name=found.tool.spec.name,
        invocation_mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.HEADLESS,
        correlation_id="mcp-1",
        timeout_ms=5000,
        owner="default",
    )
    try:
        handler = found.tool.load()
        value = asyncio.run(run_on_own_thread(handler, handler.check_input({}), context))
        result = handler.finish(value)
    except (ToolboxError, RuntimeError) as error:
        return str(error)
    assert result.structured is not None
    return result.structured


def ran(folder: Path) -> list[str]:
    log = folder / RAN
    return log.read_text().split() if log.exists() else []


def test_every_case_is_somewhere() -> None:
    assert set(CASES) == {*KEPT, *MENDED, *LATER, "module-state-shared"}
    assert {name for name in CASES if "defect" in CASES[name]} - LATER == set(MENDED)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "tool-1", CASES[name]["input"])
    expected = CASES[name]["output"]
    result = call(folder)
    assert result == expected["call"]["result"]
    assert ran(folder) == [python_name(file) for file in expected["ran"]]


@pytest.mark.parametrize("name", MENDED)
def test_mended(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "tool-1", CASES[name]["input"])
    result, wanted = call(folder), MENDED[name]
    if isinstance(wanted, str):
        assert isinstance(result, str)
        assert wanted in result
        assert name == "entry-absolute" or str(tmp_path) not in result
    else:
        assert result == wanted
    in_original = [python_name(file) for file in CASES[name]["output"]["ran"]]
    assert ran(folder) == MENDED_RAN.get(name, in_original)


def test_a_module_is_loaded_once_and_keeps_its_state(tmp_path: Path) -> None:
    case = CASES["module-state-shared"]
    folder = write(tmp_path / "first", case["input"]["tools"]["first"])
    assert [call(folder), call(folder)] == [answer["result"] for answer in case["output"]["calls"]]


@pytest.mark.parametrize("value", [[1], "text", 5, 1.5, True, None, b"x", {1, 2}, object()])
def test_only_an_object_is_a_result(value: Any) -> None:
    from shared.contract.handler import object_result

    with pytest.raises(ResultError):
        object_result(value)


@pytest.mark.parametrize("value", [McpTextContent("x"), [McpTextContent("x")], McpToolResponse()])
def test_blocks_are_no_result_either(value: Any) -> None:
    from shared.contract.handler import object_result

    with pytest.raises(ResultError, match=RETURN_OBJECT):
        object_result(value)


def test_declaration_errors_are_no_results(tmp_path: Path) -> None:
    folder = write(tmp_path / "tool-1", {"files": {"headless.js": {"text": "raise RuntimeError('at load')"}}})
    found = check_contract(folder)
    assert found.tool is not None
    with pytest.raises(DeclarationError, match=r"tool 'tool-1': headless.py cannot be loaded: RuntimeError"):
        found.tool.load()
