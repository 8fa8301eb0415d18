from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
    assert "RuntimeError: no luck" in reasons["bad_code"]
    assert "SyntaxError" in reasons["bad_syntax"]
    assert "SystemExit: 3" in reasons["bad_exit"]
    assert "parameter 'a' has no annotation" in reasons["bad_tool"]
    assert "@tool" in reasons["empty"]


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
