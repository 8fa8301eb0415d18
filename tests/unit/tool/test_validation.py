"""The quick yes for flat objects must never say yes where the schema says no."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from shared.tool.validation import SchemaCheck

PROPERTY = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 3},
        {"type": "string", "enum": ["a"]},
        {"type": "integer", "description": "d"},
        {"type": "integer", "minimum": 2},
        {"type": "number", "default": 1},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"type": "array"},
        {},
        True,
        False,
    ]
)
NAMES = st.sampled_from(["a", "b", "c", "d"])
SCHEMA = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, PROPERTY)},
    optional={
        "required": st.lists(NAMES, unique=True),
        "additionalProperties": st.sampled_from([True, False, {"type": "string"}]),
        "maxProperties": st.just(1),
        "anyOf": st.just([{"required": ["a"]}]),
    },
)
VALUE = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([1.0, 2.5, "", "a", "long text", []])


@given(SCHEMA, st.dictionaries(NAMES, VALUE) | VALUE)
def test_it_says_what_the_library_says(schema: dict[str, Any], value: Any) -> None:
    valid = Draft202012Validator(schema).is_valid(value)
    assert (SchemaCheck(schema).faults(value) == []) is valid
