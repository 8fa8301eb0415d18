"""Checks JSON values against JSON Schemas and says what is wrong in plain words.

Every fault is named at once, each with its JSON path, the kind of the value and what is legal. The value itself
is not repeated: it may be a secret, and it may be long.
"""

from __future__ import annotations

import difflib
import functools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from shared.text import kind_of as kind_of
from shared.tool.faults import Fault, Steps, told
from shared.tool.spec import JsonObject

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

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
        validator: Validator = self._draft()(self.schema, registry=no_registry())
        return validator

    def _draft(self) -> Any:
        """The class of validators that checks values against the schema."""
        return draft()

    def faults(self, value: Any) -> list[str]:
        """What is wrong with a JSON value, as `$.path: …` texts; empty when it fits."""
        return told(self.found(value))

    def found(self, value: Any) -> list[Fault]:
        """What is wrong with a JSON value; empty when it fits."""
        if self._fits_flat(value):
            return []
        validator = self._validator
        if validator.is_valid(value):
            return []
        return _described(validator.iter_errors(value))


@functools.cache
def draft() -> Any:
    """JSON Schema, draft 2020-12, in which 19.99 is a multiple of 0.01: numbers count as they are written."""
    from jsonschema import Draft202012Validator, validators

    extend: Any = validators.extend  # has no types
    return extend(Draft202012Validator, {"multipleOf": _multiple})


def no_registry() -> Any:
    """An empty one: jsonschema's default one fetches what a `$ref` names."""
    from referencing import Registry

    return Registry()


def _multiple(validator: Any, rule: Any, value: Any, schema: JsonObject) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "number") and math.isfinite(value):
        quotient = Fraction(repr(value)) / Fraction(repr(rule))
        if quotient.denominator != 1:
            yield ValidationError(f"{value!r} is not a multiple of {rule!r}")


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


def _described(errors: Iterable[Any]) -> list[Fault]:
    # An error is a jsonschema ValidationError; its attributes are typed too loosely to be of help.
    ordered = sorted(errors, key=lambda error: [str(step) for step in error.absolute_path])
    listed = {tuple(error.absolute_path) for error in ordered if error.validator in ("enum", "const")}
    return [
        fault
        for error in ordered
        # The legal values say the kind too.
        if not (error.validator == "type" and tuple(error.absolute_path) in listed)
        for fault in _describe(error)
    ]


def _describe(error: Any) -> Iterator[Fault]:
    steps: Steps = tuple(error.absolute_path)
    keyword = str(error.validator)
    if keyword == "required":
        # One error per missing property; its name stands only in the message.
        for name in error.validator_value:
            if name not in error.instance and repr(name) in error.message:
                yield Fault((*steps, name), "required field is missing")
    elif keyword == "additionalProperties" and error.validator_value is False:
        yield from _unknown(error, steps)
    elif keyword in ("anyOf", "oneOf") and error.context:
        yield from _alternatives(error, steps)
    else:
        words = _WORDS.get(keyword)
        text = words(error.validator_value, error.instance) if words else f"does not satisfy '{keyword}'"
        yield Fault(steps, f"field name '{error.instance[:80]}': {text}" if _is_of_name(error) else text)


def _is_of_name(error: Any) -> bool:
    """Whether it is about a field's name: `propertyNames` stands on the way to the rule, as a keyword."""
    way = ["", *error.absolute_schema_path]
    return any(step == "propertyNames" and way[at - 1] != "properties" for at, step in enumerate(way))


def _unknown(error: Any, steps: Steps) -> Iterator[Fault]:
    known = [name for name in error.schema.get("properties", {}) if not name.startswith("__")]
    for name in error.instance:
        if name in error.schema.get("properties", {}):
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; known are {', '.join(sorted(known)) or 'none'}"
        yield Fault(steps, f"unknown field '{name[:80]}'{hint}", field=name)


