"""The tables of counterparts say the truth: every test that they name is one that pytest collects."""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.upstream.counterparts.agentzero import AGENTZERO
from tests.unit.upstream.counterparts.holodeck import HOLODECK
from tests.unit.upstream.counterparts.reports import ROWS
from tests.unit.upstream.counterparts.table import Counterpart

ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "tests" / "vectors"
#: The place of the originals' facts, where the folder that they are written in stands beside the checkout.
REFERENCE = ROOT.parent / "shared" / "reference" / "mcp-clients.md"
_NAME = re.compile(
    r"(?P<file>tests/[\w/]+/test_\w+\.py)::(?P<test>(?:Test\w+::)?test_\w+)(?:\[(?P<case>[\w-]+)\])?"
)

_SEVERAL = re.compile(r" \((\d+)\)$")
#: Files whose tests the reference does not name one by one: an entry of the table may hold several.
_GROUPED = {
    "tests/unit/models/test_tool_models.py",
    "tests/unit/lib/backends/test_mcp_bridge.py",
    "tests/unit/lib/backends/test_openai_agents_mcp.py",
    "test_mcp_helpers.py",
}

#: Which cases the tests of these names take: those whose original answer is a defect, or the others.
_DEFECTS = {"test_kept": False, "test_mended": True, "test_refused": True}


def everything() -> Iterator[tuple[str, Counterpart]]:
    for file, (_, group) in {**HOLODECK, **AGENTZERO}.items():
        for name, one in group.items():
            yield f"{file}: {name}", one
    for number, one in ROWS.items():
        yield f"report {number}", one


@functools.cache
def collected(file: str) -> frozenset[str]:
    """The tests of a file, as `test` or `Class::test`; empty for a file that is not there."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for one in inside:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test_"):
                found.add(prefix + one.name)
    return frozenset(found)


@functools.cache
def vector_cases(file: str) -> dict[str, bool]:
    """The cases of the vectors that a test file reads: id -> whether the original's answer is a defect."""
    named = re.search(r'cases\("([\w-]+)"\)', (ROOT / file).read_text("utf-8"))
    if named is None:
        return {}
    path = VECTORS / named[1].partition("-")[0] / f"{named[1]}.json"
    return {case["id"]: "defect" in case for case in json.loads(path.read_text("utf-8"))["cases"]}


def missing(test: str) -> str:
    """What is wrong with a test's name; empty when it is there."""
    match = _NAME.fullmatch(test)
    if match is None:
        return f"{test}: is no name of a test"
    if match["test"] not in collected(match["file"]):
        return f"{test}: there is no such test"
    if match["case"] is None:
        return ""
    known = vector_cases(match["file"])
    if match["case"] not in known:
        return f"{test}: there is no such case"
    # `test_kept` takes the cases whose answer is the right one; tables of the module answer the others.
    if match["test"] in _DEFECTS and known[match["case"]] is not _DEFECTS[match["test"]]:
        return f"{test}: another test of the file has this case"
    return ""


def test_every_original_is_held_or_says_why_not() -> None:
    empty = [name for name, one in everything() if not one.tests and len(one.reason) < 20]
    assert empty == []


def test_every_test_that_is_named_is_there() -> None:
    wrong = [f"{name}: {fault}" for name, one in everything() for test in one.tests if (fault := missing(test))]
    assert wrong == []


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("tests/unit/upstream/test_policy.py::test_nothing_of_the_kind", "no such test"),
        ("tests/unit/upstream/test_nothing.py::test_patterns", "no such test"),
        ("tests/unit/upstream/config/test_holodeck_env.py::test_kept[nothing-of-the-kind]", "no such case"),
        ("tests/unit/upstream/config/test_holodeck_env.py::test_kept[file-utf16]", "another test"),
        ("tests/unit/upstream/config/test_holodeck_env.py::test_mended[static]", "another test"),
        ("tests/unit/upstream/content/test_parts.py::test_a_success", "no such test"),
        ("tests/unit/upstream/fakes.py::configured", "no name of a test"),
    ],
)
def test_a_test_that_is_not_there_is_found(test: str, said: str) -> None:
    assert said in missing(test)


def test_all_thirty_reports_are_held() -> None:
    assert sorted(ROWS) == list(range(1, 31))
    assert [number for number, one in ROWS.items() if not one.tests] == []


def test_every_original_of_a_file_is_counted_once() -> None:
    """`NAME (3)` stands for three of them."""
    for file, (count, group) in {**HOLODECK, **AGENTZERO}.items():
        sizes = [int(match[1]) if (match := _SEVERAL.search(name)) else 1 for name in group]
        assert sum(sizes) <= count, file
        assert sum(sizes) == count or file in _GROUPED, file


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the facts of the originals are not beside this checkout")
def test_every_report_of_the_reference_is_in_the_table() -> None:
    section = REFERENCE.read_text("utf-8").partition("## 4. ")[2].partition("\n## ")[0]
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)} == set(ROWS)


@pytest.mark.skipif(not REFERENCE.is_file(), reason="the facts of the originals are not beside this checkout")
def test_the_handlers_tests_are_named_as_they_are() -> None:
    """Of the files whose tests the reference names one by one, every name is in the table."""
    section = REFERENCE.read_text("utf-8").partition("### 3.2 ")[2].partition("\n## ")[0]
    for file in ("tests/test_mcp_handler_multimodal.py", "tests/test_tool_policy.py"):
        (line,) = [line for line in section.splitlines() if line.startswith(f"`{file}`")]
        names = re.findall(r"\b[a-z]+(?:_[a-z0-9]+){2,}\b", line.partition(":")[2])
        assert set(names) == set(AGENTZERO[file][1]), file
