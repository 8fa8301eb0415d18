"""How queries see a table: its properties as typed fields, and its records in an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse.cookies import value_of
from infra.local.dataverse.errors import unknown_property
from infra.local.dataverse.literals import Type
from infra.local.dataverse.predicates import Field, comparable
from infra.local.dataverse.rows import plain
from infra.local.dataverse.schema import CHOICES, LOOKUPS, NUMBERS, TEXT, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from infra.local.dataverse.cookies import Cookie
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Column, Table
    from infra.local.dataverse.store import Store


def type_of(column: Column) -> Type:
    """What a column's values compare as."""
    if column.kind in TEXT:
        return Type.STRING
    if column.kind in NUMBERS or column.kind in CHOICES:
        return Type.NUMBER
    if column.kind is Kind.DATETIME:
        return Type.TIME
    return Type.BOOLEAN if column.kind is Kind.BOOLEAN else Type.GUID


def column_field(column: Column) -> Field:
    """A column of a record."""
    name = column.name
    if column.kind in LOOKUPS:
        return Field(Type.GUID, lambda row: plain(row.values.get(name)))
    return Field(type_of(column), lambda row: row.values.get(name))


def field_finder(store: Store, table: Table) -> Callable[[tuple[str, ...]], Field]:
    """From a property's path to its field, for compile_filter. The function raises ApiError (400)."""

    def find(names: tuple[str, ...]) -> Field:
        if len(names) == 1:
            column = table.by_property(names[0])
            if column is None:
                raise unknown_property(names[0], table.name)
            return column_field(column)
        navigation = store.catalogue.navigation(table, names[0])
        if navigation is None or navigation.collection:
            raise unknown_property(names[0], table.name)
        inner = field_finder(store, store.catalogue.table(navigation.target))(names[1:])

        def get(row: Row) -> Any:
            found = store.related(row, table, navigation)
            return inner.get(found[0]) if found else None

        return Field(inner.type, get)

    return find


type Order = tuple[Column, bool]


def sort_rows(rows: Iterable[Row], order: Sequence[Order]) -> list[Row]:
    """Records in an order (column, descending); ties stay in order of creation; nulls come first."""
    ordered = list(rows)
    for column, descending in reversed(order):
        field = column_field(column)

        def key(row: Row, field: Field = field) -> tuple[bool, Any]:
            value = comparable(field.get(row), field.type)
            return (value is not None, value if value is not None else 0)

        ordered.sort(key=key, reverse=descending)
    return ordered


def after_cookie(
    rows: list[Row], order: Sequence[Order], cookie: Cookie, table: Table, store: Store
) -> list[Row]:
    """What of the ordered records follows the cookie's last one, which may be gone by now."""
    last_id = value_of(cookie.last.get(table.primary_id), table.columns[table.primary_id])
    for position, row in enumerate(rows):
        if row.id == last_id:
            return rows[position + 1 :]
    number = store.number_of(last_id)
    marks = [value_of(cookie.last.get(column.name), column) for column, _ in order]
    return [row for row in rows if _follows(row, order, marks, number)]


def _follows(row: Row, order: Sequence[Order], marks: list[Any], number: int) -> bool:
    for (column, descending), mark in zip(order, marks, strict=True):
        field = column_field(column)
        value, other = comparable(field.get(row), field.type), comparable(mark, field.type)
        if value == other:
            continue
        later = other is None or (value is not None and value > other)
        return bool(later != descending)
    return row.number > number
