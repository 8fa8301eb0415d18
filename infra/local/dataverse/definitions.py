"""Definitions as JSON: entities, attributes, keys, relationships, option sets. A subset of the real properties.

What a client sent in a create or update and the stand-in has no use for is answered back as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.labels import label
from infra.local.dataverse.schema import CHOICES, LOOKUPS, NUMBERS, TEXT, Kind, OneToMany, stable_id

if TYPE_CHECKING:
    from infra.local.dataverse.catalogue import Catalogue, OptionSet
    from infra.local.dataverse.schema import Column, ManyToMany, Table

CRM: Final = "Microsoft.Dynamics.CRM."
#: Properties of every attribute, whatever its type: those that $select takes without a cast.
BASE_ATTRIBUTE: Final = frozenset(
    {"MetadataId", "LogicalName", "SchemaName", "AttributeType", "AttributeTypeName", "DisplayName",
     "Description", "EntityLogicalName", "IsPrimaryId", "IsPrimaryName", "IsCustomAttribute", "IsValidForRead",
     "IsValidForCreate", "IsValidForUpdate", "RequiredLevel", "AttributeOf", "ColumnNumber", "IsLogical",
     "IsManaged", "IsCustomizable", "SourceType", "HasChanged", "ExternalName"}
)  # fmt: skip
_PRIVILEGES: Final = ("Create", "Read", "Write", "Delete", "Assign", "Share", "Append", "AppendTo")
_MAX_INT: Final = 2_147_483_647


def managed(value: Any, name: str) -> dict[str, Any]:
    """A managed property."""
    return {"Value": value, "CanBeChanged": True, "ManagedPropertyLogicalName": name}


def entity(table: Table) -> dict[str, Any]:
    """EntityMetadata without its collections."""
    derived = {
        "DisplayName": label(table.label), "DisplayCollectionName": label(f"{table.label}s"),
        "Description": label(""), "OwnershipType": "UserOwned", "IsActivity": False, "HasNotes": False,
        "HasActivities": False, "IsIntersect": False, "IsManaged": False, "TableType": "Standard",
        "IsOptimisticConcurrencyEnabled": True, "ChangeTrackingEnabled": False, "IsValidForAdvancedFind": True,
        "IsCustomizable": managed(True, "iscustomizable"),
        "CanCreateAttributes": managed(True, "cancreateattributes"),
        "PrimaryImageAttribute": None, "IsPrivate": False, "HasChanged": None,
    }  # fmt: skip
    fixed = {
        "MetadataId": table.id, "LogicalName": table.name, "SchemaName": table.schema_name,
        "EntitySetName": table.set_name, "LogicalCollectionName": table.set_name,
        "CollectionSchemaName": table.schema_name + "s", "ObjectTypeCode": table.type_code,
        "PrimaryIdAttribute": table.primary_id, "PrimaryNameAttribute": table.primary_name,
        "IsCustomEntity": table.custom,
    }  # fmt: skip
    return {**fixed, **derived, **table.definition, **fixed}


def attribute(catalogue: Catalogue, table: Table, column: Column) -> dict[str, Any]:
    """AttributeMetadata of the column's type, its option set included."""
    type_name = attribute_type(column.kind)
    fixed: dict[str, Any] = {
        "@odata.type": f"#{CRM}{type_name}", "MetadataId": column.id, "LogicalName": column.name,
        "SchemaName": column.schema_name, "EntityLogicalName": table.name, "AttributeType": column.kind.value,
        "AttributeTypeName": {"Value": f"{column.kind.value}Type"}, "IsCustomAttribute": column.custom,
        "IsPrimaryId": column.name == table.primary_id, "IsPrimaryName": column.name == table.primary_name,
    }  # fmt: skip
    derived: dict[str, Any] = {
        "DisplayName": label(column.label), "Description": label(""), "IsValidForRead": True,
        "IsValidForCreate": not column.read_only, "IsValidForUpdate": not column.read_only,
        "RequiredLevel": managed("None", "canmodifyrequirementlevelsettings"), "AttributeOf": None,
        "ColumnNumber": 1 + list(table.columns).index(column.name), "IsLogical": False, "IsManaged": False,
        "IsCustomizable": managed(True, "iscustomizable"), "SourceType": 0, "HasChanged": None,
        "ExternalName": None,
    }  # fmt: skip
    return {**fixed, **derived, **_typed(catalogue, table, column), **column.definition, **fixed}


def attribute_type(kind: Kind) -> str:
    """The metadata type of a kind's attributes."""
    if kind in {Kind.CUSTOMER, Kind.OWNER}:
        return "LookupAttributeMetadata"
    return "UniqueIdentifierAttributeMetadata" if kind is Kind.ID else f"{kind.value}AttributeMetadata"


def _typed(catalogue: Catalogue, table: Table, column: Column) -> dict[str, Any]:
    kind = column.kind
    if kind in TEXT:
        return {"MaxLength": column.max_length, "Format": "Text"}
    if kind in LOOKUPS:
        return {"Targets": list(column.targets)}
    if kind is Kind.DATETIME:
        return {"Format": "DateOnly" if column.date_only else "DateAndTime",
                "DateTimeBehavior": {"Value": "DateOnly" if column.date_only else "UserLocal"}}  # fmt: skip
    if kind in NUMBERS:
        return {"MinValue": -_MAX_INT - 1, "MaxValue": _MAX_INT}
    if kind in CHOICES or kind is Kind.BOOLEAN:
        shared = catalogue.option_sets.get(column.option_set or "")
        if shared is not None:
            document = option_set(shared)
            return {"OptionSet": document, "GlobalOptionSet": document, "DefaultFormValue": -1}
        return {"OptionSet": _own_options(catalogue, table, column), "GlobalOptionSet": None}
    return {}


