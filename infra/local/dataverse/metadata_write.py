"""Definitions created, replaced and removed; data and paths see the change at once, published or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.dataverse import definitions
from infra.local.dataverse.attributes import kept, read_column, schema_name
from infra.local.dataverse.call import Answer
from infra.local.dataverse.components import add_column, drop_column, note_component, replaced
from infra.local.dataverse.context import created
from infra.local.dataverse.errors import ApiError, bad_payload
from infra.local.dataverse.labels import text_of
from infra.local.dataverse.schema import LOOKUPS, Column, OneToMany, Table, stable_id
from infra.local.dataverse.tables import table as make_table

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context


def create_entity(context: Context) -> Answer:
    """POST EntityDefinitions. Its Attributes need one with IsPrimaryName."""
    body = context.call.json()
    name = schema_name(body, "EntityMetadata").lower()
    if name in context.catalogue.tables:
        raise ApiError(400, "0x80044150", f"An entity with the specified name {name} already exists.")
    given = [one for one in body.get("Attributes") or [] if isinstance(one, dict)]
    primary = next((one for one in given if one.get("IsPrimaryName")), None)
    if primary is None:
        raise bad_payload(
            "EntityDefinitions", "The Attributes need one StringAttributeMetadata with IsPrimaryName."
        )
    name_column = read_column(context, primary)
    set_name = str(body.get("EntitySetName") or (name + ("es" if name.endswith(("s", "x")) else "s")))
    made = make_table(
        name, set_name, name_column.name, schema_name=body["SchemaName"],
        label=text_of(body.get("DisplayName"), body["SchemaName"]), custom=True,
        definition=kept(body, {"Attributes", "EntitySetName"}),
    )  # fmt: skip
    for column in [name_column, *(read_column(context, one) for one in given if one is not primary)]:
        made.add(column)
    context.catalogue.add(made)
    owner = OneToMany(f"user_{name}", "systemuser", name, "ownerid", "ownerid", f"user_{name}")
    context.catalogue.relate(owner)
    note_component(context, made.id)
    return created(f"{context.call.root}EntityDefinitions({made.id})")


def update_entity(context: Context, table: Table) -> Answer:
    """PUT of a whole definition; labels merge or not as MSCRM.MergeLabels says."""
    body = context.call.json()
    before = definitions.entity(table)
    table.definition = replaced(context, before, kept(body, {"Attributes", "EntitySetName"}))
    table.label = text_of(table.definition.get("DisplayName"), table.label)
    note_component(context, table.id)
    return Answer()


def delete_entity(context: Context, table: Table) -> Answer:
    """DELETE of a custom table with its records and relationships."""
    if not table.custom:
        raise ApiError(
            400, "0x8004f026", f"The entity {table.name} is not a custom entity and cannot be deleted."
        )
    for row in list(context.store.table(table.name).values()):
        context.store.delete(table, row)
    for one in context.catalogue.one_to_many.values():
        if one.parent == table.name and one.child != table.name:
            context.catalogue.table(one.child).columns.pop(one.column, None)
    context.catalogue.drop_table(table)
    return Answer()


def create_attribute(context: Context, table: Table) -> Answer:
    """POST to an entity's Attributes; lookups come with a relationship instead."""
    column = read_column(context, context.call.json())
    if column.kind in LOOKUPS:
        raise bad_payload("Attributes", "A lookup is created with its relationship.")
    add_column(context, table, column)
    return created(f"{context.call.root}EntityDefinitions({table.id})/Attributes({column.id})")


def update_attribute(context: Context, table: Table, column: Column) -> Answer:
    """PUT of a whole attribute; its type stays."""
    body = context.call.json()
    new = read_column(context, {**body, "SchemaName": column.schema_name}, known=column)
    if new.kind is not column.kind:
        raise ApiError(400, "0x80044304", f"The type of the attribute {column.name} cannot be changed.")
    before = definitions.attribute(context.catalogue, table, column)
    column.definition = replaced(context, before, new.definition)
    column.label = text_of(column.definition.get("DisplayName"), column.label)
    column.max_length = new.max_length or column.max_length
    if new.options:
        column.options = new.options
    note_component(context, column.id)
    return Answer()


def delete_attribute(context: Context, table: Table, column: Column) -> Answer:
    """DELETE of a custom column, its values, and the relationships of a lookup."""
    if not column.custom or column.name == table.primary_name:
        raise ApiError(400, "0x8004f01f", f"The attribute {column.name} of {table.name} cannot be deleted.")
    for one in [one for one in context.catalogue.one_to_many.values()
                if one.child == table.name and one.column == column.name]:  # fmt: skip
        del context.catalogue.one_to_many[one.name]
    drop_column(context, table, column.name)
    return Answer()


def create_key(context: Context, table: Table) -> Answer:
    """POST to an entity's Keys."""
    body = context.call.json()
    name, columns = schema_name(body, "EntityKeyMetadata").lower(), body.get("KeyAttributes")
    if not isinstance(columns, list) or not columns or not set(columns) <= table.columns.keys():
        raise bad_payload("Keys", "KeyAttributes must name attributes of the entity.")
    table.keys[name] = tuple(columns)
    key_id = stable_id("key", table.name, name)
    return created(f"{context.call.root}EntityDefinitions({table.id})/Keys({key_id})")


def delete_key(table: Table, name: str) -> Answer:
    """DELETE of an alternate key."""
    del table.keys[name]
    return Answer()
