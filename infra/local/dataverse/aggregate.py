"""Aggregates of FetchXML: groups, and count, countcolumn, sum, avg, min and max over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.fetchxml import invalid
from infra.local.dataverse.rows import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.dataverse.context import Context
    from infra.local.dataverse.fetchxml import Attribute, Fetch, Part
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Column, Table

#: The real limit; past it the query fails.
_LIMIT = 50_000


def aggregate(
    context: Context, fetch: Fetch, tables: dict[str, Table], rows: list[dict[str, Row | None]]
) -> list[dict[str, Any]]:
    """One record a group, by the attributes' aliases. Raises ApiError."""
    if len(rows) > _LIMIT:
        raise ApiError(400, "0x8004e023", "The maximum record limit is exceeded. Reduce the number of records.")
    outputs = [
        (part, attribute, _column(tables[part.alias], attribute))
        for part in _parts(fetch.entity)
        for attribute in part.attributes
    ]
    for _, attribute, _ in outputs:
        if attribute.alias is None or (attribute.aggregate is None) != attribute.group:
            raise invalid("an attribute of an aggregate wants an alias and either aggregate or groupby.")
    groups: dict[tuple[Any, ...], list[dict[str, Row | None]]] = {}
    for row in rows:
        key = tuple(_value(row, part, column) for part, attribute, column in outputs if attribute.group)
        groups.setdefault(key, []).append(row)
    if not groups and not any(attribute.group for _, attribute, _ in outputs):
        groups[()] = []
    result = []
    for members in groups.values():
        record: dict[str, Any] = {}
        for part, attribute, column in outputs:
            record |= _output(context, tables[part.alias], part, attribute, column, members)
        result.append(record)
    for sort in reversed([sort for part in _parts(fetch.entity) for sort in part.sorts]):
        name = sort.alias or sort.attribute
        result.sort(key=lambda one: (name in one, one.get(name, 0)), reverse=sort.descending)
    return result[: fetch.top or fetch.count or len(result)]


def _parts(part: Part) -> Iterator[Part]:
    yield part
    for link in part.links:
        yield from _parts(link)


def _column(table: Table, attribute: Attribute) -> Column:
    column = table.columns.get(attribute.name)
    if column is None:
        message = f"'{table.name}' entity doesn't contain attribute with Name = '{attribute.name}'."
        raise ApiError(400, "0x80041103", message)
    return column


def _value(row: dict[str, Row | None], part: Part, column: Column) -> Any:
    record = row.get(part.alias)
    return None if record is None else record.values.get(column.name)


def _output(
    context: Context, table: Table, part: Part, attribute: Attribute, column: Column,
    members: list[dict[str, Row | None]],
) -> dict[str, Any]:  # fmt: skip
    name = attribute.alias or ""
    values = [value for row in members if (value := _value(row, part, column)) is not None]
    if attribute.group:
        return context.renderer.value(table, column, values[0], name) if values else {}
    if attribute.distinct:
        values = list(dict.fromkeys(values))
    result = _reduced(attribute.aggregate or "", [plain(value) for value in values], len(members))
    return {} if result is None else {name: result}


def _reduced(function: str, values: list[Any], rows: int) -> Any:
    if function == "count":
        return rows
    if function == "countcolumn":
        return len(values)
    if not values:
        return None
    match function:
        case "sum":
            return sum(values)
        case "avg":
            average = sum(values) / len(values)
            return int(average) if all(isinstance(value, int) for value in values) else average
        case "min":
            return min(values)
    return max(values)
