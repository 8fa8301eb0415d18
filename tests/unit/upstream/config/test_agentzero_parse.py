"""What Agent Zero reads a configuration text as, and what it should have said instead."""

from __future__ import annotations

from typing import Any

import pytest

from shared.upstream.config.faults import Scope
from shared.upstream.config.scopes import ScopeEntries, read_scope
from tests.unit.upstream.config.vectors import cases, defects, kept, named, read

CASES = cases("agentzero-parse")


def text_of(case: Any) -> str:
    given = case["input"]
    return str(given if isinstance(given, str) else given["repeat"] * given["times"])


def scope_of(case: Any) -> ScopeEntries:
    return read_scope(text_of(case), Scope.GLOBAL)


def entries(scope: ScopeEntries) -> list[dict[str, Any]]:
    return [{**entry.body, "name": entry.name} for entry in scope.entries.values() if entry.broken is None]


#: Kept cases in which a server has no name, or two have the same: entries as written are no servers yet.
UNNAMED = {"list-nameless", "single-url", "list-same-name-twice"}
#: The later of two servers with one name is refused, however they are written; the original takes the last.
TWICE = "map-duplicate-key"


@pytest.mark.parametrize("case", kept(CASES, {*UNNAMED, TWICE}))
def test_kept(case: Any) -> None:
    scope = scope_of(case)
    faulty = scope.faults or any(entry.broken for entry in scope.entries.values())
    if "note" in case and faulty:
        # Damaged text: a fault is right too, as long as nothing is read wrongly.
        assert all(entry in case["output"]["servers"] for entry in entries(scope))
        return
    assert entries(scope) == case["output"]["servers"]
    # `[` alone is no empty list but a cut-off text.
    assert bool(faulty) is (case["id"] == "only-bracket")


@pytest.mark.parametrize("case_id", sorted(UNNAMED))
def test_a_name_is_needed_and_must_be_the_only_one(case_id: str) -> None:
    case = named(CASES, case_id)
    scope = scope_of(case)
    assert [fault.field for fault in scope.faults] == ["name"]
    # The first of two stays.
    assert entries(scope) == case["output"]["servers"][:1] * (case_id == "list-same-name-twice")


def test_the_first_of_two_with_one_key_stays() -> None:
    scope = scope_of(named(CASES, TWICE))
    assert entries(scope) == [{"command": "x", "name": "a"}]
    (fault,) = scope.faults
    assert fault.message == "there is another entry with this name before it, which stays"


A = {"command": "x", "name": "a"}
#: id -> (the entries that are read, what the faults say).
MENDED: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "empty-object": ([], []),
    "map-empty-key": ([], ["a server needs a name"]),
    "map-string-value": ([{"command": "x", "name": "b"}], ["a server must be an object, not string"]),
    "map-list-value": ([], ["a server must be an object, not array"]),
    "map-null": ([], ["must be an object of name -> server, or a list of servers, not null"]),
    "map-string": ([], ["must be an object of name -> server, or a list of servers, not string"]),
    "vscode-servers": ([{"type": "stdio", "command": "x", "name": "a"}], []),
    "yaml-like-mcp": ([], ["unknown form with mcp; legal are mcpServers"]),
    "list-of-maps": ([], ["an item of a list is one server; here it holds mcpServers"]),
    "null": ([], ["must be an object or a list, not null"]),
    "number": ([], ["must be an object or a list, not integer"]),
    "string": ([], ["must be an object or a list, not string"]),
    "true": ([], ["must be an object or a list, not boolean"]),
    # YAML is a form of its own here, so it is read.
    "junk-yaml": ([A], []),
    "junk-braces-in-text": ([], ["must be an object or a list, not string"]),
    "command-line": ([], ["must be an object or a list, not string"]),
    "hash-comment": ([], ["line 2 column 2: this is not JSON"]),
    "unquoted-values": ([], ["cannot be read; in this entry, line 1 column 11"]),
    # The number is a fault of the server, see below.
    "nan": ([], []),
    "two-documents": ([], ["line 2 column 1: this is not JSON"]),
    "truncated-value": ([], ["the text is cut off"]),
    "truncated-key": ([], ["the text is cut off"]),
    "truncated-list": ([], ["the text is cut off"]),
    "truncated-at-list-start": ([], ["the text is cut off"]),
    "truncated-at-object-in-list": ([], ["the text is cut off"]),
    "truncated-after-colon": ([], ["the text is cut off"]),
    "missing-closing-inner": ([], ["the text is cut off"]),
    "doubled-braces": ([], ["this is not JSON"]),
    "missing-colon": ([], ["this is not JSON"]),
    "semicolons": ([], ["cannot be read; in this entry, line 1 column 15"]),
    "equals": ([], ["this is not JSON"]),
    "windows-path-single-backslash": ([], ["a backslash in a text must be written twice"]),
    "windows-path-bad-escape-with-comma": ([], ["a backslash in a text must be written twice"]),
    "smart-quotes": ([], ["this is not JSON"]),
    "bad-unicode-escape": ([], ["line 1 column 13: a backslash"]),
    "number-word": ([], ["cannot be read; in this entry, line 1 column 35"]),
    # As for nan.
    "nul-byte": ([], []),
}
#: Read as they stand, and refused when the server is built: field and message.
REFUSED_LATER = {"nan": ("init_timeout", "finite number"), "nul-byte": ("command", "NUL")}


def test_every_defect_has_an_answer() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(MENDED.keys() - REFUSED_LATER.keys()))
def test_mended(case_id: str) -> None:
    wanted, said = MENDED[case_id]
    scope = scope_of(named(CASES, case_id))
    assert entries(scope) == wanted
    broken = [str(entry.broken) for entry in scope.entries.values() if entry.broken is not None]
    found = [fault.message for fault in scope.faults] + broken
    assert len(found) == len(said)
    assert all(part in text for part, text in zip(said, found, strict=True)), found


@pytest.mark.parametrize("case_id", sorted(REFUSED_LATER))
def test_a_value_that_no_server_can_have(case_id: str) -> None:
    field, message = REFUSED_LATER[case_id]
    outcome = read(text_of(named(CASES, case_id)), commands=("x",))
    assert outcome.servers == {}
    (fault,) = outcome.faults
    assert fault.field == field
    assert message in fault.message


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_no_message_repeats_the_text(case: Any) -> None:
    """Whatever is wrong, the text may hold a secret: here each text is followed by one, then broken off."""
    text = text_of(case).rstrip()[:-1] + ' "hunter2-in-the-text'
    assert "hunter2" not in read(text).said()
