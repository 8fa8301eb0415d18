"""Who may use which upstream tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import SettingsError
from shared.upstream.policy import Policy

READ, WRITE, OTHER = "mcp:files:read_file", "mcp:files:write_file", "mcp:github:search"


def policy(**raw: Any) -> Policy:
    return Policy.parse(json.dumps(raw))


def test_without_one_everything_is_allowed() -> None:
    for text in ("", "  ", "{}"):
        assert Policy.parse(text).allows("ana", None, READ)
        assert not Policy.parse(text).denied_to_all(READ)


def test_deny_wins_and_allow_is_a_limit() -> None:
    found = policy(allow=["mcp:files:*"], deny=["mcp:*:write_*"])
    assert [found.allows("ana", None, name) for name in (READ, WRITE, OTHER)] == [True, False, False]
    assert [found.denied_to_all(name) for name in (READ, WRITE, OTHER)] == [False, True, True]


def test_an_empty_allow_list_lets_nothing_through() -> None:
    assert policy(allow=[]).denied_to_all(READ)


def test_an_owner_s_gate_holds_for_that_owner() -> None:
    found = policy(owners={"ana": {"deny": ["mcp:files:*"]}})
    assert not found.allows("ana", None, READ)
    assert found.allows("ben", None, READ)
    assert not found.denied_to_all(READ)


def test_a_star_is_everybody_who_is_not_named() -> None:
    found = policy(owners={"*": {"allow": []}, "ana": {}}, projects={"*": {"deny": [WRITE]}, "sales": {}})
    assert found.allows("ana", None, READ)
    assert not found.allows("ben", None, READ)
    # Calls without a project, too.
    assert not found.allows("ana", None, WRITE)
    assert not found.allows("ana", "other", WRITE)
    assert found.allows("ana", "sales", WRITE)
    assert not found.denied_to_all(WRITE)
    # Nobody gets more by calling himself a star.
    assert not found.allows("*", None, READ)


def test_a_narrower_gate_gives_nothing_back() -> None:
    found = policy(deny=[WRITE], owners={"ana": {"allow": ["mcp:*"]}}, projects={"sales": {"allow": ["mcp:*"]}})
    assert not found.allows("ana", "sales", WRITE)


def test_a_tool_that_is_not_there_yet_can_be_named() -> None:
    """Nobody looks whether there is such a tool: the rule holds from the day on which it comes."""
    policy = Policy.parse('{"allow": ["mcp:docs:*"], "owners": {"ana": {"deny": ["mcp:docs:to-come"]}}}')
    assert policy.allows("ben", None, "mcp:docs:to-come") is True
    assert policy.allows("ana", None, "mcp:docs:to-come") is False
    assert policy.allows("ana", None, "mcp:docs:read") is True


def test_denied_to_all_needs_every_owner_or_every_project() -> None:
    found = policy(projects={"*": {"deny": ["*"]}, "sales": {"deny": [WRITE]}})
    assert not found.denied_to_all(READ)
    assert found.denied_to_all(WRITE)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("mcp:files:read_file", True),
        ("mcp:files:Read_File", False),
        ("mcp:files:read", False),
        ("mcp:*", True),
        ("*", True),
        ("mcp:files:read_?ile", True),
        ("mcp:files:[rw]ead_*", True),
        ("mcp:files:[!r]ead_*", False),
        ("mcp:file:*", False),
    ],
)
def test_patterns(pattern: str, matches: bool) -> None:
    assert policy(deny=[pattern]).allows("ana", None, READ) is not matches


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hunter2", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"deny": "mcp:*"}', "deny must be a list of patterns"),
        ('{"allow": [1]}', "allow must be a list of patterns"),
        ('{"allow": null}', "allow must be a list of patterns"),
        ('{"denied": []}', "unknown key 'denied'"),
        ('{"deny": ["files:*"]}', "deny: a pattern must begin with 'mcp:' or '*'"),
        ('{"owners": []}', "owners must be an object"),
        ('{"owners": {"ana": []}}', "owners.ana must be an object"),
        ('{"owners": {"ana": {"allows": []}}}', "owners.ana: unknown key 'allows'"),
        ('{"projects": {"../x": {}}}', "a project's name must be"),
    ],
)
def test_a_policy_that_is_read_in_part_is_none(text: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Policy.parse(text)
    assert caught.value.message.startswith("TOOLBOX_UPSTREAM_POLICY")
    assert said in caught.value.message
    assert "hunter2" not in caught.value.message


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(SettingsError, match=r"allow must be.*owners must be.*unknown key 'x'"):
        policy(allow=1, owners=2, x=3)


ids = st.sampled_from([READ, WRITE, OTHER])
patterns = st.lists(st.sampled_from([READ, WRITE, OTHER, "mcp:files:*", "*", "mcp:*:write_*"]), max_size=2)
gates = st.fixed_dictionaries({}, optional={"allow": patterns, "deny": patterns})
named_gates = st.dictionaries(st.sampled_from(["*", "ana", "ben"]), gates, max_size=3)


@settings(deadline=None)
@given(gates, named_gates, named_gates, ids)
def test_denied_to_all_is_exactly_that(everyone: Any, owners: Any, projects: Any, name: str) -> None:
    """Nobody, with no project, may use what is denied to all; and what is not, somebody may."""
    found = policy(**everyone, owners=owners, projects=projects)
    somebody = any(
        found.allows(owner, project, name)
        for owner in ("ana", "ben", "somebody else")
        for project in (None, "ana", "ben", "another")
    )
    assert found.denied_to_all(name) is not somebody