def _own_options(catalogue: Catalogue, table: Table, column: Column) -> dict[str, Any]:
    choices = catalogue.options(column)
    document = {"MetadataId": stable_id("options", table.name, column.name), "IsGlobal": False,
                "Name": f"{table.name}_{column.name}", "OptionSetType": column.kind.value}  # fmt: skip
    if column.kind is Kind.BOOLEAN:
        names = {0: "No", 1: "Yes"} | choices
        return document | {"TrueOption": _option(1, names[1]), "FalseOption": _option(0, names[0])}
    return document | {"Options": [_option(value, text) for value, text in choices.items()]}


def _option(value: int, text: str) -> dict[str, Any]:
    return {"Value": value, "Label": label(text), "Description": label(""), "Color": None, "IsManaged": False}


def option_set(shared: OptionSet) -> dict[str, Any]:
    """A global OptionSetMetadata."""
    fixed = {
        "@odata.type": f"#{CRM}OptionSetMetadata", "MetadataId": shared.id, "Name": shared.name,
        "IsGlobal": True, "OptionSetType": "Picklist",
        "Options": [_option(value, text) for value, text in shared.options.items()],
    }  # fmt: skip
    derived = {"DisplayName": label(shared.label), "Description": label(""), "IsCustomOptionSet": True,
               "IsManaged": False, "HasChanged": None}  # fmt: skip
    return {**fixed, **derived, **shared.definition, **fixed}


def key(table: Table, name: str) -> dict[str, Any]:
    """EntityKeyMetadata."""
    return {
        "MetadataId": stable_id("key", table.name, name), "LogicalName": name, "SchemaName": name,
        "EntityLogicalName": table.name, "KeyAttributes": list(table.keys[name]), "DisplayName": label(name),
        "EntityKeyIndexStatus": "Active", "IsManaged": False,
    }  # fmt: skip


def relationship(catalogue: Catalogue, one: OneToMany | ManyToMany) -> dict[str, Any]:
    """A relationship's definition."""
    fixed: dict[str, Any] = {"MetadataId": one.id, "SchemaName": one.name}
    if isinstance(one, OneToMany):
        parent = catalogue.table(one.parent)
        fixed |= {
            "@odata.type": f"#{CRM}OneToManyRelationshipMetadata", "RelationshipType": "OneToManyRelationship",
            "ReferencedEntity": one.parent, "ReferencedAttribute": parent.primary_id,
            "ReferencingEntity": one.child, "ReferencingAttribute": one.column,
            "ReferencedEntityNavigationPropertyName": one.many_name,
            "ReferencingEntityNavigationPropertyName": one.single_name,
        }  # fmt: skip
    else:
        fixed |= {
            "@odata.type": f"#{CRM}ManyToManyRelationshipMetadata",
            "RelationshipType": "ManyToManyRelationship",
            "Entity1LogicalName": one.first, "Entity2LogicalName": one.second,
            "Entity1IntersectAttribute": f"{one.first}id", "Entity2IntersectAttribute": f"{one.second}id",
            "Entity1NavigationPropertyName": one.first_name, "Entity2NavigationPropertyName": one.second_name,
            "IntersectEntityName": one.intersect,
        }  # fmt: skip
    derived = {"IsCustomRelationship": "_" in one.name, "IsManaged": False, "IsValidForAdvancedFind": True}
    return {**fixed, **derived, **one.definition, **fixed}


def privileges(table: Table) -> list[dict[str, Any]]:
    """SecurityPrivilegeMetadata of a table."""
    return [
        {"PrivilegeId": stable_id("privilege", table.name, kind), "Name": f"prv{kind}{table.schema_name}",
         "PrivilegeType": kind, "CanBeBasic": True, "CanBeLocal": True, "CanBeDeep": True, "CanBeGlobal": True,
         "CanBeEntityReference": False, "CanBeParentEntityReference": False}
        for kind in _PRIVILEGES
    ]  # fmt: skip


def collection(catalogue: Catalogue, table: Table, name: str) -> list[dict[str, Any]] | None:
    """A collection of an entity's definition by name; None for an unknown one."""
    ones, manies = catalogue.one_to_many.values(), catalogue.many_to_many.values()
    match name:
        case "Attributes":
            return [attribute(catalogue, table, column) for column in table.columns.values()]
        case "Keys":
            return [key(table, one) for one in table.keys]
        case "OneToManyRelationships":
            return [relationship(catalogue, one) for one in ones if one.parent == table.name]
        case "ManyToOneRelationships":
            return [relationship(catalogue, one) for one in ones if one.child == table.name]
        case "ManyToManyRelationships":
            return [relationship(catalogue, one) for one in manies if table.name in {one.first, one.second}]
        case "Privileges":
            return privileges(table)
    return None
