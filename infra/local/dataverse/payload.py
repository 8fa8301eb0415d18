"""The body of a create or update: properties, references by `@odata.bind`, and nested records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.dataverse.errors import (
    ApiError,
    bad_payload,
    invalid_property,
    undeclared_property,
    unsupported,
)
from infra.local.dataverse.schema import LOOKUPS, Ref
from infra.local.dataverse.values import read_json

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context
    from infra.local.dataverse.rows import Row
    from infra.local.dataverse.schema import Navigation, Table


@dataclass(slots=True)
class Payload:
    """Values by column; what to link and what to make once the record exists."""

    values: dict[str, Any] = field(default_factory=dict)
    links: list[tuple[Navigation, Row]] = field(default_factory=list)
    children: list[tuple[Navigation, dict[str, Any]]] = field(default_factory=list)


def read_payload(context: Context, table: Table, body: dict[str, Any], *, depth: int = 0) -> Payload:
    """The parts of a body. Single-valued nested records are made at once. Raises ApiError (400, 404)."""
    payload = Payload()
    for name, value in body.items():
        if name.endswith("@odata.bind"):
            _bind(context, table, payload, name.removesuffix("@odata.bind"), value)
        elif "@" in name:
            continue  # other annotations are for reading
        elif (column := table.by_property(name)) is not None:
            if column.kind in LOOKUPS:
                message = (
                    f"CRM do not support direct update of Entity Reference properties, Use Navigation "
                    f"properties instead. ('{name}')"
                )
                raise bad_payload(table.set_name, f"Microsoft.OData.ODataException: {message}")
            if not column.read_only:
                options = context.catalogue.options(column)
                payload.values[column.name] = read_json(value, column, table, options)
        else:
            _nest(context, table, payload, name, value, depth)
    return payload


def insert(
    context: Context, table: Table, body: dict[str, Any], row_id: str | None = None, *, depth: int = 0
) -> Row:
    """Make a record with all that hangs on it. Raises ApiError; call within a transaction."""
    payload = read_payload(context, table, body, depth=depth)
    given = payload.values.pop(table.primary_id, None)
    row = context.store.create(table, payload.values, row_id or given)
    finish(context, table, row, payload, depth=depth)
    return row


def finish(context: Context, table: Table, row: Row, payload: Payload, *, depth: int = 0) -> None:
    """Make the links and children that a payload asks for."""
    for navigation, other in payload.links:
        connect(context, table, row, navigation, other)
    for navigation, child in payload.children:
        target = context.catalogue.table(navigation.target)
        connect(context, table, row, navigation, insert(context, target, child, depth=depth + 1))


def connect(context: Context, table: Table, row: Row, navigation: Navigation, other: Row) -> None:
    """Relate two records through a navigation property of the first."""
    store = context.store
    if navigation.many is not None:
        pair = (other.id, row.id) if navigation.flipped else (row.id, other.id)
        store.link(navigation.many, *pair)
    elif navigation.collection:
        target = context.catalogue.table(navigation.target)
        store.update(target, other, {navigation.column or "": Ref(table.name, row.id)})
    else:
        store.update(table, row, {navigation.column or "": Ref(navigation.target, other.id)})


def disconnect(context: Context, table: Table, row: Row, navigation: Navigation, other: Row | None) -> None:
    """Take records apart. `other` may be missing for a single-valued property only."""
    store = context.store
    if navigation.many is not None and other is not None:
        pair = (other.id, row.id) if navigation.flipped else (row.id, other.id)
        store.unlink(navigation.many, *pair)
    elif navigation.collection and other is not None:
        store.update(context.catalogue.table(navigation.target), other, {navigation.column or "": None})
    elif not navigation.collection:
        store.update(table, row, {navigation.column or "": None})


def _bind(context: Context, table: Table, payload: Payload, name: str, value: Any) -> None:
    navigation = context.catalogue.navigation(table, name)
    if navigation is None:
        raise undeclared_property(name, table.set_name)
    if value is None and not navigation.collection:
        payload.values[navigation.column or ""] = None
        return
    uris = value if isinstance(value, list) else [value]
    if not all(isinstance(uri, str) for uri in uris):
        raise undeclared_property(name, table.set_name)
    for uri in uris:
        target, row = context.resolve(uri)
        if target.name != navigation.target:
            raise ApiError(400, "0x80048d19", f"A reference to '{target.name}' does not fit '{name}'.")
        if navigation.collection:
            payload.links.append((navigation, row))
        else:
            payload.values[navigation.column or ""] = Ref(target.name, row.id)


def _nest(context: Context, table: Table, payload: Payload, name: str, value: Any, depth: int) -> None:
    navigation = context.catalogue.navigation(table, name)
    if navigation is None:
        raise invalid_property(name, table.name, table.set_name)
    if depth >= 3:
        raise unsupported("records nested this deeply")
    if value is None and not navigation.collection:
        payload.values[navigation.column or ""] = None
        return
    if navigation.collection != isinstance(value, list):
        raise invalid_property(name, table.name, table.set_name)
    if navigation.collection:
        payload.children += [(navigation, child) for child in value]
        return
    target = context.catalogue.table(navigation.target)
    made = insert(context, target, value, depth=depth + 1)
    payload.values[navigation.column or ""] = Ref(target.name, made.id)
