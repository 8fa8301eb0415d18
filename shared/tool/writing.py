"""The JSON form of values whose type or annotation says more than their Python value: pydantic's part.

A pydantic model, a dataclass with aliases, or `Annotated[Decimal, PlainSerializer(float)]` is written as its
own serializer says, by alias, which is also what the published schema says. What no such rule is about has the
form of `json_form`, inside of these too: base64 for bytes, sorted sets, no lost keys. To that end every part of
a type's core schema (pydantic_core's `core_schema` module) without a rule is replaced by a call of `json_form`;
the schema itself is copied, since classes share theirs.

Loaded with the first value that needs it: this module needs pydantic, the app at load does not.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

import pydantic
from pydantic.types import EncodedBytes, EncodedStr
from pydantic_core import PydanticSerializationError, SchemaSerializer

from shared.errors import ResultError
from shared.tool.json_form import plain_form, sorted_form

_LOG = logging.getLogger(__name__)

#: A returned value -> JSON data. Raises `ResultError`.
type Write = Callable[[Any], Any]
type Node = dict[str, Any]

#: In the place of a schema without rules.
_PLAIN: Final[Node] = {
    "type": "any",
    "serialization": {"type": "function-plain", "function": plain_form, "when_used": "always"},
}
#: Keys of a core schema that hold schemas: one, a list, or a mapping by name. Others may hold anything.
_INNER: Final = frozenset(
    {
        "choices", "computed_fields", "fields", "items_schema", "json_schema", "keys_schema", "lax_schema",
        "python_schema", "return_schema", "schema", "steps", "strict_schema", "values_schema",
    }
)  # fmt: skip
#: What says that a schema's values are written in a way of their own.
_RULES: Final = ("serialization", "serialization_alias", "serialization_exclude", "serialization_exclude_if")
_CLASSES: Final = ("dataclass", "model")
_TIME_SETTINGS: Final = ("ser_json_timedelta", "ser_json_temporal")
_TIMES: Final = ("date", "datetime", "time", "timedelta")
_FUNCTIONS: Final = ("function-plain", "function-wrap")
#: Their functions give bytes that are text already: the base64 of Base64Bytes.
_ENCODERS: Final = (EncodedBytes, EncodedStr)
#: What stands between the schema of a class and those of its fields.
_FRAME: Final = (
    *_CLASSES, "dataclass-args", "function-after", "function-before", "function-wrap", "model-fields",
)  # fmt: skip


def annotation_writer(adapter: pydantic.TypeAdapter[Any]) -> Write | None:
    """The writer of an annotation; None where every value's type alone decides its form.

    A value that is not what the annotation says is written as far as it is: the result schema judges it.
    """
    schema = _Rewriter(adapter.core_schema).of_annotation()
    if schema is None:
        return None
    write = _writer(SchemaSerializer(schema))

    def written(value: Any) -> Any:
        try:
            return write(value)
        except RecursionError:
            raise ResultError("the result refers to itself, or is nested too deeply") from None

    return written


@functools.lru_cache(maxsize=1024)
def class_writer(kind: Any) -> Write | None:
    """The writer of a class's instances; None for a dataclass that is an object of its fields.

    It raises `RecursionError` for an instance that holds itself.
    """
    try:
        core = pydantic.TypeAdapter(kind).core_schema
        schema = _Rewriter(core).of_class(always=hasattr(kind, "__pydantic_serializer__"))
        if schema is None:
            return None
        # Not what pydantic has built for the class already: that would write all of it in pydantic's own form.
        return _writer(SchemaSerializer(schema, _use_prebuilt=False))
    except Exception as error:
        # An annotation that pydantic knows nothing of; the values may have a form all the same.
        _LOG.debug("%s has no writer of its own: %s", kind.__qualname__, error)
        return None


def _writer(serializer: Any) -> Write:
    """Raises `ResultError`, and `RecursionError` as `plain_form` does."""

    def write(value: Any) -> Any:
        try:
            # Without warnings: a value of another kind than was said is the result check's business.
            made = serializer.to_python(value, mode="json", by_alias=True, warnings=False, fallback=plain_form)
        except (PydanticSerializationError, ValueError, TypeError) as error:
            raise _cause(error) from None
        return plain_form(made)

    return write


def _cause(error: Exception) -> Exception:
    """The error that a part of ours raised below, or else one that says what a serializer said."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ResultError | RecursionError):
            return cause
        cause = cause.__cause__
    if str(error).endswith(": RecursionError"):
        # pydantic does not chain this one.
        return RecursionError()
    return ResultError(f"the result cannot be written as JSON: {_reason(error)}")


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _Rewriter:
    """A core schema with a call of `json_form` in every place that no rule is about."""

    def __init__(self, schema: Any) -> None:
        self._definitions: dict[str, Node] = {}
        while schema["type"] == "definitions":
            self._definitions |= {item["ref"]: item for item in schema["definitions"]}
            schema = schema["schema"]
        self._root: Node = schema
        self._kept: tuple[str, ...] = ()

    def of_annotation(self) -> Node | None:
        """None where there is no rule at all."""
        return self._whole(self._node(self._root)) if self._has_rule(self._root) else None

    def of_class(self, *, always: bool) -> Node | None:
        """The class's own fields are kept. None where there is no rule, unless `always`."""
        root = self._root
        while root["type"] == "definition-ref":
            root = self._definitions[root["schema_ref"]]
        config = _config(root)
        if any(config.get(setting) for setting in _TIME_SETTINGS):
            # The published schema follows these (a number for a duration), unlike those of bytes and floats.
            self._kept = _TIMES
        if not always and not self._frame_has_rule(root):
            return None
        return self._whole(self._frame({key: value for key, value in root.items() if key != "ref"}))

    def _whole(self, schema: Node) -> Node:
        rest = [{**self._node(item), "ref": ref} for ref, item in self._definitions.items()]
        return {"type": "definitions", "schema": schema, "definitions": rest} if rest else schema

    def _frame(self, node: Node, extra: str | None = None) -> Node:
        """`extra`: what the model around says of further fields."""
        if node["type"] not in _FRAME:
            return self._node(node)
        if node.get("serialization"):
            return self._ruled(node, self._frame)
        if node["type"] in ("dataclass-args", "model-fields"):
            made = self._copy(node, self._node)
            more = node["type"] == "model-fields" and node.get("extra_behavior", extra) == "allow"
            return {**made, "extras_schema": _PLAIN} if more else made
        if node["type"] == "model":
            extra = node.get("config", {}).get("extra_fields_behavior")
        return self._copy(node, lambda inner: self._frame(inner, extra))

    def _frame_has_rule(self, node: Node) -> bool:
        if any(node.get(rule) for rule in (*_RULES, "computed_fields")):
            return True
        return any(map(self._frame_has_rule if node["type"] in _FRAME else self._has_rule, _inner(node)))

    def _node(self, node: Node) -> Node:
        if node["type"].endswith("-field"):
            return self._copy(node, self._node)
        if not self._has_rule(node):
            return _PLAIN
        if node["type"] == "definition-ref":
            return node
        if node.get("serialization"):
            return self._ruled(node, self._node)
        made = self._copy(node, self._node)
        if node["type"] in ("set", "frozenset"):
            unnamed = {key: value for key, value in made.items() if key != "ref"}
            made["serialization"] = {"type": "function-wrap", "function": _written_set, "schema": unnamed}
        return made

    def _ruled(self, node: Node, inner: Callable[[Node], Node]) -> Node:
        """A schema with a serializer: what that hands on and what it gives are written as anything else."""
        rule: Node = dict(node["serialization"])
        if rule["type"] in _FUNCTIONS and not isinstance(
            getattr(rule["function"], "__self__", None), _ENCODERS
        ):
            returned = rule.get("return_schema")
            rule["return_schema"] = self._node(returned) if returned else _PLAIN
            if rule["type"] == "function-wrap" and "schema" not in rule:
                bare = {key: value for key, value in node.items() if key not in ("serialization", "ref")}
                rule["schema"] = inner(bare)
        return {**node, "serialization": rule}

    @staticmethod
    def _copy(node: Node, change: Callable[[Node], Node]) -> Node:
        return {key: _mapped(value, change) if key in _INNER else value for key, value in node.items()}

    def _has_rule(self, node: Node, asked: frozenset[str] = frozenset()) -> bool:
        if any(node.get(rule) for rule in _RULES) or node["type"] in self._kept:
            return True
        if node["type"] in _CLASSES:
            # Its instances are written as their own class says.
            return False
        if node["type"] == "definition-ref":
            name = node["schema_ref"]
            return name not in asked and self._has_rule(self._definitions[name], asked | {name})
        return any(self._has_rule(item, asked) for item in _inner(node))


def _config(node: Node) -> Node:
    """What the class at a schema's root says of all its fields."""
    while node["type"] not in _CLASSES:
        if not isinstance(node.get("schema"), dict):
            return {}
        node = node["schema"]
    return node.get("config") or {}


def _written_set(value: Any, write: Callable[[Any], Any]) -> Any:
    # The rule is about the items; their order is that of any other set.
    return sorted_form(write(value)) if isinstance(value, set | frozenset) else plain_form(value)


def _inner(node: Node) -> Iterator[Node]:
    """The schemas in a schema."""
    found: list[Node] = []
    for key in _INNER & node.keys():
        _mapped(node[key], lambda item: found.append(item) or item)  # type: ignore[func-returns-value]
    yield from found


def _mapped(value: Any, change: Callable[[Node], Node]) -> Any:
    """What stands under a key of `_INNER`, with every schema in it changed."""
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, tuple):  # a union's choice with its label
        return (_mapped(value[0], change), *value[1:])
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("type"), str):
        return change(value)
    return {name: _mapped(item, change) for name, item in value.items()}
