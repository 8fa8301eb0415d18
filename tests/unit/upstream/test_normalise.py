"""Schemas as servers give them, made such that the host and clients can take them; each change has a note."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.tool.meta_schema import refused
from shared.upstream.normalise import input_schema, output_schema

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ANY = {"type": "object"}


@pytest.mark.parametrize(
    ("given", "made", "note"),
    [
        (TEXT, TEXT, None),
        ({}, ANY, None),
        ({"properties": {}}, {"type": "object", "properties": {}}, None),
        ({**TEXT, "additionalProperties": False}, {**TEXT, "additionalProperties": False}, None),
        ({**TEXT, "type": ["object", "null"]}, TEXT, None),
        ("text", ANY, "it was no object"),
        (None, ANY, "it was no object"),
        ({"type": "array"}, ANY, "its root describes no object"),
        ({"type": "object", "properties": []}, ANY, "its properties are no object"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}},
            {"type": "object", "properties": {"a": {}}},
            "the server alone checks arguments",
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}},
            {"type": "object", "properties": {"a": {}}},
            "the server alone checks arguments",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "number", "minimum": "low"}}},
            {"type": "object", "properties": {"a": {}}},
            "the server alone checks arguments",
        ),
        (
            {"type": "object", "properties": {"a": {}, "__pptb": {}}, "required": ["__pptb", "a"]},
            {"type": "object", "properties": {"a": {}}, "required": ["a"]},
            "__pptb is hidden by the call options",
        ),
    ],
)
def test_input_schemas(given: Any, made: Any, note: str | None) -> None:
    notes: list[str] = []
    assert input_schema(given, notes) == made
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


@pytest.mark.parametrize(
    ("given", "made", "wraps", "note"),
    [
        (None, None, False, None),
        (TEXT, TEXT, False, None),
        ("text", None, False, "it was no object"),
        (
            {"type": "object", "properties": {"a": {"$ref": "http://example.com"}}},
            None,
            False,
            "cannot be used",
        ),
        ({"type": "object", "required": 5}, None, False, "cannot be used"),
    ],
)
def test_output_schemas(given: Any, made: Any, wraps: bool, note: str | None) -> None:
    notes: list[str] = []
    assert output_schema(given, notes) == (made, wraps)
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


def test_an_output_that_may_be_no_object_is_put_under_result() -> None:
    notes: list[str] = []
    schema, wraps = output_schema({"type": "array", "items": {"type": "integer"}}, notes)
    assert wraps is True
    assert schema is not None
    assert schema["type"] == "object"
    assert schema["properties"]["result"] == {"type": "array", "items": {"type": "integer"}}
    assert "put under 'result'" in notes[0]


def test_a_schema_that_is_nested_without_end_is_no_crash() -> None:
    deep: dict[str, Any] = {}
    at = deep
    for _ in range(5_000):
        at["properties"] = {"a": {}}
        at = at["properties"]["a"]
    notes: list[str] = []
    assert input_schema(deep, notes) == {"type": "object", "properties": {"a": {}}}
    assert output_schema({"type": "object", **deep}, notes) == (None, False)
    assert len(notes) == 2


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["object", "string", "#/$defs/A", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "$ref", "$defs", "items", "a", "__pptb"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(values)
def test_whatever_a_server_says_becomes_a_legal_schema_of_an_object(value: Any) -> None:
    made = input_schema(value, [])
    assert made["type"] == "object"
    assert refused(made) == []
    assert "__pptb" not in made.get("properties", {})
    assert "__pptb" not in made.get("required", ())
    schema, _ = output_schema(value, [])
    assert schema is None or (schema["type"] == "object" and refused(schema) == [])
