"""Published names: unique whatever the case, the same whatever the order, never one of the app's own."""

from __future__ import annotations

import hashlib
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.upstream.locking import published_names

part = st.text(st.sampled_from("abAB._-é/ "), min_size=1, max_size=70)
qualified = st.builds("{}.{}".format, st.sampled_from(["docs", "Docs", "a_b", "é"]), part)
styles = st.sampled_from(["safe", "dotted"])


def function(name: str) -> str:
    return name.lower().replace(".", "_")


@settings(deadline=None)
@given(
    st.sets(qualified, max_size=12),
    styles,
    st.sets(st.sampled_from(["docs_a", "docs.a", "DOCS_B"])),
    st.randoms(),
)
def test_names_are_unique_and_their_order_does_not_matter(
    names: set[str], style: str, taken: set[str], shuffle: random.Random
) -> None:
    found = published_names(sorted(names), style, taken)
    assert found.keys() == names
    functions = [function(name) for name in found.values()]
    assert len({*functions, *map(function, taken)}) == len(functions) + len({function(name) for name in taken})
    pattern = r"[A-Za-z0-9_-]{1,64}" if style == "safe" else r"[A-Za-z0-9_.-]{1,128}"
    assert all(re.fullmatch(pattern, name) for name in found.values())
    mixed = sorted(names)
    shuffle.shuffle(mixed)
    assert published_names(mixed, style, taken) == found


@pytest.mark.parametrize(("style", "published"), [("safe", "docs_read_6e32feee"), ("dotted", "docs.read")])
def test_a_plain_name_in_both_styles(style: str, published: str) -> None:
    assert published_names(["docs.read"], style) == {"docs.read": published}


def test_a_dotted_name_whose_function_is_taken_gives_way() -> None:
    assert published_names(["docs.read"], "dotted", {"docs_read"}) == {"docs.read": "docs_read_6e32feee"}


def test_one_of_two_names_that_differ_by_case_only_gets_more_of_its_hash() -> None:
    found = published_names(["docs.read", "docs.Read"], "dotted")
    assert found["docs.Read"] == "docs.Read"
    assert function(found["docs.read"]) != "docs_read"


def test_an_own_tool_with_an_alias_of_ours_keeps_it() -> None:
    found = published_names(["docs.read"], "safe", {"docs_read_6e32feee"})
    assert found["docs.read"].startswith("docs_read_2_")


def test_names_whose_hashes_are_the_same_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal slugs, and hashes that begin alike: rare, but one day it is so."""

    class Weak:
        def __init__(self, data: bytes, usedforsecurity: bool) -> None:
            pass

        def hexdigest(self) -> str:
            return "0" * 40

    monkeypatch.setattr(hashlib, "sha1", Weak)
    found = published_names(["docs.a b", "docs.a/b", "docs.a.b"], "safe")
    assert sorted(found.values()) == ["docs_a_b_00000000", "docs_a_b_2_00000000", "docs_a_b_3_00000000"]
