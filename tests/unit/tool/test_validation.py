"""The quick yes for flat objects must never say yes where the schema says no."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from shared.contract.formats import FormatCheck
from shared.text import kind_of
from shared.tool.argument_check import ArgumentCheck
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


@pytest.mark.parametrize("check", [SchemaCheck, ArgumentCheck, FormatCheck])
@pytest.mark.parametrize(
    ("rule", "value", "fits"),
    [
        (0.01, 19.99, True),
        (0.01, 19.995, False),
        (0.1, 0.3, True),
        (0.1, 0.35, False),
        (1e-7, 0.3, True),
        (0.01, 1e300, True),
        (3, 6.0, True),
        (3, 7, False),
        (3, 2**70, False),
    ],
)
def test_multiples_are_those_of_the_numbers_as_written(
    check: Any, rule: float, value: float, fits: bool
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "multipleOf": rule}}}
    assert check(schema).faults({"n": value}) == (
        [] if fits else [f"$.n: must be a multiple of {rule}, got another {kind_of(value)}"]
    )


def test_a_rule_about_names_names_the_field() -> None:
    schema = {
        "type": "object",
        "properties": {"k": {"propertyNames": {"enum": ["a"]}}, "propertyNames": {"type": "integer"}},
    }
    given = {"k": {"a": 1, "c": 1}, "propertyNames": "x"}
    assert SchemaCheck(schema).faults(given) == [
        "$.k: field name 'c': value must be one of [a], got string",
        "$.propertyNames: expected integer, got string",
    ]
