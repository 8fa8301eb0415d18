from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from shared.errors import DeclarationError
from shared.tool.discovery import Found, find_tools

GOOD = 'from shared.tool import tool\n@tool\ndef {name}() -> str:\n    """Says hi."""\n    return "hi"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of tools with a name of its own: what is imported stays imported."""
    found = tmp_path / f"tools_{tmp_path.name.replace('-', '_')}"
    found.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


def write(folder: Path, name: str, code: str) -> None:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text(code)


def test_each_folder_gives_its_tools(folder: Path) -> None:
    write(folder, "one", GOOD.format(name="one"))
    write(folder, "two", GOOD.format(name="two_a") + GOOD.format(name="two_b"))
    (folder / "__pycache__").mkdir()
    (folder / "notes.txt").write_text("no tool")
    found = find_tools(folder)
    assert list(found.tools) == ["one", "two_a", "two_b"]
    assert found.faults == ()


def test_a_broken_tool_does_not_hide_the_others(folder: Path) -> None:
    write(folder, "bad_code", "raise RuntimeError('no luck')\n")
    write(folder, "bad_syntax", "def (:\n")
    write(folder, "bad_exit", "raise SystemExit(3)\n")
    write(folder, "bad_tool", "from shared.tool import tool\n@tool\ndef f(a) -> str:\n    'D.'\n    return a\n")
    write(folder, "empty", "")
    write(folder, "good", GOOD.format(name="good"))
    found = find_tools(folder)
    assert list(found.tools) == ["good"]
    reasons = {fault.folder: fault.reason for fault in found.faults}
    details = {fault.folder: fault.detail for fault in found.faults}
    assert reasons["bad_code"] == "cannot be imported: RuntimeError in __init__.py, line 1"
    assert details["bad_code"] == "no luck"
    assert reasons["bad_syntax"] == "cannot be imported: SyntaxError in __init__.py, line 1"
    assert reasons["bad_exit"] == "cannot be imported: SystemExit in __init__.py, line 1"
    assert "parameter 'a' has no annotation" in reasons["bad_tool"]
    assert "@tool" in reasons["empty"]


BAD = "@tool\ndef {name}(a, b) -> str:\n    return ''\n"
MIXED = (
    "from shared.tool import prompt, resource, tool\n"
    + BAD.format(name="bad_one")
    + '@tool\ndef good() -> str:\n    """Says hi."""\n    return "hi"\n'
    + "@resource(uri='nowhere')\ndef bad_resource() -> str:\n    'R.'\n    return ''\n"
    + "@prompt\ndef bad_prompt(n: int) -> str:\n    'P.'\n    return ''\n"
    + "@resource(uri='docs://fine')\ndef fine() -> str:\n    'R.'\n    return ''\n"
    + BAD.format(name="bad_two")
)


def test_what_is_declared_wrongly_hides_nothing_in_its_own_folder(folder: Path) -> None:
    write(folder, "mixed", MIXED)
    for _ in range(2):  # what is imported already is judged the same
        found = find_tools(folder)
        assert list(found.tools) == ["good"]
        assert list(found.resources) == ["fine"]
        assert {fault.folder for fault in found.faults} == {"mixed"}
        reasons = [fault.reason for fault in found.faults]
        assert [reason.partition(":")[0] for reason in reasons] == [
            "tool 'bad_one'",
            "resource 'bad_resource'",
            "prompt 'bad_prompt'",
            "tool 'bad_two'",
        ]
        assert "'a' has no annotation" in reasons[0]
        assert "'b' has no annotation" in reasons[0]
        assert "docstring" in reasons[0]


def test_a_bypassed_tool_hides_nothing_either(folder: Path) -> None:
    code = "import functools\n" + MIXED.split("@resource")[0]
    write(
        folder, "above", code + "def loud(f):\n    return functools.wraps(f)(lambda: f())\nworse = loud(good)\n"
    )
    found = find_tools(folder)
    assert list(found.tools) == ["good"]
    assert ["put @tool on top" in fault.reason for fault in found.faults] == [False, True]


def test_a_fault_is_told_of_the_folder_that_it_is_in(folder: Path) -> None:
    """Also when another folder's import ran into it first; and a crash does not hide the faults before it."""
    write(folder, "a_user", f"import {folder.name}.b_maker.parts\n" + GOOD.format(name="user"))
    write(folder, "b_maker", "from . import parts\n" + GOOD.format(name="maker"))
    (folder / "b_maker" / "parts.py").write_text("from shared.tool import tool\n" + BAD.format(name="part"))
    write(folder, "c_crash", "from shared.tool import tool\n" + BAD.format(name="early") + "1 / 0\n")
    found = find_tools(folder)
    assert sorted(found.tools) == ["maker", "user"]
    assert [(fault.folder, fault.reason.partition(":")[0]) for fault in found.faults] == [
        ("b_maker", "tool 'part'"),
        ("c_crash", "tool 'early'"),
        ("c_crash", "cannot be imported"),
    ]


def test_a_wrong_declaration_raises_where_it_is_imported_plainly(folder: Path) -> None:
    write(folder, "plainly", MIXED)
    with pytest.raises(DeclarationError, match="tool 'bad_one'"):
        importlib.import_module(f"{folder.name}.plainly")


def test_two_tools_of_one_name_are_a_fault_naming_both(folder: Path) -> None:
    write(folder, "first", GOOD.format(name="hello"))
    write(folder, "second", GOOD.format(name="Hello"))
    found: Found = find_tools(folder)
    assert list(found.tools) == ["hello"]
    (fault,) = found.faults
    assert fault.folder == "second"
    assert "'first'" in fault.reason


def test_a_missing_folder_has_no_tools(tmp_path: Path) -> None:
    assert find_tools(tmp_path / "none") == Found({}, ())
    assert "tools_none" not in sys.modules


@pytest.mark.parametrize("name", ["my-tool", "2nd", "a.b"])
def test_a_folder_that_python_cannot_import_is_told_of(folder: Path, name: str) -> None:
    write(folder, name, GOOD.format(name="hidden"))
    write(folder, "_draft", GOOD.format(name="draft"))
    write(folder, "good", GOOD.format(name="good"))
    found = find_tools(folder)
    assert list(found.tools) == ["good"]
    (fault,) = found.faults
    assert (fault.folder, fault.reason.partition(":")[0]) == (
        name,
        "Python cannot import a folder of this name",
    )
