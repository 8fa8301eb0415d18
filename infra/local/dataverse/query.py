"""The query options of OData, and what they pick from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.local.dataverse.call import split_outside
from infra.local.dataverse.cookies import read_outer, write_inner, write_outer
from infra.local.dataverse.errors import bad_query, unknown_property, unsupported
from infra.local.dataverse.fields import after_cookie, field_finder, sort_rows
from infra.local.dataverse.filters import parse
from infra.local.dataverse.predicates import compile_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.local.dataverse.call import Call
    from infra.local.dataverse.fields import Order
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Navigation, Table
    from infra.local.dataverse.store import Store

MAX_PAGE: Final = 5000
_KNOWN: Final = frozenset(
    {"$select", "$filter", "$orderby", "$top", "$count", "$expand", "$skiptoken", "$format", "$id"}
)


@dataclass(frozen=True, slots=True)
class Expand:
    """A navigation property to be answered within the record, with options of its own."""

    name: str
    options: Options


@dataclass(frozen=True, slots=True)
class Options:
    """The system query options, parsed as far as that goes without knowing the table."""

    select: tuple[str, ...] = ()
    filter: str | None = None
    orderby: tuple[tuple[str, bool], ...] = ()
    top: int | None = None
    count: bool = False
    expand: tuple[Expand, ...] = ()
    skiptoken: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some records, the outer cookie of the next page if there is one, and how many there are in all."""

    rows: list[Row]
    next_cookie: str | None
    total: int


def read_options(query: Mapping[str, str], *, nested: bool = False) -> Options:
    """The options of a query. Raises ApiError for unknown or malformed ones."""
    for name in query:
        if name == "$skip":
            raise bad_query("Skip Clause is not supported in CRM")
        if name in {"$apply", "$search", "$compute", "savedQuery", "userQuery"}:
            raise unsupported(name)
        if name.startswith("$") and name not in _KNOWN:
            raise bad_query(f"The query parameter {name} is not supported.")
    expand = tuple(_read_expand(part) for part in _parts(query.get("$expand", "")))
    if nested and expand:
        raise unsupported("$expand within $expand")
    return Options(
        select=tuple(_parts(query.get("$select", ""))),
        filter=query.get("$filter"),
        orderby=tuple(_read_order(part) for part in _parts(query.get("$orderby", ""))),
        top=_read_top(query.get("$top")),
        count=query.get("$count", "false").lower() == "true",
        expand=expand,
        skiptoken=query.get("$skiptoken"),
    )


def page_size(call: Call) -> int | None:
    """The page size a request prefers, at most 5,000; None when it says none."""
    text = call.prefer.get("odata.maxpagesize", "")
    return min(int(text), MAX_PAGE) if text.isdigit() and int(text) > 0 else None


def order_columns(table: Table, options: Options) -> list[Order]:
    """The columns of an $orderby. Raises ApiError (400)."""
    order = []
    for name, descending in options.orderby:
        column = table.by_property(name)
        if column is None:
            if "/" in name:
                raise unsupported("$orderby by a related table's column")
            raise unknown_property(name, table.name)
        order.append((column, descending))
    return order


def run(
    store: Store, table: Table, rows: Iterable[Row], options: Options, aliases: Mapping[str, str],
    size: int | None = None,
) -> Page:  # fmt: skip
    """The page that options pick from records of a table. With a preferred page `size`, $top does not count."""
    if options.filter is not None:
        holds = compile_filter(parse(options.filter, aliases), field_finder(store, table))
        rows = [row for row in rows if holds(row)]
    order = order_columns(table, options)
    ordered = sort_rows(rows, order)
    total = len(ordered)
    number = 1
    if options.skiptoken is not None:
        cookie = read_outer(options.skiptoken)
        number = cookie.page + 1
        ordered = after_cookie(ordered, order, cookie, table, store)
    if options.top is not None and size is None:
        return Page(ordered[: options.top], None, total)
    limit = size or MAX_PAGE
    page = ordered[:limit]
    if len(ordered) <= limit:
        return Page(page, None, total)
    columns = [column for column, _ in order]
    if table.columns[table.primary_id] not in columns:
        columns.append(table.columns[table.primary_id])
    return Page(page, write_outer(number + 1, write_inner(number, columns, page[0], page[-1])), total)


def check_select(table: Table, names: Iterable[str], navigations: Iterable[Navigation]) -> None:
    """Refuse names that are no property of the table. Raises ApiError (400)."""
    known = {navigation.name for navigation in navigations if not navigation.collection}
    for name in names:
        if table.by_property(name) is None and name not in known and name != "*":
            raise unknown_property(name, table.name)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in split_outside(text, ",") if part.strip()]


def _read_order(text: str) -> tuple[str, bool]:
    name, _, direction = text.partition(" ")
    if direction.strip() not in {"", "asc", "desc"}:
        raise bad_query(f"Syntax error at position {len(name)} in '{text}'.")
    return name, direction.strip() == "desc"


def _read_top(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdigit():
        raise bad_query(f"Invalid value '{text}' for $top query option found. The $top query option requires a "
                        "non-negative integer value.")  # fmt: skip
    return int(text)


def _read_expand(text: str) -> Expand:
    name, opening, rest = text.partition("(")
    fields: dict[str, str] = {}
    if opening:
        if not rest.endswith(")"):
            raise bad_query(f"Syntax error in $expand: '{text}'.")
        for part in split_outside(rest[:-1], ";"):
            option, _, value = part.partition("=")
            fields[option.strip()] = value
    return Expand(name.strip(), read_options(fields, nested=True))
