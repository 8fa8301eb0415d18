"""FetchXML's condition operators over the values of one column."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.errors import unsupported
from infra.local.dataverse.fetchxml import invalid
from infra.local.dataverse.fields import type_of
from infra.local.dataverse.literals import Type
from infra.local.dataverse.predicates import comparable, satisfies
from infra.local.dataverse.values import as_guid, read_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.dataverse.fetchxml import Condition
    from infra.local.dataverse.schema import Column

type Test = Callable[[Any], bool]  # over a column's plain value

_SIMPLE: Final = {"eq": "eq", "ne": "ne", "neq": "ne", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le"}
#: Negative forms, which take nulls in.
_NEGATED: Final = {
    "not-in": "in", "not-between": "between", "not-like": "like", "not-begin-with": "begins-with",
    "not-end-with": "ends-with", "not-null": "null", "ne-userid": "eq-userid",
}  # fmt: skip
_LATER: Final = frozenset(
    {"above", "under", "eq-businessid", "contain-values", "this-month", "this-week", "this-year", "last-month"}
)


def compile_condition(condition: Condition, column: Column, user_id: str) -> Test:
    """The test of a condition. Raises ApiError for an unknown operator or a value that does not fit."""
    operator = condition.operator
    if operator in _NEGATED:
        positive = _positive(_NEGATED[operator], condition, column, user_id)
        return lambda value: not positive(value)
    return _positive(operator, condition, column, user_id)


def _positive(operator: str, condition: Condition, column: Column, user_id: str) -> Test:
    kind = type_of(column)
    if operator == "null":
        return lambda value: value is None
    if operator == "eq-userid":
        return lambda value: value == user_id
    if operator in {"like", "begins-with", "ends-with"}:
        return _pattern(operator, _single(condition))
    if operator in {"today", "yesterday", "tomorrow", "last-x-days", "next-x-days"}:
        return _window(operator, condition)
    if operator in {"on", "on-or-before", "on-or-after"}:
        return _day(operator, _single(condition))
    wanted = [_read(text, kind, condition) for text in condition.values]
    if operator in _SIMPLE:
        other = _read(_single(condition), kind, condition)
        relation = _SIMPLE[operator]
        return lambda value: satisfies(relation, comparable(value, kind), other)
    if operator == "in":
        return lambda value: value is not None and comparable(value, kind) in wanted
    if operator == "between":
        if len(wanted) != 2:
            raise invalid("between wants two values.")
        low, high = wanted
        return lambda value: value is not None and low <= comparable(value, kind) <= high
    if operator in _LATER:
        raise unsupported(f"the FetchXML operator {operator}")
    raise invalid(f"'{operator}' is no condition operator.")


def _single(condition: Condition) -> str:
    if len(condition.values) != 1:
        raise invalid(f"the operator {condition.operator} wants one value.")
    return condition.values[0]


def _read(text: str, kind: Type, condition: Condition) -> Any:
    try:
        match kind:
            case Type.NUMBER:
                return float(text)
            case Type.BOOLEAN:
                return {"1": True, "true": True, "0": False, "false": False}[text.lower()]
            case Type.TIME:
                return read_time(text)
            case Type.GUID:
                if (guid := as_guid(text)) is None:
                    raise ValueError
                return guid
    except (ValueError, KeyError):
        raise invalid(f"'{text}' is no value for the attribute {condition.attribute}.") from None
    return text.casefold()


def _pattern(operator: str, text: str) -> Test:
    """`%` stands for any text, `_` for any letter."""
    parts = [".*" if letter == "%" else "." if letter == "_" else re.escape(letter) for letter in text]
    body = "".join(parts)
    source = {"like": body, "begins-with": f"{body}.*", "ends-with": f".*{body}"}[operator]
    pattern = re.compile(source, re.IGNORECASE | re.DOTALL)
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _day(operator: str, text: str) -> Test:
    try:
        day = read_time(text).date()
    except ValueError:
        raise invalid(f"'{text}' is no date.") from None

    def holds(value: Any) -> bool:
        if value is None:
            return False
        own = read_time(value).date()
        return {"on": own == day, "on-or-before": own <= day, "on-or-after": own >= day}[operator]

    return holds


def _window(operator: str, condition: Condition) -> Test:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if operator.endswith("x-days"):
        text = _single(condition)
        if not text.isdigit():
            raise invalid(f"'{text}' is no number of days.")
        days = int(text)
        start = today - timedelta(days) if operator.startswith("last") else datetime.now(UTC)
        end = datetime.now(UTC) if operator.startswith("last") else today + timedelta(days + 1)
    else:
        start = today + timedelta({"today": 0, "yesterday": -1, "tomorrow": 1}[operator])
        end = start + timedelta(1)
    return lambda value: value is not None and start <= read_time(value) < end
