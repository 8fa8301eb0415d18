"""A result schema keeps its meaning when it is published: under `result`, beside an acceptance, or both."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from shared.errors import DeclarationError, ResultError
from shared.tool import tool
from shared.tool.argument_check import ArgumentCheck
from shared.tool.binding import trigger_fields
from shared.tool.decorator import declared
from shared.tool.spec import JsonObject
from shared.tool.validation import SchemaCheck

NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"]}
#: name, schema, values that fit, values that do not
SCHEMAS: dict[str, tuple[JsonObject, list[Any], list[Any]]] = {
    "a property's": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}},
        [{}, {"a": 1, "b": 2}],
        [{"b": "x"}],
    ),
    "itself, an object": (
        NODE,
        [{"v": 1}, {"v": 1, "next": {"v": 2}}],
        [{}, {"v": 1, "next": {}}, {"next": {"v": 1}}],
    ),
    "itself, an array": (
        {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}},
        [[], [1, [2, [3]]]],
        [["x"], [1, ["x"]]],
    ),
    "definitions, an object": (
        {"$ref": "#/definitions/P", "definitions": {"P": {"type": "object", "required": ["x"]}}},
        [{"x": 1}],
        [{}],
    ),
    "definitions, an array": (
        {"type": "array", "items": {"$ref": "#/definitions/n"}, "definitions": {"n": {"type": "integer"}}},
        [[1]],
        [["x"]],
    ),
    "an anchor": (
        {"type": "array", "prefixItems": [{"$anchor": "n", "type": "integer"}], "items": {"$ref": "#n"}},
        [[1, 2]],
        [[1, "x"]],
    ),
    "its own id": (
        {
            "$id": "https://example.com/list",
            "type": "array",
            "items": {"$ref": "https://example.com/list#/$defs/n"},
            "$defs": {"n": {"type": "integer"}},
        },
        [[1]],
        [["x"]],
    ),
    "an id inside, relative to the root's": (
        {
            "$id": "https://example.com/a/list",
            "type": "array",
            "items": {"$ref": "item"},
            "$defs": {"n": {"$id": "item", "$ref": "#/$defs/inner", "$defs": {"inner": {"type": "integer"}}}},
        },
        [[1]],
        [["x"]],
    ),
    "a place with a name to escape": (
        {"type": "object",
         "properties": {"a/b~c d": {"type": "integer"}, "e": {"$ref": "#/properties/a~1b~0c%20d"}}},
        [{"e": 1}],
        [{"e": "x"}],
    ),
    "a place under no keyword": (
        {"type": "object", "properties": {"a": {"$ref": "#/x-types/n"}},
         "x-types": {"n": {"$ref": "#/x-types/m"}, "m": {"type": "integer"}}},
        [{"a": 1}],
        [{"a": "x"}],
    ),
    "a property called $ref, and data that looks like one": (
        {"type": "object", "properties": {
            "$ref": {"const": {"$ref": "#/properties/a"}}, "a": {"$ref": "#/properties/$ref"}}},
        [{"$ref": {"$ref": "#/properties/a"}, "a": {"$ref": "#/properties/a"}}],
        [{"$ref": {"$ref": "#/$defs/result/properties/a"}}, {"a": 1}],
    ),
    "a definition called result": (
        {"type": "array", "items": {"$ref": "#/$defs/result"}, "contains": {"$ref": "#/items"},
         "$defs": {"result": {"type": "integer"}}},
        [[1]],
        [["x"]],
    ),
}  # fmt: skip


def published(schema: JsonObject, **options: Any) -> tuple[Any, JsonObject]:
    """The handler of a tool that has this result schema, and what a client is told of it."""

    @tool(result_schema=schema, **options)
    def sample() -> Any:
        """Sample."""

    entry = declared(sample)
    assert entry is not None
    return entry.load(), json.loads(trigger_fields(entry.spec)["output_schema"])


@pytest.mark.parametrize(
    "options", [{}, {"execution_modes": ("inline", "headless")}], ids=["inline", "headless"]
)
@pytest.mark.parametrize("name", SCHEMAS)
def test_references_mean_the_same_to_the_author_the_run_and_the_client(name: str, options: Any) -> None:
    schema, fitting, others = SCHEMAS[name]
    handler, told = published(schema, **options)
    client = Draft202012Validator(told)
    for value in fitting:
        assert Draft202012Validator(schema).is_valid(value)
        sent = handler.finish(value).structured
        assert sent == ({"result": value} if handler.spec.wraps_result else value)
        assert client.is_valid(sent)
    for value in others:
        assert not Draft202012Validator(schema).is_valid(value)
        with pytest.raises(ResultError, match="Output validation failed"):
            handler.finish(value)
        assert not client.is_valid({"result": value} if handler.spec.wraps_result else value)
    assert isinstance(fitting[0], dict) is not handler.spec.wraps_result


def test_a_schema_that_refers_to_its_definitions_only_stays_as_it_was_written() -> None:
    schema: JsonObject = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    _, told = published(schema)
    assert told == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
        "required": ["result"],
        "$defs": {"n": {"type": "integer"}},
    }
    _, told = published({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert next(iter(told)) == "$schema"
    assert "$schema" not in told["properties"]["result"]


def test_a_schema_that_refers_to_itself_moves_to_the_definitions() -> None:
    _, told = published(NODE, execution_modes=("headless",))
    assert told["anyOf"][0] == {"$ref": "#/$defs/result"}
    assert told["$defs"]["result"]["properties"]["next"] == {"$ref": "#/$defs/result"}
    _, told = published(NODE)
    assert told == NODE


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/x"}}}, "$.properties.a.$ref: '#/$defs/x' points at no schema"),
        ({"type": "array", "items": {"$ref": "#gone"}}, "$.items.$ref: '#gone' points at no schema"),
        ({"$ref": "#/properties/a/type", "properties": {"a": {"type": "object"}}}, "points at no schema"),
        ({"anyOf": [{"$ref": 5}]}, "$.anyOf[0].$ref"),
        ({"type": "object", "$ref": "#"}, "leads back to itself"),
        ({"$ref": "https://example.com/s.json"}, "is outside of the schema; nothing is fetched"),
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_is_a_fault_of_the_declaration(schema: JsonObject, said: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        published(schema)
    assert said in caught.value.message
    assert "tool 'sample'" in caught.value.message


def test_nothing_is_fetched_for_a_reference_at_a_call() -> None:
    """Not even for one that came past the checks, in what an annotation adds to its schema."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        asked: list[str] = []

        def accept() -> None:
            with contextlib.suppress(TimeoutError):
                server.accept()[0].close()
                asked.append("it was")

        thread = threading.Thread(target=accept)
        thread.start()
        schema = {
            "type": "object",
            "properties": {"a": {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/s"}},
        }
        for check in (SchemaCheck(schema), ArgumentCheck(schema)):
            with pytest.raises(Exception, match="nresolvable"):
                check.faults({"a": 1})
        thread.join()
    assert asked == []
