"""Keys, qualified names and aliases: Agent Zero's, with their defects mended."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shared.errors import MCPConfigError, MCPToolNotFoundError
from shared.upstream.names import alias, canonical, normalize, qualified, split_qualified
from tests.unit.upstream.config.vectors import cases, defects, kept, named

CASES = cases("agentzero-names")
SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def answer(given: dict[str, str]) -> dict[str, str]:
    if "server_name" in given:
        return {"normalised": normalize(given["server_name"])}
    if "alias_of" in given:
        return {"alias": alias(given["alias_of"])}
    server, tool = split_qualified(given["qualified_name"])
    return {"server": server, "tool": tool}


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any) -> None:
    if "error" in case["output"]:
        with pytest.raises(MCPToolNotFoundError) as caught:
            answer(case["input"])
        assert f"Tool '{case['input']['qualified_name']}' not found" in caught.value.message
    else:
        assert answer(case["input"]) == case["output"]


#: id -> what the refusal says.
REFUSED = {
    "server-8e0d70": "invisible",
    "server-3de4f9": "this one is empty",
    "server-17651b": "this one is empty",
    "server-91314f": "at least one letter or digit",
    "server-22d454": "invisible",
    "server-68cf97": "invisible",
    "qualified-c0831d": "Tool ' s.t' not found",
    "qualified-3c519e": "Tool 's. t' not found",
    "qualified-67f7a7": "Tool 's .t' not found",
    "qualified-cc3da1": "Tool 's.\N{REPLACEMENT CHARACTER}' not found",
    "alias-cdb6fd": "an empty name has no alias",
}
#: A name that looks like an alias gets one of its own, so it is never equal to another name's.
LOOKS_LIKE_AN_ALIAS = "alias-8e7841"


def test_every_defect_has_an_answer() -> None:
    assert {*REFUSED, LOOKS_LIKE_AN_ALIAS} == defects(CASES)


@pytest.mark.parametrize("case_id", sorted(REFUSED))
def test_refused(case_id: str) -> None:
    with pytest.raises((MCPConfigError, MCPToolNotFoundError, ValueError)) as caught:
        answer(named(CASES, case_id)["input"])
    assert REFUSED[case_id] in str(caught.value)


def test_an_alias_never_equals_another_name_s() -> None:
    name = named(CASES, LOOKS_LIKE_AN_ALIAS)["input"]["alias_of"]
    assert alias("docs.read") == name
    assert alias(name) not in (name, alias("docs.read"))
    assert SAFE.fullmatch(alias(name))


def test_forms_of_one_word_are_one_key() -> None:
    assert normalize("Caf\N{LATIN SMALL LETTER E WITH ACUTE}") == normalize("cafe\N{COMBINING ACUTE ACCENT}")


def test_vowel_signs_belong_to_their_letters() -> None:
    """As underscores, two words of some scripts would be one key."""
    ka, i, u = "\N{DEVANAGARI LETTER KA}", "\N{DEVANAGARI VOWEL SIGN I}", "\N{DEVANAGARI VOWEL SIGN U}"
    assert normalize(ka + i) == ka + i
    assert normalize(ka + i) != normalize(ka + u)


@pytest.mark.parametrize(
    "name", ["a\N{ZERO WIDTH JOINER}b", "a\N{RIGHT-TO-LEFT OVERRIDE}b", "a\ud800", "a\ue000", "x" * 129]
)
def test_names_that_cannot_be_told_apart_are_refused(name: str) -> None:
    with pytest.raises(MCPConfigError):
        normalize(name)


def test_ids() -> None:
    assert qualified("docs", "read.file") == "docs.read.file"
    assert canonical("docs", "read.file") == "mcp:docs:read.file"
    assert split_qualified(qualified("docs", "read.file")) == ("docs", "read.file")


@pytest.mark.parametrize(
    ("tool", "kept_as_it_is"),
    [
        ("read-file", True),
        ("read_file", True),
        ("readFile2", True),
        ("READ", True),
        ("read.file", False),
        ("read/file", False),
        ("read file", False),
        ("tool!@#", False),
        ("read.file/v2 final", False),
    ],
)
def test_names_of_tools_as_clients_get_them(tool: str, kept_as_it_is: bool) -> None:
    """HoloDeck puts a hyphen for each other sign: `read.file` and `read/file` are one tool then. Here a hash is
    added, and what needs none has none.
    """
    found = alias(tool)
    assert SAFE.fullmatch(found)
    assert (found == tool) is kept_as_it_is
    words = [word for word in re.split(r"[^A-Za-z0-9_-]+", tool) if word]
    assert found.startswith("_".join(words))


any_name = st.text(max_size=90).filter(bool)
servers = st.text(max_size=40)


@settings(deadline=None)
@given(any_name)
def test_an_alias_is_legal_and_always_the_same(name: str) -> None:
    assert SAFE.fullmatch(alias(name))
    assert alias(name) == alias(name)


@settings(deadline=None)
@given(any_name, any_name)
def test_two_names_have_two_aliases(one: str, two: str) -> None:
    assume(one != two)
    assert alias(one) != alias(two)


@settings(deadline=None)
@given(servers)
def test_a_key_holds_no_separator_and_is_its_own_key(name: str) -> None:
    try:
        key = normalize(name)
    except MCPConfigError:
        return
    assert key
    assert not set(key) & set(".: \t\n/")
    assert normalize(key) == key
    assert unicodedata.is_normalized("NFC", key)


@settings(deadline=None)
@given(servers, st.text(min_size=1, max_size=20))
def test_a_qualified_name_is_split_into_what_it_was_made_of(server: str, tool: str) -> None:
    try:
        key = normalize(server)
    except MCPConfigError:
        return
    assume(tool == tool.strip() and tool.isprintable())
    assert split_qualified(qualified(key, tool)) == (key, tool)
