"""Paging cookies, as $skiptoken and in FetchXML: where the last page ended, by the values it was ordered by.

Inner: `<cookie page="1"><name last="…" first="…" /><accountid last="{…}" first="{…}" /></cookie>`. Outer: that,
encoded, in `<cookie pagenumber="2" pagingcookie="…" istracking="False" />`; in FetchXML encoded twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from xml.sax.saxutils import quoteattr

from infra.local.dataverse.errors import bad_query
from infra.local.dataverse.markup import XmlError, parse_xml
from infra.local.dataverse.rows import plain
from infra.local.dataverse.schema import LOOKUPS, NUMBERS, Kind

if TYPE_CHECKING:
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Column


@dataclass(frozen=True, slots=True)
class Cookie:
    """Where a page ended: its number, and texts of the last record by column (None for null)."""

    page: int
    last: dict[str, str | None]


def write_inner(page: int, columns: list[Column], first: Row, last: Row) -> str:
    """The inner cookie of a page."""
    parts = []
    for column in columns:
        one, two = first.values.get(column.name), last.values.get(column.name)
        ends = ("lastnull=\"1\"" if two is None else f"last={quoteattr(_text(two, column))}",
                "firstnull=\"1\"" if one is None else f"first={quoteattr(_text(one, column))}")  # fmt: skip
        parts.append(f"<{column.name} {' '.join(ends)} />")
    return f'<cookie page="{page}">{"".join(parts)}</cookie>'


def write_outer(next_page: int, inner: str, *, twice: bool = False) -> str:
    """The outer cookie, which tells the next page's number."""
    encoded = _encode(_encode(inner)) if twice else _encode(inner)
    return f'<cookie pagenumber="{next_page}" pagingcookie="{encoded}" istracking="False" />'


def read_outer(text: str) -> Cookie:
    """The cookie of a $skiptoken. Raises ApiError (400)."""
    try:
        node = parse_xml(text)
    except XmlError:
        raise bad_query("The skip token is malformed.") from None
    return read_inner(unquote(node.get("pagingcookie", "")))


def read_inner(text: str) -> Cookie:
    """The cookie of a fetch's `paging-cookie`. Raises ApiError (400)."""
    try:
        node = parse_xml(text)
        page = int(node.get("page", ""))
    except (XmlError, ValueError):
        raise bad_query("Malformed XML in the paging cookie.") from None
    return Cookie(page, {child.tag: child.get("last") for child in node})


def value_of(text: str | None, column: Column) -> Any:
    """A cookie's text as the column's plain value. Raises ApiError (400)."""
    if text is None:
        return None
    try:
        if column.kind is Kind.ID or column.kind in LOOKUPS:
            return text.strip("{}").lower()
        if column.kind is Kind.BOOLEAN:
            return text == "1"
        if column.edm in {"Edm.Int32", "Edm.Int64"}:
            return int(text)
        return float(text) if column.kind in NUMBERS else text
    except ValueError:
        raise bad_query("Malformed XML in the paging cookie.") from None


def _text(value: Any, column: Column) -> str:
    value = plain(value)
    if column.kind is Kind.ID or column.kind in LOOKUPS:
        return "{" + str(value).upper() + "}"
    return str(int(value)) if isinstance(value, bool) else str(value)


def _encode(text: str) -> str:
    """URL encoding with lower-case digits, as .NET writes it."""
    return re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), quote(text, safe=""))
