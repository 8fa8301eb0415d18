"""What the original's author-time validator says of a document: every fault of its, at its place, and more."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from shared.contract.findings import Finding, Findings, Severity
from shared.contract.reading import parse_object, read_json
from shared.contract.tool import check_contract
from shared.contract.validation import check_document
from tests.unit.contract.pptb import cases, defects, kept

CASES = cases("contract-validate.json")
#: Warnings that the original does not have, by path.
MORE_WARNINGS: dict[str, list[str]] = {
    "text-duplicate-key-last-wins": ["$", "$"],
    "modes-duplicates": ["$.agents.modes[1]"],
    "timeout-fraction": ["$.agents.timeoutMS"],
}
#: Errors that the original does not have, by path.
MORE_ERRORS: dict[str, list[str]] = {
    "defaultMode-empty-modes": ["$.agents.modes"],
}
#: What is found where the original finds nothing: id -> (severity, path, part of the text).
MENDED: dict[str, list[tuple[str, str, str]]] = {
    "prefill-type-nonsense": [
        ("error", "$.invocation.prefill.properties.a.type", "'nonsense'"),
        ("error", "$.invocation.prefill.properties.b.type", "an empty string"),
        ("error", "$.invocation.prefill.properties.c.type", "did you mean 'string'?"),
    ],
    "prefill-enum-mixed": [
        ("warning", "$.invocation.prefill.properties.mode.enum[1]", "can never be given"),
        ("warning", "$.invocation.prefill.properties.mode.enum[2]", "this is null"),
        ("warning", "$.invocation.prefill.properties.mode.enum[3]", "this is object"),
    ],
    "prefill-root-type-array": [("error", "$.invocation.prefill.type", "must be 'object' at the root")],
    "prefill-bare-map": [("error", "$.invocation.prefill", '{"properties": {"entityName": …}}')],
    "modes-empty": [("error", "$.agents.modes", "must not be empty")],
    "defaultMode-without-modes": [("error", "$.agents.defaultMode", 'add "modes": ["one-way"]')],
    "entry-absolute": [("error", "$.agents.headlessEntry", "must be relative to the tool's folder")],
    "entry-wrong-kind": [("error", "$.agents.headlessEntry", "must be a string")],
    "exec-modes-bogus": [
        ("error", "$.agents.executionModes[0]", "must be one of 'inline', 'headless', 'windowed'"),
        ("error", "$.agents.executionModes[1]", "got integer 5"),
        ("error", "$.agents.defaultExecutionMode", "got string 'never'"),
    ],
    "headless-string": [("error", "$.agents.headless", "must be true or false, got string 'yes'")],
}


def findings(given: Any) -> tuple[Finding, ...]:
    """Of the document alone: no folder around it."""
    found = Findings()
    document = parse_object(given["text"], found) if "text" in given else given["config"]
    if document is not None or "config" in given:
        check_document(document, found)
    return found.all


def paths(found: tuple[Finding, ...], severity: Severity) -> list[str]:
    return sorted(item.path for item in found if item.severity is severity)


def place_of(text: str) -> str:
    """The JSON path that an original's message begins with."""
    if text.startswith("pptb.config.json must"):
        return "$"
    named = re.match(r"[\w.\[\]]+", text)
    assert named, text
    return f"$.{named[0]}"


def places_of(warning: str) -> list[str]:
    _, separator, keys = warning.partition("unrecognised root keys: ")
    if not separator:
        return [place_of(warning)]
    return [f"$.{key}" if re.fullmatch(r"[\w$]+", key) else f"$['{key}']" for key in keys.split(", ")]


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any) -> None:
    output = case["output"]
    found = findings(case["input"])
    if output.get("parseError"):
        assert paths(found, Severity.ERROR) == ["$"]
        return
    errors = sorted({*map(place_of, output["errors"]), *MORE_ERRORS.get(case["id"], [])})
    warned = [place for warning in output["warnings"] for place in places_of(warning)]
    assert sorted(set(paths(found, Severity.ERROR))) == errors
    assert paths(found, Severity.WARNING) == sorted([*warned, *MORE_WARNINGS.get(case["id"], [])])
    assert bool(errors) is not output["valid"]


def test_every_defect_is_mended() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case", [case for case in CASES if "defect" in case], ids=lambda case: str(case["id"]))
def test_mended(case: Any, tmp_path: Any) -> None:
    """In a folder, since a path is judged by what is there."""
    (tmp_path / "headless.py").write_text("def invokeHeadless(input, context): ...\n")
    (tmp_path / "pptb.config.json").write_text(json.dumps(case["input"]["config"]))
    told = check_contract(tmp_path).findings
    for severity, path, part in MENDED[case["id"]]:
        assert any(item.severity == severity and item.path == path and part in str(item) for item in told), (
            f"{path}: {part} not in {[str(item) for item in told]}"
        )
    expected_errors = {path for severity, path, _ in MENDED[case["id"]] if severity == "error"}
    assert {item.path for item in told if item.severity is Severity.ERROR} == expected_errors


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xef\xbb\xbf{}", "byte order mark, which is no JSON; save it as UTF-8 without BOM"),
        (b"", "is empty"),
        (b"{\n  // agents\n}", "line 2"),
        (b'{"a": NaN}', "NaN is no JSON"),
        (b"null", "must be a JSON object, got null"),
        (b"[1]", "must be a JSON object, got array"),
        (b"\xff\xfe{}", "is no UTF-8 text"),
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested deeper"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is no JSON"),
        (b" " * 300_000, "is larger than"),
    ],
)
def test_a_file_that_holds_no_contract_says_why(data: bytes, said: str, tmp_path: Any) -> None:
    (tmp_path / "pptb.config.json").write_bytes(data)
    found = Findings()
    assert read_json(tmp_path, "pptb.config.json", found) is None
    assert [item.severity for item in found.all] == [Severity.ERROR]
    assert said in str(found.all[0])


def test_a_folder_in_the_files_place(tmp_path: Any) -> None:
    (tmp_path / "pptb.config.json").mkdir()
    assert check_contract(tmp_path).errors == ["$: is no file"]
