"""The schema check for arguments: kinder to null, and stricter with numbers, than JSON Schema."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

from shared.tool.spec import JsonObject
from shared.tool.validation import SchemaCheck, draft


class ArgumentCheck(SchemaCheck):
    """A schema check for arguments: at any depth, null for a field that may be left out counts as absent.

    A number must be one that JSON has: `1e400` is read as infinity.
    """

    def __init__(self, schema: JsonObject) -> None:
        super().__init__(schema)
        self._floats = [name for name, kind in (self._flat or {}).items() if kind is float]

    def _fits_flat(self, value: Any) -> bool:
        if not super()._fits_flat(value):
            return False
        for name in self._floats:  # noqa: SIM110 - this runs in every call, and `all` takes twice as long
            if not math.isfinite(value.get(name, 0)):
                return False
        return True

    def _draft(self) -> Any:
        return _argument_draft()


@functools.cache
def _argument_draft() -> Any:
    from jsonschema import Draft202012Validator, validators

    kinds = Draft202012Validator.TYPE_CHECKER
    finite = kinds.redefine(
        "number",
        lambda _, value: kinds.is_type(value, "number") and (type(value) is int or math.isfinite(value)),
    )
    extend: Any = validators.extend  # has no types
    return extend(draft(), {"properties": _present}, type_checker=finite)


def _present(validator: Any, properties: JsonObject, instance: Any, schema: JsonObject) -> Iterator[Any]:
    """The keyword `properties`, passing over a null that counts as absent."""
    if isinstance(instance, dict):
        required = schema.get("required", ())
        for name, inner in properties.items():
            if name in instance and (instance[name] is not None or name in required):
                yield from validator.descend(instance[name], inner, path=name, schema_path=name)
