"""CreatePolymorphicLookupAttribute: one lookup column, several relationships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.dataverse.errors import bad_payload
from infra.local.dataverse.relationship_write import add_one_to_many

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context


def create_polymorphic_lookup(context: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Make the relationships and their shared column. Raises ApiError (400)."""
    lookup, relationships = body.get("Lookup"), body.get("OneToManyRelationships")
    if not isinstance(lookup, dict) or not isinstance(relationships, list) or not relationships:
        raise bad_payload(
            "CreatePolymorphicLookupAttribute", "'Lookup' and 'OneToManyRelationships' are wanted."
        )
    made = []
    for given in relationships:
        # One navigation property a target: the column alone would be ambiguous.
        single = f"{lookup.get('SchemaName', '')}_{given.get('ReferencedEntity', '')}"
        made.append(
            add_one_to_many(context, {"ReferencingEntityNavigationPropertyName": single, **given}, lookup)
        )
    column = context.catalogue.table(made[0].child).columns[made[0].column]
    return {"RelationshipIds": [one.id for one in made], "AttributeId": column.id}
