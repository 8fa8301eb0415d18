"""Where a schema asks for an integer, one arrives: for tools that take their arguments as one object."""

from __future__ import annotations

from typing import Any

import pytest

from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.integers import integers_of
from shared.tool.spec import JsonObject

INTEGER: JsonObject = {"type": "integer"}


def field(schema: JsonObject, **more: Any) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, **more}


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        (field(INTEGER), 5.0, "5"),
        (field(INTEGER), 1e25, str(int(1e25))),
        (field(INTEGER), 5, "5"),
        (field({"type": ["integer", "null"]}), 5.0, "5"),
        (field({"type": "number"}), 5.0, "5.0"),
        (field({}), 5.0, "5.0"),
        (field({"items": INTEGER}), [1.0, 2, 3.0], "[1, 2, 3]"),
        (
            field({"prefixItems": [{"type": "number"}, INTEGER], "items": INTEGER}),
            [1.0, 2.0, 3.0],
            "[1.0, 2, 3]",
        ),
        (field({"additionalProperties": INTEGER}), {"b": 5.0}, "{'b': 5}"),
        (field({"properties": {"b": INTEGER}}), {"b": 5.0, "c": 5.0}, "{'b': 5, 'c': 5.0}"),
        (field({"patternProperties": {"^n": INTEGER}}), {"n1": 5.0, "m": 5.0}, "{'n1': 5, 'm': 5.0}"),
        (field({"anyOf": [{"type": "string"}, INTEGER]}), 5.0, "5"),
        (field({"$ref": "#/$defs/n"}, **{"$defs": {"n": INTEGER}}), 5.0, "5"),
        (field({"$ref": "#/$defs/n/items"}, **{"$defs": {"n": {"items": INTEGER}}}), 5.0, "5"),
    ],
)
def test_integers_arrive_in_their_places(schema: JsonObject, given: Any, wanted: str) -> None:
    arguments = {"a": given}
    made = integers_of(schema)(arguments)
    assert repr(made["a"]) == wanted
    assert made is not arguments
    assert arguments["a"] is given


def test_a_schema_may_hold_itself() -> None:
    node: JsonObject = {"properties": {"n": INTEGER, "next": {"$ref": "#/$defs/node"}}}
    schema = {"type": "object", "$ref": "#/$defs/node", "$defs": {"node": node}}
    assert repr(integers_of(schema)({"n": 1.0, "next": {"n": 2.0}})) == "{'n': 1, 'next': {'n': 2}}"


def test_a_handler_of_one_dict_gets_them() -> None:
    @tool(tool_properties={"n": {"propertyType": "integer"}})
    def handler(arguments: dict[str, Any]) -> str:
        """Handler."""
        return repr(arguments)

    entry = declared(handler)
    assert entry is not None
    loaded = entry.load()
    assert loaded.run(loaded.check_input({"n": 5.0}), None) == "{'n': 5}"
