"""Relationships and global option sets created, replaced and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse import definitions
from infra.local.dataverse.attributes import kept, require, schema_name
from infra.local.dataverse.call import Answer
from infra.local.dataverse.catalogue import OptionSet
from infra.local.dataverse.components import DUPLICATE_NAME, add_column, drop_column, note_component, replaced
from infra.local.dataverse.context import created
from infra.local.dataverse.errors import ApiError, bad_payload
from infra.local.dataverse.labels import text_of
from infra.local.dataverse.schema import Column, Kind, ManyToMany, OneToMany

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context


def create_relationship(context: Context) -> Answer:
    """POST RelationshipDefinitions, of either kind by its @odata.type."""
    body = context.call.json()
    kind = str(body.get("@odata.type", "")).removeprefix("#").removeprefix(definitions.CRM)
    if kind == "OneToManyRelationshipMetadata":
        lookup = body.get("Lookup")
        if not isinstance(lookup, dict):
            raise bad_payload("RelationshipDefinitions", "The property 'Lookup' is missing.")
        made: OneToMany | ManyToMany = add_one_to_many(context, body, lookup)
    elif kind == "ManyToManyRelationshipMetadata":
        made = _add_many_to_many(context, body)
    else:
        raise bad_payload("RelationshipDefinitions", f"'{kind}' is no type of relationship.")
    return created(f"{context.call.root}RelationshipDefinitions({made.id})")


def add_one_to_many(context: Context, body: dict[str, Any], lookup: dict[str, Any]) -> OneToMany:
    """A relationship and, unless the child has it already, its lookup column."""
    catalogue = context.catalogue
    name = _free_relationship(context, body)
    parent = catalogue.table(require(body, "ReferencedEntity", "RelationshipDefinitions"))
    child = catalogue.table(require(body, "ReferencingEntity", "RelationshipDefinitions"))
    column_schema = schema_name(lookup, "LookupAttributeMetadata")
    column = child.columns.get(column_schema.lower())
    if column is None:
        column = Column(
            column_schema.lower(), Kind.LOOKUP, column_schema,
            text_of(lookup.get("DisplayName"), column_schema),
            targets=(parent.name,), custom=True, definition=kept(lookup),
        )  # fmt: skip
        add_column(context, child, column)
    elif column.kind is not Kind.LOOKUP:
        raise ApiError(400, DUPLICATE_NAME, f"Attribute {column.name} already exists.")
    elif parent.name not in column.targets:
        column.targets += (parent.name,)
    single = body.get("ReferencingEntityNavigationPropertyName") or column_schema
    made = OneToMany(
        name, parent.name, child.name, column.name, str(single),
        str(body.get("ReferencedEntityNavigationPropertyName") or name), definition=kept(body, {"Lookup"}),
    )  # fmt: skip
    catalogue.relate(made)
    note_component(context, made.id)
    return made


def update_relationship(context: Context, one: OneToMany | ManyToMany) -> Answer:
    """PUT of a whole relationship; its tables and names stay."""
    before = definitions.relationship(context.catalogue, one)
    one.definition = replaced(context, before, kept(context.call.json(), {"Lookup"}))
    note_component(context, one.id)
    return Answer()


def delete_relationship(context: Context, one: OneToMany | ManyToMany) -> Answer:
    """DELETE of a relationship; of one to many with its lookup column."""
    catalogue = context.catalogue
    if isinstance(one, ManyToMany):
        del catalogue.many_to_many[one.name]
        context.store.links.pop(one.name, None)
        return Answer()
    child = catalogue.table(one.child)
    if not child.columns[one.column].custom:
        raise ApiError(400, "0x8004f01f", f"The relationship {one.name} cannot be deleted.")
    del catalogue.one_to_many[one.name]
    if not any(
        other.child == one.child and other.column == one.column for other in catalogue.one_to_many.values()
    ):
        drop_column(context, child, one.column)
    return Answer()


def create_option_set(context: Context) -> Answer:
    """POST GlobalOptionSetDefinitions."""
    body = context.call.json()
    name = require(body, "Name", "GlobalOptionSetDefinitions")
    if name in context.catalogue.option_sets:
        raise ApiError(400, "0x80044150", f"An option set with the specified name {name} already exists.")
    made = OptionSet(
        name, text_of(body.get("DisplayName"), name), _options(body), definition=kept(body, {"Options"})
    )
    context.catalogue.option_sets[name] = made
    note_component(context, made.id)
    return created(f"{context.call.root}GlobalOptionSetDefinitions({made.id})")


def update_option_set(context: Context, shared: OptionSet) -> Answer:
    """PUT of a whole option set. Options change by their own actions, as in reality."""
    before = definitions.option_set(shared)
    shared.definition = replaced(context, before, kept(context.call.json(), {"Options"}))
    shared.label = text_of(shared.definition.get("DisplayName"), shared.label)
    note_component(context, shared.id)
    return Answer()


def delete_option_set(context: Context, shared: OptionSet) -> Answer:
    """DELETE of an option set that no column uses."""
    for table in context.catalogue.tables.values():
        if any(column.option_set == shared.name for column in table.columns.values()):
            message = f"The option set {shared.name} is used by {table.name} and cannot be deleted."
            raise ApiError(400, "0x8004f01f", message)
    del context.catalogue.option_sets[shared.name]
    return Answer()


def _add_many_to_many(context: Context, body: dict[str, Any]) -> ManyToMany:
    name = _free_relationship(context, body)
    first = context.catalogue.table(require(body, "Entity1LogicalName", "RelationshipDefinitions"))
    second = context.catalogue.table(require(body, "Entity2LogicalName", "RelationshipDefinitions"))
    made = ManyToMany(
        name, first.name, second.name, str(body.get("IntersectEntityName") or name).lower(),
        str(body.get("Entity1NavigationPropertyName") or name),
        str(body.get("Entity2NavigationPropertyName") or name), definition=kept(body),
    )  # fmt: skip
    context.catalogue.relate(made)
    note_component(context, made.id)
    return made


def _free_relationship(context: Context, body: dict[str, Any]) -> str:
    name = schema_name(body, "RelationshipMetadataBase")
    if name in context.catalogue.one_to_many or name in context.catalogue.many_to_many:
        raise ApiError(400, "0x80044150", f"A relationship with the name {name} already exists.")
    return name


def _options(body: dict[str, Any]) -> dict[int, str]:
    return {int(one.get("Value") or 100_000_000 + place): text_of(one.get("Label"))
            for place, one in enumerate(body.get("Options") or [])}  # fmt: skip
