"""What the original accepts as a contract tool's input, and what it should not have accepted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from shared.contract.tool import check_contract
from shared.errors import InputError
from shared.tool.handler import Handler
from tests.unit.contract.pptb import cases, defects, kept, write_tool

CASES = cases("input-validation.json")
ENTRY = "def invokeHeadless(input, context):\n    return input\n"


def handler(folder: Path, schema: Any) -> Handler | list[str]:
    """The tool's handler, or why its contract is refused."""
    invocation = {"version": "1.0.0"} if schema is None else {"version": "1.0.0", "prefill": schema}
    config = {"invocation": invocation, "agents": {"version": "1.0.0", "invokable": True}}
    found = check_contract(write_tool(folder, config, display_name="Tool", entry=ENTRY), strict=True)
    return found.errors if found.tool is None else found.tool.load()


def faults(tool: Handler, given: Any) -> list[str]:
    arguments = json.loads(given["argumentsText"]) if "argumentsText" in given else given["arguments"]
    try:
        assert tool.check_input(arguments) == arguments
    except InputError as error:
        return list(error.faults)
    return []


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any, tmp_path: Path) -> None:
    tool = handler(tmp_path / "t", case["input"]["schema"])
    assert isinstance(tool, Handler), tool
    found = faults(tool, case["input"])
    said = case["output"].get("text", "").removeprefix("Input validation failed: ")
    wanted = re.split(r"; (?=\$)", said) if said else []
    # Ours may say more: which kind was given.
    assert len(found) == len(wanted)
    assert all(any(text.startswith(part) for text in found) for part in wanted), (found, wanted)


#: A fault of the input (begins with `$.`), or of the contract (begins with `$.invocation`); "": it is accepted.
MENDED: dict[str, str] = {
    "number-overflow": "$.n: must be a finite number",
    "integer-takes-text": "$.top: expected integer, got string",
    "type-unknown": "$.invocation.prefill.properties.a.type: must be one of 'string'",
    "enum-with-null-and-object": '$.k: value must be one of [x, null, {"a": 1}]',
    "enum-empty-list-ignored": "$.invocation.prefill.properties.k.enum: must be a list of at least one value",
    "enum-on-object": '$.k: value must be one of [{"a": 1}]',
    "pattern-limits": "$.s: must match the pattern ^a; $.s: must have at most 2; $.s: must be a uuid; "
    "$.n: must be at least 1; $.n: must be a multiple of 2; $.l: must have at least 2 items",
    "additional-properties-false": "$: unknown field 'b'; known are a",
    "bare-map": "$.invocation.prefill: describes nothing",
    "items-tuple": "$.invocation.prefill.properties.a.items: must be a schema",
    "required-without-properties": "$.a: required field is missing",
    "name-constructor-optional": "",
    "name-proto": "$['__proto__']: expected string, got integer",
}


def test_every_defect_is_mended() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case", [case for case in CASES if "defect" in case], ids=lambda case: str(case["id"]))
def test_mended(case: Any, tmp_path: Path) -> None:
    tool = handler(tmp_path / "t", case["input"]["schema"])
    wanted = MENDED[case["id"]]
    found = tool if isinstance(tool, list) else faults(tool, case["input"])
    assert isinstance(tool, list) == wanted.startswith("$.invocation")
    parts = re.split(r"; (?=\$)", wanted) if wanted else []
    assert len(found) == len(parts), found
    for part in parts:
        assert any(text.startswith(part) for text in found), (part, found)


def test_an_equal_object_is_one_of_an_enum(tmp_path: Path) -> None:
    tool = handler(tmp_path / "t", {"properties": {"k": {"enum": [{"a": [1]}, 2]}}})
    assert isinstance(tool, Handler)
    assert faults(tool, {"arguments": {"k": {"a": [1]}}}) == []


def test_null_is_a_value_where_the_schema_takes_it(tmp_path: Path) -> None:
    tool = handler(tmp_path / "t", {"properties": {"k": {"type": ["string", "null"]}}})
    assert isinstance(tool, Handler)
    assert tool.check_input({"k": None}) == {"k": None}


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28T10:00:00"),
        ("date-time", "2024-02-29t23:59:60.5+02:00", "2026-02-29T10:00:00Z"),
        ("time", "10:00:00+01:00", "25:00:00Z"),
        ("duration", "P1DT2H", "P"),
        ("duration", "P2W", "PT"),
        ("email", "a@example.com", "nobody"),
        ("hostname", "a-b.example", "-a.example"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", ":::1"),
        ("regex", "^a", "("),
        ("uri", "https://example.com/a?b=1", "example.com"),
        ("uri", "urn:x:y", "https://example.com:port/"),
        ("uuid", "f5a79f96-3d4f-4f60-a151-4d2d3069f2ef", "f5a79f96"),
        ("of-my-own", "anything", None),
    ],
)
def test_formats_count(kind: str, good: str, bad: str | None, tmp_path: Path) -> None:
    tool = handler(tmp_path / "t", {"properties": {"v": {"type": ["string", "integer"], "format": kind}}})
    assert isinstance(tool, Handler)
    assert faults(tool, {"arguments": {"v": good}}) == []
    assert faults(tool, {"arguments": {"v": 5}}) == []
    if bad is not None:
        assert faults(tool, {"arguments": {"v": bad}}) == [f"$.v: must be a {kind}, got another string"]
