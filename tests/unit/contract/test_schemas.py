"""`prefill` and `returnTopic` become JSON Schemas, and what is no schema is told at its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from shared.contract import keywords
from shared.contract.findings import Findings, Severity
from shared.contract.schemas import check_meta, to_schema


def made(raw: Any) -> tuple[Any, list[str]]:
    found = Findings()
    schema = to_schema(raw, "$", found)
    return schema, [str(item) for item in found.all]


@pytest.mark.parametrize(
    ("raw", "schema"),
    [
        ({}, {"type": "object"}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        (
            {"properties": {"a": {"properties": {"b": {"required": True}}}}},
            {"type": "object", "properties": {
                "a": {"type": "object", "properties": {"b": {}}, "required": ["b"]}}},
        ),
        (
            {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"required": True}}}}}},
            {"type": "object", "properties": {"a": {"type": "array", "items": {
                "type": "object", "properties": {"b": {}}, "required": ["b"]}}}},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"properties": {"b": {}}}}},
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}},
             "$defs": {"x": {"type": "object", "properties": {"b": {}}}}},
        ),
        (
            {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
            {"type": "object"},
        ),
        (
            {"properties": {"required": {"type": "boolean", "required": True}}},
            {"type": "object", "properties": {"required": {"type": "boolean"}}, "required": ["required"]},
        ),
    ],
)  # fmt: skip
def test_the_originals_meaning_is_written_out(raw: Any, schema: Any) -> None:
    assert made(raw) == (schema, [])


def test_what_was_read_is_left_as_it_was() -> None:
    raw = {"properties": {"a": {"required": True, "properties": {"b": {}}}}}
    made(raw)
    assert raw == {"properties": {"a": {"required": True, "properties": {"b": {}}}}}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([], "$: must be an object, got array"),
        ({"type": ["object", "null"]}, "$.type: must be 'object' at the root, got array"),
        ({"properties": {"a": {"$ref": "#/properties/b"}, "b": {}}}, "must be '#/$defs/NAME' of a schema"),
        ({"properties": {"a": {"$ref": "#/$defs/y"}}, "$defs": {"x": {}}}, "$.properties.a.$ref: must be"),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}}, "leads back"),
        (
            {"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}]}, "y": {"not": {"$ref": "#/$defs/x"}}}},
            "leads back to itself",
        ),
        ({"properties": {"a": {"pattern": "("}}}, "$.properties.a.pattern: is no regular expression"),
        ({"patternProperties": {"(": {}}}, "is no regular expression"),
        ({"properties": {"a": {"minimum": "1"}}}, "$.properties.a.minimum: must be a number, got string '1'"),
        ({"properties": {"a": {"multipleOf": 0}}}, "must be a number above 0, got integer 0"),
        ({"properties": {"a": {"items": {"required": True}}}}, "name the property in the list of its parent"),
        ({"properties": {"a": {"type": []}}}, "$.properties.a.type: must not be empty"),
        ({"properties": {"a": {"type": ["string", "string"]}}}, "names a type twice"),
        ({"properties": {"a": {"type": "datetime"}}}, "write type 'string' with a 'format'"),
        ({"properties": {"a": {"$id": "x"}}}, "$.properties.a.$id: is not supported"),
        ({"properties": {"a b": {"minItems": 1.5}}}, "$.properties['a b'].minItems: must be a whole number"),
        ({"dependentRequired": {"a": "b"}}, "$.dependentRequired.a: must be a list of property names"),
    ],
)
def test_what_is_no_schema(raw: Any, said: str) -> None:
    schema, told = made(raw)
    assert schema is None
    assert len(told) == 1
    assert said in told[0]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "$.$schema: has no effect"),
        ({"$id": "https://example.com/x"}, "$.$id: has no effect"),
        ({"properties": {"a": {"nullable": True}}}, "write the type as a list with 'null' in it"),
        ({"properties": {"a": {"maxlength": 5}}}, "did you mean 'maxLength'?"),
    ],
)
def test_what_has_no_effect(raw: Any, said: str) -> None:
    schema, told = made(raw)
    assert schema is not None
    assert said in "; ".join(told)


def test_a_schema_may_refer_to_itself_below_a_property() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/node"}}}
    schema, told = made({"properties": {"first": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert told == []
    assert Draft202012Validator(schema).is_valid({"first": {"next": {"next": {}}}})
    assert not Draft202012Validator(schema).is_valid({"first": {"next": {"next": 5}}})


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.sampled_from([0.5, 2.0, -1.5]),
    st.sampled_from(["", "a", "(", "string", "object", "uuid"]),
    st.lists(st.sampled_from(["a", "b", "string", "null", 1]), max_size=3),
)  # fmt: skip
KEYWORDS = st.sampled_from(sorted(name for name in keywords._CHECKS if name != "$ref"))
SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, VALUES, max_size=3),
    lambda inner: st.dictionaries(
        KEYWORDS,
        st.one_of(
            VALUES,
            inner,
            st.lists(inner, max_size=2),
            st.dictionaries(st.sampled_from("ab("), inner, max_size=2),
        ),
        max_size=3,
    ),
    max_leaves=6,
)


@settings(max_examples=600, deadline=None)
@given(SCHEMAS)
def test_the_table_refuses_what_the_meta_schema_refuses(raw: Any) -> None:
    """What is taken at load is a schema for jsonschema too; what jsonschema takes is refused for a reason."""
    raw = {**raw, "type": "object"}
    found = Findings()
    schema = to_schema(raw, "$", found)
    if schema is not None:
        check_meta(schema, "$", found)
        assert [str(item) for item in found.all if item.severity is Severity.ERROR] == []
        Draft202012Validator(schema).is_valid({"a": 1})
        return
    try:
        Draft202012Validator.check_schema(raw)
    except SchemaError:
        return
    stricter = (
        "must be an object", "at least one", "is no declared property", "regular expression", "no keyword",
        "describes nothing", "list of at least",
    )  # fmt: skip
    told = [str(item) for item in found.all if item.severity is Severity.ERROR]
    assert any(reason in text for text in told for reason in stricter), (raw, told)
