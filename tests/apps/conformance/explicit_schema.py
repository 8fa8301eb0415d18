"""A tool whose input schema was written by hand, as a contract's is, with keywords that no annotation gives."""

from __future__ import annotations

from typing import Final

from shared.tool.handler import Handler
from shared.tool.result import from_value
from shared.tool.spec import JsonObject, ToolSpec

SCHEMA: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
SPEC: Final = ToolSpec(
    name="json_schema_2020_12_tool",
    tool_id="json_schema_2020_12_tool",
    title="JSON Schema 2020-12",
    description="Tool with JSON Schema 2020-12 features",
    input_schema=SCHEMA,
    result_schema=None,
)


class ExplicitSchemaTool:
    """A `ToolEntry`."""

    spec = SPEC

    def load(self) -> Handler:
        """See `ToolEntry`."""
        return Handler(
            spec=self.spec,
            run=lambda arguments, context: "accepted",
            is_async=False,
            needs_context=False,
            to_result=from_value,
        )
