"""Values: from JSON into a column, and the text that people see (the FormattedValue annotation)."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.errors import TOO_LONG, ApiError, bad_payload
from infra.local.dataverse.schema import CHOICES, EDM, NUMBERS, TEXT, WHOLE, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.dataverse.schema import Column, Table

_GUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_INT32: Final = 2**31


def as_guid(text: str) -> str | None:
    """A GUID in lower case, without braces; None when it is none."""
    text = text.removeprefix("{").removesuffix("}")
    return text.lower() if _GUID.fullmatch(text) else None


def new_guid() -> str:
    """A fresh id."""
    return str(uuid.uuid4())


def now() -> str:
    """The current second, as the API writes times."""
    return write_time(datetime.now(UTC))


def write_time(moment: datetime) -> str:
    """A time as the API writes it: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime:
    """A date or a time with its offset, in UTC. Raises ValueError."""
    if len(text) == len("2024-01-01"):
        day = date.fromisoformat(text)
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def read_json(value: Any, column: Column, table: Table, options: Mapping[int, str]) -> Any:
    """A JSON value as the column stores it. Raises ApiError (400) when it does not fit."""
    if value is None:
        return None
    try:
        stored = _convert(value, column)
    except (ValueError, TypeError):
        wanted = EDM[column.kind]
        inner = f"Cannot convert the literal '{value}' to the expected type '{wanted}'."
        raise bad_payload(table.set_name, f"Microsoft.OData.ODataException: {inner}") from None
    _check(stored, column, table, options)
    return stored


def _convert(value: Any, column: Column) -> Any:
    kind = column.kind
    if kind in TEXT:
        if not isinstance(value, str):
            raise TypeError
        return value
    if kind is Kind.BOOLEAN:
        if not isinstance(value, bool):
            raise TypeError
        return value
    if kind in WHOLE or kind in CHOICES:
        return _whole(value, kind)
    if kind in NUMBERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError
        return value
    if not isinstance(value, str):
        raise TypeError
    if kind is Kind.DATETIME:
        moment = read_time(value)
        return moment.date().isoformat() if column.date_only else write_time(moment)
    if (guid := as_guid(value)) is None:
        raise ValueError
    return guid


def _whole(value: Any, kind: Kind) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise TypeError
    if kind is not Kind.BIGINT and not -_INT32 <= value < _INT32:
        raise ValueError
    return int(value)


def _check(value: Any, column: Column, table: Table, options: Mapping[int, str]) -> None:
    if column.max_length is not None and isinstance(value, str) and len(value) > column.max_length:
        message = (
            f"A validation error occurred.  The length of the '{column.name}' attribute of the '{table.name}' "
            f"entity exceeded the maximum allowed length of '{column.max_length}'."
        )
        raise ApiError(400, TOO_LONG, message)
    if column.kind in CHOICES and options and value not in options:
        message = (
            f"A validation error occurred. The value {value} of '{column.name}' on record of type "
            f"'{table.name}' is outside the valid range. Accepted Values: {','.join(map(str, options))}"
        )
        raise ApiError(400, "0x80040203", message)


def formatted(value: Any, column: Column, options: Mapping[int, str]) -> str | None:
    """What a person would read, in English; None where the API sends no annotation."""
    if value is None or column.kind in TEXT or column.kind is Kind.ID:
        return None
    if column.kind is Kind.BOOLEAN:
        return options.get(int(value)) or ("Yes" if value else "No")
    if column.kind in CHOICES:
        return options.get(value)
    if column.kind is Kind.DATETIME:
        moment = read_time(value)
        day = f"{moment.month}/{moment.day}/{moment.year}"
        return day if column.date_only else f"{day} {moment.hour % 12 or 12}:{moment:%M %p}"
    if column.kind is Kind.MONEY:
        return f"${value:,.2f}"
    return f"{value:,}" if column.kind in WHOLE else f"{value:,.2f}"
