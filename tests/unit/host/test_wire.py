"""JSON as the real host writes and reads it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.host import wire

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=15)


@given(VALUES)
def test_everything_reads_back_as_it_was(value: Any) -> None:
    assert json.loads(wire.dumps(value)) == value


@given(VALUES)
def test_nothing_is_left_that_the_real_encoder_escapes(value: Any) -> None:
    text = wire.dumps(value)
    assert text.isascii()
    strings = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
    assert not re.search(r"['<>&+`\x7f]", strings)
    assert '\\"' not in text.replace("\\\\", "")
    assert not re.search(r"\\u[0-9A-F]{0,3}[a-f]", text.replace("\\\\", ""))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('say "hi"', r'"say \u0022hi\u0022"'),
        ("a\\", r'"a\\"'),
        ('a\\"b', r'"a\\\u0022b"'),
        ("\\u00e9", r'"\\u00e9"'),
        ("é\n\t", r'"\u00E9\n\t"'),
        ("😀", r'"\uD83D\uDE00"'),
        ("'<>&+`\x7f", r'"\u0027\u003C\u003E\u0026\u002B\u0060\u007F"'),
        ([1e22, "1e+22"], r'[1e+22,"1e\u002B22"]'),
        ({"a": [True, None]}, '{"a":[true,null]}'),
    ],
)
def test_escapes(value: Any, text: str) -> None:
    assert wire.dumps(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_without_json_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        wire.dumps(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "[" * 200_000, "", "{'a':1}"])
def test_reading_is_strict(text: str) -> None:
    with pytest.raises(ValueError):
        wire.loads(text)


def test_numbers_out_of_range() -> None:
    assert wire.loads("1e999") == float("inf")
    with pytest.raises(ValueError, match="out of range"):
        wire.loads("[1e999]", finite=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "True"),
        (5, "5"),
        ("plain", "plain"),
        ({"a": [1, {}]}, '{\n  "a": [\n    1,\n    {}\n  ]\n}'),
    ],
)
def test_dotnet_text(value: Any, text: str) -> None:
    assert wire.dotnet_text(value) == text
