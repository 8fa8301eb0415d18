"""From a $filter tree to a function over records, with Dataverse's ideas of equality and null.

Text compares without regard to case; null is neither greater nor less than anything; `ne` and `not` take
nulls in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from infra.local.dataverse.errors import bad_query
from infra.local.dataverse.filters import Among, Both, Call, Compare, Not, Path, chain
from infra.local.dataverse.literals import Literal, Type
from infra.local.dataverse.values import read_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.dataverse.filters import Node

type Predicate = Callable[[Any], bool]

_OPERATOR: Final = {
    "eq": "Equal", "ne": "NotEqual", "gt": "GreaterThan", "ge": "GreaterThanOrEqual", "lt": "LessThan",
    "le": "LessThanOrEqual",
}  # fmt: skip


class Field(NamedTuple):
    """A property: its type, and how to read it off a record (plain values: a lookup is its id)."""

    type: Type
    get: Callable[[Any], Any]


def comparable(value: Any, kind: Type) -> Any:
    """A value as comparisons see it."""
    if value is None:
        return None
    if kind is Type.TIME:
        try:
            return read_time(value)
        except (ValueError, TypeError):
            raise bad_query(f"Unrecognized 'Edm.DateTimeOffset' literal '{value}'.") from None
    return value.casefold() if isinstance(value, str) else value


def compile_filter(node: Node, field: Callable[[tuple[str, ...]], Field]) -> Predicate:
    """The predicate of a tree; `field` finds a property by its path. Raises ApiError where types differ."""
    match node:
        case Both():
            parts = [compile_filter(part, field) for part in chain(node)]
            holds = any if node.either else all
            return lambda row: holds(part(row) for part in parts)
        case Not(inner):
            denied = compile_filter(inner, field)
            return lambda row: not denied(row)
        case Call(name, path, text):
            return _call(name, field(path.names), str(text.value).casefold())
        case Among(path, items):
            return _among(field(path.names), items)
        case Compare(op, left, right):
            return _compare(op, _side(left, field), _side(right, field))


def _side(operand: Path | Literal, field: Callable[[tuple[str, ...]], Field]) -> Field:
    if isinstance(operand, Path):
        return field(operand.names)
    value = operand.value
    return Field(operand.type, lambda _row: value)


def _call(name: str, field: Field, text: str) -> Predicate:
    if field.type not in {Type.STRING, Type.ANY}:
        raise bad_query(
            f"No function signature for the function with name '{name}' matches the specified arguments."
        )

    def holds(row: Any) -> bool:
        value = field.get(row)
        if not isinstance(value, str):
            return False
        folded = value.casefold()
        if name == "contains":
            return text in folded
        return folded.startswith(text) if name == "startswith" else folded.endswith(text)

    return holds


def _among(field: Field, items: tuple[Literal, ...]) -> Predicate:
    wanted = []
    for item in items:
        kind = _common(field.type, item.type, "Equal")
        wanted.append(comparable(item.value, kind))
    kind = field.type
    return lambda row: comparable(field.get(row), kind) in wanted


def _compare(op: str, left: Field, right: Field) -> Predicate:
    kind = _common(left.type, right.type, _OPERATOR[op])

    def holds(row: Any) -> bool:
        one, two = comparable(left.get(row), kind), comparable(right.get(row), kind)
        return satisfies(op, one, two)

    return holds


def satisfies(op: str, one: Any, two: Any) -> bool:
    """Whether two comparable values stand in a relation; null is equal to null alone."""
    if op in {"eq", "ne"}:
        return bool((one == two) == (op == "eq"))
    if one is None or two is None:
        return False
    try:
        return bool({"gt": one > two, "ge": one >= two, "lt": one < two, "le": one <= two}[op])
    except TypeError:
        return False


def _common(one: Type, two: Type, operator: str) -> Type:
    """The type two operands are compared as. Raises ApiError (400) as OData does when there is none."""
    if two in {Type.NULL, Type.ANY}:
        return one
    if one in {Type.NULL, Type.ANY}:
        return two
    if one is not two:
        raise bad_query(
            "A binary operator with incompatible types was detected. Found operand types "
            f"'{one}' and '{two}' for operator kind '{operator}'."
        )
    return one
