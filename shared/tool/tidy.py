"""What pydantic generates as a JSON Schema, tidied to what a person would write."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from shared.errors import ResultError
from shared.tool.json_form import to_json
from shared.tool.spec import JsonObject


class Tidy(GenerateJsonSchema):
    """Without the titles that pydantic derives from field names: they repeat the name.

    Bytes that are sent say that they are base64 (`json_form`, `writing`); `format: binary` would be raw bytes.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        if self.mode != "serialization":
            return super().encode_default(dft)
        try:
            return to_json(dft)
        except ResultError as error:
            raise PydanticSerializationError(error.message) from error

    def bytes_schema(self, schema: Any) -> JsonObject:
        found = super().bytes_schema(schema)
        if self.mode != "serialization":
            return found
        # Lengths are counted in bytes, not in characters of base64.
        return {"type": "string", "contentEncoding": "base64"}


def tidy(schema: JsonObject) -> JsonObject:
    schema.pop("title", None)
    _drop_discriminators(schema)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    return schema


def _drop_discriminators(schema: Any) -> None:
    """OpenAPI's `discriminator` is not JSON Schema; the constants in the alternatives say the same."""
    if isinstance(schema, dict):
        if "oneOf" in schema and isinstance(schema.get("discriminator"), dict):
            del schema["discriminator"]
        for part in schema.values():
            _drop_discriminators(part)
    elif isinstance(schema, list):
        for part in schema:
            _drop_discriminators(part)
