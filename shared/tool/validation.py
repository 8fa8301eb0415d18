"""Checks JSON values against JSON Schemas and says what is wrong in plain words.

Every fault is named at once, each with its JSON path, the kind of the value and what is legal. The value itself
is not repeated: it may be a secret, and it may be long.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from shared.tool.spec import JsonObject

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

#: A longer list helps nobody.
MAX_FAULTS: Final = 20
_KINDS: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}

_PLAIN: Final[dict[str, type]] = {"string": str, "integer": int, "boolean": bool, "number": float}


class SchemaCheck:
    """A schema's validator, built at its first use and kept."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self._flat = _flat_types(schema)
        self._required = frozenset(schema.get("required", ()))

    def _fits_flat(self, value: Any) -> bool:
        """A quick yes for the commonest case, flat objects; a no decides nothing."""
        flat = self._flat
        return (
            flat is not None
            and type(value) is dict
            and self._required <= value.keys()
            and all(type(item) is flat.get(name) for name, item in value.items())
        )

    @functools.cached_property
    def _validator(self) -> Validator:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(self.schema)

    def faults(self, value: Any) -> list[str]:
        """What is wrong with a JSON value, as `$.path: …` texts; empty when it fits."""
        if self._fits_flat(value):
            return []
        validator = self._validator
        if validator.is_valid(value):
            return []
        errors = sorted(validator.iter_errors(value), key=lambda error: [str(step) for step in error.path])
        found = [text for error in errors for text in _describe(error)]
        unique = list(dict.fromkeys(found))
        if len(unique) > MAX_FAULTS:
            unique = [*unique[:MAX_FAULTS], f"and {len(unique) - MAX_FAULTS} more"]
        return unique


def _flat_types(schema: JsonObject) -> dict[str, type] | None:
    """Property -> Python type, for an object schema whose properties say a plain type and nothing that binds.

    None for any other schema. Only keywords that cannot refuse a value of the right type are passed over.
    """
    if set(schema) - {"type", "properties", "required", "additionalProperties", "$defs", "description"}:
        return None
    flat: dict[str, type] = {}
    for name, prop in schema.get("properties", {}).items():
        kind = prop.get("type") if isinstance(prop, dict) else None
        if not isinstance(kind, str) or kind not in _PLAIN:
            continue
        if set(prop) <= {"type", "description", "title", "default"}:
            flat[name] = _PLAIN[kind]
    return flat


def kind_of(value: object) -> str:
    """The JSON kind of a value, as JSON Schema names it."""
    return _KINDS.get(type(value), type(value).__name__)


def _describe(error: Any) -> Iterator[str]:
    # `error` is a jsonschema ValidationError; its attributes are typed too loosely to be of help.
    path = error.json_path
    keyword = str(error.validator)
    if keyword == "required":
        # One error per missing property; its name stands only in the message.
        for name in error.validator_value:
            if name not in error.instance and repr(name) in error.message:
                yield f"{path}.{name}: required field is missing"
    elif keyword == "additionalProperties":
        yield from _unknown(error, path)
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield f"{path}: {_alternatives(error)}"
    else:
        words = _WORDS.get(keyword)
        rule = error.validator_value
        told = words(rule, error.instance) if words else f"does not satisfy '{keyword}'"
        yield f"{path}: {told}"


def _unknown(error: Any, path: str) -> Iterator[str]:
    known = [name for name in error.schema.get("properties", {}) if not name.startswith("__")]
    for name in error.instance:
        if name in error.schema.get("properties", {}):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(sorted(known)) or 'none'}"
        yield f"{path}: unknown field '{name[:80]}'{hint}"


def _alternatives(error: Any) -> str:
    """The expected kinds, where the alternatives differ in kind; the nearest one's fault otherwise."""
    kinds: list[str] = []
    for inner in error.context or ():
        if inner.validator == "type" and not list(inner.relative_path):
            kinds += (
                [inner.validator_value] if isinstance(inner.validator_value, str) else inner.validator_value
            )
    branches = {inner.schema_path[0] for inner in error.context or ()}
    if len(kinds) >= len(branches):
        return f"expected {' or '.join(dict.fromkeys(kinds))}, got {kind_of(error.instance)}"
    deepest = max(error.context or (), key=lambda inner: len(inner.path))
    inner_text = next(iter(_describe(deepest)), "")
    return f"fits none of the allowed forms (nearest: {inner_text})"


def _listed(values: list[Any]) -> str:
    import json

    return ", ".join(value if isinstance(value, str) else json.dumps(value) for value in values)


def _expected(rule: Any, value: Any) -> str:
    kinds = [rule] if isinstance(rule, str) else list(rule)
    return f"expected {' or '.join(kinds)}, got {kind_of(value)}"


_WORDS: Final[dict[str, Callable[[Any, Any], str]]] = {
    "type": _expected,
    "enum": lambda rule, value: f"value must be one of [{_listed(rule)}]",
    "const": lambda rule, value: f"value must be {_listed([rule])}",
    "minimum": lambda rule, value: f"must be at least {rule}",
    "maximum": lambda rule, value: f"must be at most {rule}",
    "exclusiveMinimum": lambda rule, value: f"must be greater than {rule}",
    "exclusiveMaximum": lambda rule, value: f"must be less than {rule}",
    "multipleOf": lambda rule, value: f"must be a multiple of {rule}",
    "minLength": lambda rule, value: f"must have at least {rule} characters, has {len(value)}",
    "maxLength": lambda rule, value: f"must have at most {rule} characters, has {len(value)}",
    "pattern": lambda rule, value: f"must match the pattern {rule}",
    "format": lambda rule, value: f"must be a {rule}",
    "minItems": lambda rule, value: f"must have at least {rule} items, has {len(value)}",
    "maxItems": lambda rule, value: f"must have at most {rule} items, has {len(value)}",
    "uniqueItems": lambda rule, value: "items must differ from each other",
    "minProperties": lambda rule, value: f"must have at least {rule} fields, has {len(value)}",
    "maxProperties": lambda rule, value: f"must have at most {rule} fields, has {len(value)}",
}
