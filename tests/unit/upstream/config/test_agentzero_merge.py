"""How Agent Zero lays a project's configuration over the global one."""

from __future__ import annotations

from typing import Any

import pytest

from shared.upstream.config.faults import Scope
from shared.upstream.config.scopes import merge, read_scope
from tests.unit.upstream.config.vectors import cases, defects, kept, named

CASES = cases("agentzero-merge")


def merged(case: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """(the sound entries as the vectors write them, what is wrong)."""
    common = read_scope(case["input"]["global"], Scope.GLOBAL)
    project = read_scope(case["input"]["project"], Scope.PROJECT, project="p")
    found = merge(common, project)
    entries = [
        {**one.entry.body, "name": one.key, "scope": one.scope.value}
        for one in found
        if one.entry.broken is None
    ]
    broken = [f"{one.scope} {one.key}: {one.entry.broken}" for one in found if one.entry.broken is not None]
    faults = [f"{fault.scope} {fault.name}: {fault.message}" for fault in (*common.faults, *project.faults)]
    return entries, faults + broken


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any) -> None:
    assert merged(case) == (case["output"]["servers"], [])


def x(name: str, command: str = "x", scope: str = "global") -> dict[str, Any]:
    return {"command": command, "name": name, "scope": scope}


#: id -> (the entries that are left, what the faults say, in order).
MENDED: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "unicode-forms": ([x("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "y", "project")], []),
    # The tool stays off: see test_a_project_cannot_switch_a_tool_on_again.
    "disabled-tools-lost": ([x("a", scope="project")], []),
    "blank-project-name": ([x("a")], ["project mcpServers.…: a server needs a name; this one is empty"]),
    "two-empty-names": (
        [],
        ["global mcpServers.…: a server needs a name", "project mcpServers.…: a server needs"],
    ),
    "single-dict-both": (
        [],
        ["global the one server: a server needs a name", "project the one server: a server"],
    ),
    "list-nameless-first": ([x("a", "y", "project")], ["global [0]: a server needs a name"]),
    "collision-in-global": ([x("a_b")], ["global a_b: another entry before this one has the same name"]),
    "collision-three": ([x("a_b", "z", "project")], ["global a-b: another entry before this one"]),
    "list-same-name-twice": ([x("a")], ["global a: another entry before this one has the same name"]),
    "names-of-signs-only": ([], ["global ---: a server's name needs at least", "project ***: a server's name"]),
    # A broken entry does not bring the global server back: a call for one would reach the other.
    "project-string-entry": ([], ["project a: a server must be an object, not string"]),
    "project-false-entry": ([], ["project a: a server must be an object, not boolean"]),
    # A text that is broken as a whole names no server, so the global ones stay on.
    "project-junk": ([x("a")], ["project : the configuration must be an object or a list, not string"]),
    "project-vscode-shape": ([x("a", "y", "project")], []),
}


def test_every_defect_has_an_answer() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED))
def test_mended(case_id: str) -> None:
    wanted, said = MENDED[case_id]
    entries, faults = merged(named(CASES, case_id))
    assert entries == wanted
    assert len(faults) == len(said)
    assert all(fault.startswith(part) for part, fault in zip(said, faults, strict=True)), faults


def test_a_project_cannot_switch_a_tool_on_again() -> None:
    case = named(CASES, "disabled-tools-lost")["input"]
    (found,) = merge(read_scope(case["global"], Scope.GLOBAL), read_scope(case["project"], Scope.PROJECT))
    assert found.disabled_tools == ("danger",)
