"""Display names to names that agents call: the original's slug wherever it is legal, a fault elsewhere."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.contract.names import described, slug, tool_name
from shared.errors import DeclarationError
from shared.tool.spec import Mode, check_name
from tests.unit.contract.pptb import cases, defects, kept

CASES = cases("names.json")
NOTHING_LEFT = "has no letter a-z and no digit"
MENDED = {
    "greek-final-sigma": NOTHING_LEFT,
    "emoji-only": NOTHING_LEFT,
    "single-hyphen": NOTHING_LEFT,
    "single-space": NOTHING_LEFT,
    "empty": NOTHING_LEFT,
    "length-129": "makes a name of 129 characters, and 64 are allowed; shorten package.json displayName",
}


@pytest.mark.parametrize("case", kept(CASES))
def test_kept(case: Any) -> None:
    assert tool_name(case["input"]["displayName"], "package.json displayName") == case["output"]["slug"]


def test_every_defect_is_mended() -> None:
    assert set(MENDED) == defects(CASES)


@pytest.mark.parametrize("case", [case for case in CASES if "defect" in case], ids=lambda case: str(case["id"]))
def test_mended(case: Any) -> None:
    name = case["input"]["displayName"]
    assert slug(name) == case["output"]["slug"], "the rule itself is the original's"
    with pytest.raises(DeclarationError) as caught:
        tool_name(name, "package.json displayName")
    assert MENDED[case["id"]] in caught.value.message
    assert name[:80] in caught.value.message


@given(st.text())
@example("x" * 64)
@example("x" * 65)
@example("-" * 70)
def test_any_display_name_gives_a_legal_name_or_a_fault(display_name: str) -> None:
    made = slug(display_name)
    if made.strip("-") and len(made) <= 64:
        assert tool_name(display_name, "the folder's name") == check_name(made)
        assert re.fullmatch(r"[a-z0-9-]{1,64}", made)
    else:
        with pytest.raises(DeclarationError, match="the folder's name"):
            tool_name(display_name, "the folder's name")


def test_the_suffix() -> None:
    both = (Mode.ONE_WAY, Mode.TWO_WAY)
    assert described("D.", both, Mode.TWO_WAY, returns_data=True) == (
        "D. [modes: one-way, two-way; default: two-way; returnsData: yes]"
    )
    assert described("D.", both[:1], Mode.ONE_WAY, returns_data=False).endswith("returnsData: no]")
