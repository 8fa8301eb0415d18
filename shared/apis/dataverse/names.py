"""Names, ids and keys as they stand in an address: checked, then encoded."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from shared.errors import ToolError

GUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_COLUMN: Final = re.compile(r"[A-Za-z_@][A-Za-z0-9_.@/]{0,255}")
_QUALIFIED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_KEY_PART: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*('(?:[^']|'')*'|[^',()\s]+)\s*(?:,|$)")
_BARE: Final = re.compile(r"-?\d+(?:\.\d+)?|true|false|null|\d{4}-\d\d-\d\d(?:T[0-9:.]+Z)?")


def guid(value: object, what: str = "id") -> str:
    """`8c1f…`: lower case, without braces. Raises `ToolError` when it is no GUID."""
    text = str(value).strip() if isinstance(value, str | uuid.UUID) else ""
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    if not GUID.fullmatch(text):
        raise ToolError(
            f"{what} must be a GUID such as 00000000-0000-0000-0000-000000000001, not {shown(value)}"
        )
    return text.lower()


def is_guid(value: object) -> bool:
    return isinstance(value, uuid.UUID) or (
        isinstance(value, str) and GUID.fullmatch(value.strip().removeprefix("{").removesuffix("}")) is not None
    )


def logical_name(value: object, what: str = "the table's logical name") -> str:
    """Raises `ToolError` unless it can be the name of a table or a column."""
    if not isinstance(value, str) or not _NAME.fullmatch(value.strip()):
        raise ToolError(f"{what} must be letters, digits and underscores, not {shown(value)}")
    return value.strip().lower()


def schema_name(value: object, what: str) -> str:
    """As `logical_name`, with its capitals kept: relationships and choices have them."""
    logical_name(value, what)
    return str(value).strip()


def operation_name(value: object) -> str:
    """Raises `ToolError` unless it can be the name of an action or a function."""
    if not isinstance(value, str) or not _QUALIFIED.fullmatch(value):
        raise ToolError(f"operationName must be the name of an action or a function, not {shown(value)}")
    return value


def select(columns: Iterable[str] | None, default: Iterable[str] = ()) -> str:
    """`?$select=a,b`, or nothing for no columns. Raises `ToolError` for what cannot be a column."""
    if isinstance(columns, str):
        raise ToolError("columns must be a list of names, not one text")
    names = list(columns or default)
    for name in names:
        if not isinstance(name, str) or not _COLUMN.fullmatch(name.strip()):
            raise ToolError(f"columns: {shown(name)} cannot be the name of a column")
    return f"?$select={','.join(quote(name.strip(), safe='@/') for name in names)}" if names else ""


def quoted(text: str) -> str:
    """A text literal in a path: in quotes, inner quotes doubled, encoded."""
    return "'" + quote(text.replace("'", "''"), safe="'") + "'"


def key_segment(key: object) -> str:
    """What stands between the parentheses of one row's address.

    `key`: a GUID (text or `uuid.UUID`), or an alternate key: a mapping of column names to values, or a text
    such as `accountnumber='A-1',region=2`. Raises `ToolError` for anything else.
    """
    if is_guid(key):
        return guid(key)
    if isinstance(key, Mapping) and key:
        return ",".join(f"{_key_name(name)}={_literal(value)}" for name, value in key.items())
    if isinstance(key, str) and "=" in key:
        return _key_from_text(key)
    raise ToolError(
        f"id must be a GUID or an alternate key such as {{'accountnumber': 'A-1'}}, not {shown(key)}"
    )


def _key_from_text(text: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(text):
        found = _KEY_PART.match(text, position)
        if found is None:
            raise ToolError(f"The alternate key {shown(text)} must have the form name='text',other=5")
        name, literal = found.groups()
        if literal.startswith("'"):
            literal = quoted(literal[1:-1].replace("''", "'"))
        elif not (_BARE.fullmatch(literal) or GUID.fullmatch(literal)):
            raise ToolError(
                f"The alternate key's value of '{name}' must be in quotes, or a number, date or GUID"
            )
        parts.append(f"{_key_name(name)}={literal}")
        position = found.end()
    return ",".join(parts)


def _key_name(name: object) -> str:
    return schema_name(name, "the key's column")


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        raise ToolError(
            "A date with a time in an alternate key must be given as text in the form of the Web API"
        )
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        return value.lower() if GUID.fullmatch(value) else quoted(value)
    raise ToolError(f"{shown(value)} cannot be part of an alternate key")


def definition(kind: str, identifier: object, name_property: str = "LogicalName") -> str:
    """A definition by MetadataId or by name: `EntityDefinitions(LogicalName='account')`."""
    if is_guid(identifier):
        return f"{kind}({guid(identifier)})"
    name = schema_name(identifier, f"the identifier in {kind}")
    return f"{kind}({name_property}={quoted(name.lower() if name_property == 'LogicalName' else name)})"


def shown(value: object) -> str:
    """The value for an error's text: short."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}…"
