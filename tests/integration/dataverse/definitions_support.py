"""Definitions as clients send them, small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from shared.tool.spec import JsonObject
    from tests.integration.dataverse.methods_cases import Place

CRM: Final = "Microsoft.Dynamics.CRM."


def label(text: str, language: int = 1033) -> JsonObject:
    return {"LocalizedLabels": [{"Label": text, "LanguageCode": language}]}


def column(schema_name: str, **more: Any) -> JsonObject:
    """A text column."""
    kind = {"@odata.type": f"{CRM}StringAttributeMetadata", "SchemaName": schema_name}
    return {**kind, "DisplayName": label(schema_name), **more}


def table_definition(
    schema_name: str, label_text: str | None = None, language: int = 1033, **more: Any
) -> JsonObject:
    """A table with its name column."""
    return {
        "@odata.type": f"{CRM}EntityMetadata", "SchemaName": schema_name, "OwnershipType": "UserOwned",
        "DisplayName": label(label_text or schema_name, language),
        "Attributes": [column("sample_Name", IsPrimaryName=True)], **more,
    }  # fmt: skip


def new_table(place: Place, schema_name: str, **more: Any) -> str:
    """The MetadataId of a table that no other case knows."""
    place.post("EntityDefinitions", table_definition(schema_name, **more))
    return str(place.environment.catalogue.table(schema_name.lower()).id)


def one_to_many(schema_name: str, parent: str, child: str, lookup: str) -> JsonObject:
    return {
        "@odata.type": f"{CRM}OneToManyRelationshipMetadata", "SchemaName": schema_name,
        "ReferencedEntity": parent, "ReferencingEntity": child,
        "Lookup": {
            "@odata.type": f"{CRM}LookupAttributeMetadata", "SchemaName": lookup, "DisplayName": label(lookup),
        },
    }  # fmt: skip


def many_to_many(schema_name: str, first: str, second: str) -> JsonObject:
    return {
        "@odata.type": f"{CRM}ManyToManyRelationshipMetadata", "SchemaName": schema_name,
        "Entity1LogicalName": first, "Entity2LogicalName": second,
        "IntersectEntityName": schema_name.lower(),
    }  # fmt: skip


def choice(name: str, *texts: str) -> JsonObject:
    """A global choice with the values 1, 2, …"""
    return {
        "@odata.type": f"{CRM}OptionSetMetadata", "Name": name, "OptionSetType": "Picklist", "IsGlobal": True,
        "DisplayName": label(name),
        "Options": [{"Value": number, "Label": label(text)} for number, text in enumerate(texts, 1)],
    }  # fmt: skip