def _alternatives(error: Any, steps: Steps) -> Iterator[Fault]:
    """The expected kinds, where no alternative is of the value's kind; the faults of the one that is meant."""
    branches: dict[Any, list[Any]] = defaultdict(list)
    for inner in error.context:
        branches[inner.schema_path[0]].append(inner)
    wrong_kinds = [_wrong_kinds(branch) for branch in branches.values()]
    if all(wrong_kinds):
        kinds = dict.fromkeys(kind for branch in wrong_kinds for kind in branch)
        yield Fault(steps, f"expected {' or '.join(kinds)}, got {kind_of(error.instance)}")
        return
    meant = [branch for branch in branches.values() if not any(map(_excludes, branch))]
    if len(meant) == 1:
        yield from _described(meant[0])
        return
    if not meant and (choice := _choice(list(branches.values()))) is not None:
        yield choice
        return
    nearest = min(meant or branches.values(), key=lambda branch: (sum(map(_excludes, branch)), len(branch)))
    nearest_faults = "; ".join(map(str, _described(nearest)))
    got = kind_of(error.instance)
    yield Fault(steps, f"fits none of the allowed forms, got {got} (nearest: {nearest_faults})")


def _choice(branches: list[list[Any]]) -> Fault | None:
    """The legal values of the one field that tells the alternatives apart, if there is such a field."""
    chosen = [[inner for inner in branch if inner.validator in ("const", "enum")] for branch in branches]
    places = {tuple(inner.absolute_path) for inners in chosen for inner in inners}
    if len(places) != 1 or not all(chosen):
        return None
    values: list[Any] = []
    for rule in (inner for inners in chosen for inner in inners):
        values += rule.validator_value if rule.validator == "enum" else [rule.validator_value]
    return Fault(places.pop(), _WORDS["enum"](values, chosen[0][0].instance))


def _wrong_kinds(branch: list[Any]) -> list[str]:
    """The kinds that an alternative asks for, if the value is of another."""
    rules = [inner.validator_value for inner in branch if inner.validator == "type" and not inner.relative_path]
    return [kind for rule in rules for kind in ([rule] if isinstance(rule, str) else rule)]


def _excludes(inner: Any) -> bool:
    """Whether an error says that its alternative is not the one meant: another kind, or another constant."""
    depth = len(inner.relative_path)
    return (inner.validator == "type" and depth == 0) or (inner.validator in ("const", "enum") and depth <= 1)


def _listed(values: list[Any]) -> str:
    """Texts as they are, unless one of them could be taken for a number or another value."""
    bare = not any(isinstance(value, str) and _is_json(value) for value in values)
    return ", ".join(value if bare and isinstance(value, str) else json.dumps(value) for value in values)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _expected(rule: Any, value: Any) -> str:
    kinds = [rule] if isinstance(rule, str) else list(rule)
    if isinstance(value, float) and not math.isfinite(value) and "number" in kinds:
        return "must be a finite number"
    return f"expected {' or '.join(kinds)}, got {kind_of(value)}"


_WORDS: Final[dict[str, Callable[[Any, Any], str]]] = {
    "type": _expected,
    "enum": lambda rule, value: f"value must be one of [{_listed(rule)}], got {kind_of(value)}",
    "const": lambda rule, value: f"value must be {_listed([rule])}, got {kind_of(value)}",
    "minimum": lambda rule, value: f"must be at least {rule}, got a smaller {kind_of(value)}",
    "maximum": lambda rule, value: f"must be at most {rule}, got a larger {kind_of(value)}",
    "exclusiveMinimum": lambda rule, value: f"must be greater than {rule}, got another {kind_of(value)}",
    "exclusiveMaximum": lambda rule, value: f"must be less than {rule}, got another {kind_of(value)}",
    "multipleOf": lambda rule, value: f"must be a multiple of {rule}, got another {kind_of(value)}",
    "minLength": lambda rule, value: f"must have at least {rule} characters, has {len(value)}",
    "maxLength": lambda rule, value: f"must have at most {rule} characters, has {len(value)}",
    "pattern": lambda rule, value: f"must match the pattern {rule}, got another {kind_of(value)}",
    "format": lambda rule, value: f"must be a {rule}, got another {kind_of(value)}",
    "minItems": lambda rule, value: f"must have at least {rule} items, has {len(value)}",
    "maxItems": lambda rule, value: f"must have at most {rule} items, has {len(value)}",
    "uniqueItems": lambda rule, value: "items must differ from each other, got an array that repeats one",
    "minProperties": lambda rule, value: f"must have at least {rule} fields, has {len(value)}",
    "maxProperties": lambda rule, value: f"must have at most {rule} fields, has {len(value)}",
}
