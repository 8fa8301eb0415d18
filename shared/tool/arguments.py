"""From a call's arguments to a function's keyword arguments, by way of pydantic.

    model of the parameters -> core schema, made exact -> the published JSON Schema
                                                       -> the validator that binds

Both come from the same core schema, so that what is published is what is taken.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import pydantic
from pydantic_core import ErrorDetails, SchemaValidator, core_schema

from shared.errors import InputError
from shared.text import kind_of
from shared.tool.exact import EXPECTED, exact
from shared.tool.faults import Fault, Steps, told
from shared.tool.spec import JsonObject
from shared.tool.tidy import Tidy, tidy

#: Errors that the published schema finds too, beside those named `…_type`. Where it found none, they tell of a
#: union's other branches.
_SEEN_BY_SCHEMA: Final = (
    "missing", "extra_", "unexpected_", "literal_", "enum", "none_", "union_tag_", "greater_", "less_",
    "multiple_of", "string_", "too_short", "too_long",
)  # fmt: skip
_EXPECTED: Final = "expected "
_GOT: Final = ", got another string"


class Binder:
    """Turns arguments into what a model's annotations say: a datetime, an enum's member, a nested model."""

    def __init__(self, model: type[pydantic.BaseModel]) -> None:
        core = exact(pydantic.TypeAdapter(model).core_schema)
        self.schema = _published(core)
        # Models carry validators of their own, made from schemas that are not exact.
        self._validate = SchemaValidator(core, _use_prebuilt=False).validate_python

    def bind(self, arguments: JsonObject) -> dict[str, Any]:
        """Keyword arguments of arguments that fit the schema. Raises `InputError` with every fault."""
        try:
            bound: dict[str, Any] = self._validate(arguments).__dict__
        except pydantic.ValidationError as error:
            raise InputError(faults=told(_faults(error, arguments))) from None
        return bound

    def faults(self, arguments: JsonObject) -> list[Fault]:
        """What the annotations refuse, of any arguments."""
        try:
            self._validate(arguments)
        except pydantic.ValidationError as error:
            return _faults(error, arguments)
        return []


class _Published(Tidy):
    """pydantic's generator, saying what the exact core schema says where it would ask the classes."""

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonObject:
        return _closed(super().model_fields_schema(schema), schema)

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonObject:
        return _closed(super().dataclass_args_schema(schema), schema)

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonObject:
        # The lengths are those of the bytes, not of the text; the binder checks them.
        return {"type": "string", "contentEncoding": "base64"}

    def encode_default(self, dft: Any) -> Any:
        return base64.b64encode(dft).decode() if isinstance(dft, bytes) else super().encode_default(dft)


def _closed(published: JsonObject, schema: Any) -> JsonObject:
    forbids = schema.get("extra_behavior") == "forbid"
    return {**published, "additionalProperties": False} if forbids else published


def _published(core: Any) -> JsonObject:
    """Root `type: object`, no other arguments accepted."""
    schema = tidy(_Published().generate(core, mode="validation"))
    for published in schema.setdefault("properties", {}).values():
        if published.get("default", ...) is None:
            del published["default"]
    return schema


def _faults(error: pydantic.ValidationError, arguments: JsonObject) -> list[Fault]:
    """pydantic's errors with JSON paths. What its unions say of one value, branch by branch, is one fault."""
    plain: list[Fault] = []
    unions: dict[Steps, list[tuple[Steps, ErrorDetails]]] = defaultdict(list)
    for item in error.errors(include_url=False, include_input=False):
        steps, union = _place(item, arguments)
        if union is None:
            plain.append(Fault(steps, _words(item)))
        else:
            unions[union].append((steps, item))
    return plain + [fault for union, items in unions.items() for fault in _of_union(union, items, arguments)]


def _of_union(union: Steps, items: list[tuple[Steps, ErrorDetails]], arguments: JsonObject) -> Iterator[Fault]:
    texts: dict[Steps, list[str]] = defaultdict(list)
    for steps, item in items:
        kind = item["type"]
        if not kind.endswith("_type") and not kind.startswith(_SEEN_BY_SCHEMA):
            texts[steps].append(_words(item))
    for steps, found in texts.items():
        yield Fault(steps, _joined(list(dict.fromkeys(found))))
    if not texts:
        value: Any = arguments
        for step in union:
            value = value[step]
        yield Fault(union, f"fits none of the allowed forms, got {kind_of(value)}")


def _joined(texts: list[str]) -> str:
    legal = [text.removeprefix(_EXPECTED).removesuffix(_GOT) for text in texts if text.endswith(_GOT)]
    others = [text for text in texts if not text.endswith(_GOT)]
    return " or ".join([*([f"{_EXPECTED}{' or '.join(legal)}{_GOT}"] if legal else []), *others])


def _place(item: ErrorDetails, arguments: JsonObject) -> tuple[Steps, Steps | None]:
    """Where an error is, and the union that it comes from.

    pydantic's locations also name a union's branches and validators; only steps that lead into the value are
    a JSON path.
    """
    value: Any = arguments
    steps: list[Any] = []
    union: Steps | None = None
    step: Any
    for number, step in enumerate(item["loc"], start=1):
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        ):
            value = value[step]
        elif not (item["type"] == "missing" and number == len(item["loc"])):
            if step != "[key]":
                union = tuple(steps) if union is None else union
            continue
        steps.append(step)
    return tuple(steps), union


def _words(item: ErrorDetails) -> str:
    kind = item["type"]
    expected = next((legal for start, legal in EXPECTED.items() if kind.startswith(start)), None)
    if expected is not None and kind.endswith("_parsing"):
        words = f"{_EXPECTED}{expected}{_GOT}"
    elif kind == "float_type":
        # The kind is right, or the schema would have told: an integer that no float can hold.
        words = "must be a finite number"
    else:
        words = item["msg"].removeprefix("Input ").removeprefix("Value error, ")
        words = words[:1].lower() + words[1:]
    return f"field name: {words}" if item["loc"][-1:] == ("[key]",) else words
