"""Takes pydantic's readiness to convert out of a core schema, so that arguments mean what the JSON says.

pydantic reads "5" as a moment in 1970, 1.0 as True, a text as its UTF-8 bytes, and drops fields that it does
not know. The published schema promises none of this. What stays is the way from JSON to Python: a text to a
date, a number without fraction to an int, a list to a set. Strict models are loosened to the same rules:
pydantic's own strictness, meant for Python values, would refuse every date.

What core schemas are made of stands in pydantic_core's module `core_schema`. A schema is copied, never changed,
since models share theirs.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final

from pydantic.types import EncodedBytes
from pydantic_core import PydanticCustomError, core_schema

type Node = dict[str, Any]

#: What is legal where an error's type begins so and ends with `_parsing`, whoever finds it: the check here, or
#: pydantic's parser.
EXPECTED: Final = {
    "date_": "a date (ISO 8601, like 2026-01-31)",
    "datetime_": "a date and time (ISO 8601, like 2026-01-31T08:15:00Z)",
    "time_delta_": "a duration (ISO 8601, like PT1H30M)",
    "time_": "a time (ISO 8601, like 08:15:00Z)",
    "bytes_": "base64 text",
    "decimal_": "a decimal number (like 12.50)",
    "uuid_": "a UUID",
    "int_": "an integer",
}

_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:?\d{2})?"
_TEXTS: Final = {
    "date": ("date", re.compile(_DAY, re.ASCII)),
    "datetime": ("datetime", re.compile(f"{_DAY}[Tt ]{_CLOCK}", re.ASCII)),
    "time": ("time", re.compile(_CLOCK, re.ASCII)),
    "timedelta": ("time_delta", re.compile(r"[+-]?P(?=.)(\d+W|(\d+[YMD])*(T(\d+(\.\d+)?[HMS])+)?)", re.ASCII)),
}
#: Keys of a core schema that hold schemas: one, a list, or a mapping by name. Others may hold anything.
_INNER: Final = frozenset(
    {
        "schema", "fields", "choices", "definitions", "items_schema", "values_schema", "steps", "lax_schema",
        "strict_schema", "json_schema", "python_schema", "extras_schema", "arguments_schema", "var_args_schema",
        "var_kwargs_schema", "json_schema_input_schema",
    }
)  # fmt: skip
_FIELDS: Final = ("model-fields", "dataclass-args", "typed-dict")


def exact(schema: Any) -> Any:
    """The core schema of JSON arguments, made to take only what its published JSON Schema says."""
    return _Rewriter(schema).node(schema)


class _Rewriter:
    def __init__(self, schema: Node) -> None:
        self._definitions = {item["ref"]: item for item in schema.get("definitions", ())}

    def node(self, old: Node, *, extra: str | None = None, json: bool = True) -> Node:
        """`extra`: what the class around says of unknown fields. `json`: False below an author's function,
        which may hand on what it likes, say texts for ints."""
        kind = old["type"]
        if _decodes(old):
            return old
        if kind in ("model", "dataclass", "typed-dict"):
            extra = old.get("config", {}).get("extra_fields_behavior")
        inner_json = json and kind not in ("function-before", "function-wrap")
        new = {
            key: self._inner(value, extra, inner_json) if key in _INNER else value for key, value in old.items()
        }
        new.pop("strict", None)
        if "config" in old:
            new["config"] = {key: value for key, value in old["config"].items() if key != "strict"}
        if "keys_schema" in old:
            # The names of an object are texts, also those of a dict[int, str].
            new["keys_schema"] = self.node(old["keys_schema"], json=False)
        if kind in _FIELDS:
            return self._fields(new, extra)
        if json and kind in ("float", "bool", "str"):
            new["strict"] = True
        if kind == "int":
            return _integer(new) if json else _before(_integral, new)
        if kind in _TEXTS:
            return _before(_iso(*_TEXTS[kind]), new)
        if kind == "bytes":
            return _before(_from_base64, new)
        if kind in ("enum", "literal"):
            return _member(new)
        return new

    def _inner(self, value: Any, extra: str | None, json: bool) -> Any:
        if isinstance(value, list):
            return [self._inner(item, extra, json) for item in value]
        if isinstance(value, tuple):  # a union's choice with its label
            return (self._inner(value[0], extra, json), *value[1:])
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("type"), str):
            return self.node(value, extra=extra, json=json)
        return {name: self._inner(item, extra, json) for name, item in value.items()}

    def _fields(self, new: Node, extra: str | None) -> Node:
        """Refuses unknown fields, and takes null for a field that may be left out as its absence."""
        if new.get("extra_behavior", extra) != "allow":
            new["extra_behavior"] = "forbid"
        fields = new["fields"]
        named = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
        total = new.get("total", True)
        optional = frozenset(
            alias
            for name, field in named
            if self._may_be_absent(field, total) and not self._takes_none(field["schema"])
            for alias in _names(field.get("validation_alias", name))
        )
        return _before(_without(optional), new) if optional else new

    @staticmethod
    def _may_be_absent(field: Node, total: bool) -> bool:
        if field["type"] == "typed-dict-field":
            return not field.get("required", total)
        found: bool = field["schema"]["type"] == "default"
        return found

    def _takes_none(self, schema: Node, seen: frozenset[str] = frozenset()) -> bool:
        kind = schema["type"]
        if kind in ("nullable", "none", "any"):
            return True
        if kind == "literal":
            return None in schema["expected"]
        if kind == "definition-ref":
            ref = schema["schema_ref"]
            target = self._definitions.get(ref)
            return ref not in seen and target is not None and self._takes_none(target, seen | {ref})
        if kind == "union":
            choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
            return any(self._takes_none(choice, seen) for choice in choices)
        inner = schema.get("schema") if kind not in _FIELDS else None
        return (
            isinstance(inner, dict)
            and (kind != "model" or schema.get("root_model", False))
            and self._takes_none(inner, seen)
        )


def _names(alias: Any) -> Iterable[str]:
    if isinstance(alias, str):
        return [alias]
    paths = [alias] if alias and not isinstance(alias[0], list) else alias
    return [path[0] for path in paths if len(path) == 1]


def _before(function: Callable[[Any], Any], schema: Node) -> Node:
    """The schema with a function before it, under the same name for references."""
    inner: Any = schema
    ref = inner.pop("ref", None)
    return {**core_schema.no_info_before_validator_function(function, inner), **({"ref": ref} if ref else {})}


def _integer(strict: Node) -> Node:
    """An int as it is; else a number without fraction, of any size. JSON knows one kind of number."""
    strict = {**strict, "strict": True}
    choices: Any = [strict, _before(_integral, dict(strict))]
    either = core_schema.union_schema(choices, mode="left_to_right", custom_error_type="int_type")
    # The first branch is the one that is published.
    return {"type": "json-or-python", "json_schema": strict, "python_schema": either}


def _integral(value: Any) -> Any:
    return int(value) if type(value) is float and value.is_integer() else value


def _iso(kind: str, pattern: re.Pattern[str]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        # An author's validator may have made the object already.
        if isinstance(value, int | float):
            raise PydanticCustomError(f"{kind}_type", "should be text")
        if isinstance(value, str) and not pattern.fullmatch(value):
            raise PydanticCustomError(f"{kind}_parsing", "should be ISO 8601")
        return value

    return check


def _from_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise PydanticCustomError("bytes_parsing", "should be base64") from None


def _member(schema: Node) -> Node:
    """Looks members up by kind and value, since Python takes 1, 1.0 and True for the same."""
    members = {
        (_kind(value), value): member
        for member in schema.get("members") or schema.get("expected", ())
        if _kind(value := member.value if isinstance(member, Enum) else member) is not None
    }
    if all(kind is str for kind, _ in members):
        return schema

    def find(value: Any) -> Any:
        kind = _kind(value)
        return value if kind is None else members.get((kind, value), value)

    return _before(find, schema)


def _kind(value: Any) -> type | None:
    if isinstance(value, bool | str):
        return bool if isinstance(value, bool) else str
    return float if isinstance(value, int | float) else None


def _without(optional: frozenset[str]) -> Callable[[Any], Any]:
    def drop(value: Any) -> Any:
        if type(value) is not dict or None not in value.values():
            return value
        return {name: item for name, item in value.items() if item is not None or name not in optional}

    return drop


def _decodes(node: Node) -> bool:
    """pydantic's Base64Bytes decodes by itself."""
    function = node.get("function")
    owner = getattr(function.get("function") if isinstance(function, dict) else None, "__self__", None)
    return isinstance(owner, EncodedBytes)
