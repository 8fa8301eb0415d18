"""Values that JSON has no form for, as Microsoft's Web APIs take them."""

from __future__ import annotations

import datetime
import decimal
import uuid
from base64 import b64encode
from typing import Any

from shared.errors import ToolError


def jsonable(value: Any) -> Any:
    """For `json.dumps(default=…)`. Raises `TypeError` and `ToolError`."""
    if isinstance(value, datetime.datetime):
        return moment(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        number = float(value)
        if decimal.Decimal(repr(number)) != value:
            raise ToolError(f"The number {value} has more digits than a JSON number keeps")
        return number
    raise TypeError(f"{type(value).__name__} has no JSON form")


def moment(value: datetime.datetime) -> str:
    """`2026-11-30T08:00:00Z`. Raises `ToolError` for a time without a time zone, which could mean any."""
    if value.tzinfo is None:
        raise ToolError(
            f"The time {value.isoformat()} has no time zone: use datetime.now(UTC) or .replace(tzinfo=…)"
        )
    text = value.astimezone(datetime.UTC).isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    return text.replace("+00:00", "Z")
