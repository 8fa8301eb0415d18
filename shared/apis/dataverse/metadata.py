"""Definitions of tables, columns and relationships: read, made, replaced, deleted.

Changes take effect for users after `publishCustomizations`. An update replaces the whole definition (PUT):
read it, change it, send all of it.

Options of all that write: `solutionUniqueName` (the solution that the change belongs to), `mergeLabels` (keeps
the labels in other languages; True for updates unless it says False), `consistencyStrong` (past caches).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from shared.apis.dataverse.call import Call
from shared.apis.dataverse.names import definition, guid, logical_name, quoted, select, shown
from shared.apis.dataverse.records import entity_id
from shared.apis.record import Record
from shared.errors import ToolError
from shared.text import shape_of

type Definition = Mapping[str, Any]
type Options = Mapping[str, Any] | None

TABLES: Final = "EntityDefinitions"
RELATIONSHIPS: Final = "RelationshipDefinitions"
COMPLEX_LOOKUP: Final = "Microsoft.Dynamics.CRM.ComplexLookupAttributeMetadata"
RELATED: Final = (
    "Attributes",
    "Keys",
    "ManyToOneRelationships",
    "OneToManyRelationships",
    "ManyToManyRelationships",
    "Privileges",
)
_RELATED_PATH: Final = re.compile(rf"(?:{'|'.join(RELATED)})(?:[(/][A-Za-z0-9_.()='/ -]*)?")
_OPTIONS: Final = ("solutionUniqueName", "mergeLabels", "consistencyStrong")


async def get_entity_metadata(
    call: Call, entity: object, search_by_logical_name: bool = True, select_columns: Iterable[str] | None = None
) -> Record:
    """A table's definition by its logical name, or with `searchByLogicalName=False` by its MetadataId."""
    name = quoted(logical_name(entity)) if search_by_logical_name else None
    key = guid(entity, "the MetadataId") if name is None else f"LogicalName={name}"
    found: Record = await call.json("GET", f"{TABLES}({key}){select(select_columns)}")
    return found


async def get_all_entities_metadata(call: Call, select_columns: Iterable[str] | None = None) -> Record:
    """`{"value": [definition, …]}`; LogicalName, DisplayName and MetadataId unless columns are named."""
    query = select(select_columns, ("LogicalName", "DisplayName", "MetadataId"))
    found: Record = await call.json("GET", TABLES + query)
    return found


async def get_entity_related_metadata(
    call: Call,
    entity_logical_name: str,
    related_path: str,
    select_columns: Iterable[str] | None = None,
) -> Record:
    """`Attributes`, `Keys`, `ManyToOneRelationships`, …, or one of them: `Attributes(LogicalName='name')`.

    A collection is `{"value": […]}`, a single one its definition.
    """
    path = related_path.strip().lstrip("/") if isinstance(related_path, str) else ""
    if not _RELATED_PATH.fullmatch(path) or ".." in path or "//" in path:
        raise ToolError(f"relatedPath must begin with one of {', '.join(RELATED)}, not {shown(related_path)}")
    table = definition(TABLES, logical_name(entity_logical_name))
    found: Record = await call.json("GET", f"{table}/{quote(path, safe="/()='")}{select(select_columns)}")
    return found


async def create_entity_definition(
    call: Call, entity_definition: Definition, options: Options = None
) -> Record:
    """`{"id": MetadataId}`. It takes SchemaName, DisplayName, OwnershipType, a primary name column, …"""
    return await create(call, TABLES, entity_definition, options)


async def update_entity_definition(
    call: Call, entity_identifier: object, entity_definition: Definition, options: Options = None
) -> None:
    """`entityIdentifier`: logical name or MetadataId."""
    await replace(call, definition(TABLES, entity_identifier), entity_definition, options)
    call.forget_tables()


async def delete_entity_definition(call: Call, entity_identifier: object) -> None:
    """Deletes a table with all its rows."""
    await call.send("DELETE", definition(TABLES, entity_identifier))
    call.forget_tables()


async def create_attribute(
    call: Call, entity_logical_name: str, attribute_definition: Definition, options: Options = None
) -> Record:
    """`{"id": MetadataId}` of the new column."""
    table = definition(TABLES, logical_name(entity_logical_name))
    return await create(call, f"{table}/Attributes", attribute_definition, options)


async def update_attribute(
    call: Call,
    entity_logical_name: str,
    attribute_identifier: object,
    attribute_definition: Definition,
    options: Options = None,
) -> None:
    """`attributeIdentifier`: logical name or MetadataId."""
    await replace(call, _column(entity_logical_name, attribute_identifier), attribute_definition, options)


async def delete_attribute(call: Call, entity_logical_name: str, attribute_identifier: object) -> None:
    """Deletes a column with all its values."""
    await call.send("DELETE", _column(entity_logical_name, attribute_identifier))


async def create_polymorphic_lookup_attribute(
    call: Call, entity_logical_name: str, attribute_definition: Definition, options: Options = None
) -> Record:
    """A lookup that may point into several tables: `{"AttributeId", "RelationshipIds"}`.

    The definition is that of a lookup column with `Targets`, the tables' logical names: one relationship to
    each is made, called `<SchemaName>_<table>_<target>`. Relationships of your own go into its
    `OneToManyRelationships`, in place of `Targets`.
    """
    table = logical_name(entity_logical_name)
    lookup = {**_whole(attribute_definition), "@odata.type": COMPLEX_LOOKUP}
    lookup.setdefault("AttributeType", "Lookup")
    lookup.setdefault("AttributeTypeName", {"Value": "LookupType"})
    targets = lookup.pop("Targets", None)
    relationships = lookup.pop("OneToManyRelationships", None)
    if not relationships:
        if not isinstance(targets, list | tuple) or not targets:
            raise ToolError(
                "createPolymorphicLookupAttribute: Targets must list the tables' logical names, "
                f"not {shape_of(targets)}"
            )
        schema = lookup.get("SchemaName")
        relationships = [
            {
                "SchemaName": f"{schema}_{table}_{target}",
                "ReferencedEntity": target,
                "ReferencingEntity": table,
            }
            for target in map(logical_name, targets)
        ]
    body: dict[str, Any] = {"OneToManyRelationships": relationships, "Lookup": lookup}
    headers = option_headers(options)
    if solution := headers.pop("mscrm.solutionuniquename", None):
        body["SolutionUniqueName"] = solution
    found: Record = await call.json("POST", "CreatePolymorphicLookupAttribute", headers=headers, body=body)
    return found


async def create_relationship(
    call: Call, relationship_definition: Definition, options: Options = None
) -> Record:
    """`{"id": MetadataId}`. `@odata.type` says whether it is one-to-many or many-to-many."""
    return await create(call, RELATIONSHIPS, relationship_definition, options)


async def update_relationship(
    call: Call, relationship_identifier: object, relationship_definition: Definition, options: Options = None
) -> None:
    """`relationshipIdentifier`: schema name or MetadataId."""
    path = definition(RELATIONSHIPS, relationship_identifier, "SchemaName")
    await replace(call, path, relationship_definition, options)


async def delete_relationship(call: Call, relationship_identifier: object) -> None:
    """Deletes a relationship, with the lookup column of a one-to-many one."""
    await call.send("DELETE", definition(RELATIONSHIPS, relationship_identifier, "SchemaName"))


async def create(call: Call, path: str, given: Definition, options: Options) -> Record:
    answer = await call.send("POST", path, headers=option_headers(options), body=_whole(given))
    made = answer.json() if answer.content else Record()
    return Record({"id": entity_id(answer) or made.get("MetadataId"), **made})


async def replace(call: Call, path: str, given: Definition, options: Options) -> None:
    await call.send("PUT", path, headers=option_headers(options, merge_labels=True), body=_whole(given))


def option_headers(options: Options, *, merge_labels: bool | None = None) -> dict[str, str]:
    """The headers that the options stand for. Raises `ToolError` for an unknown option."""
    given = dict(options or {})
    for name in given:
        if name not in _OPTIONS:
            raise ToolError(f"options: unknown option {shown(name)}; known are {', '.join(_OPTIONS)}")
    headers: dict[str, str] = {}
    if solution := given.get("solutionUniqueName"):
        if not isinstance(solution, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", solution):
            raise ToolError(
                f"options.solutionUniqueName must be a solution's unique name, not {shown(solution)}"
            )
        headers["mscrm.solutionuniquename"] = solution
    merge = given.get("mergeLabels", merge_labels)
    if merge is None:
        merge = merge_labels
    if merge is not None:
        headers["mscrm.mergelabels"] = "true" if merge else "false"
    if given.get("consistencyStrong"):
        headers["consistency"] = "Strong"
    return headers


def _column(entity: str, identifier: object) -> str:
    table = definition(TABLES, logical_name(entity))
    return f"{table}/{definition('Attributes', identifier)}"


def _whole(given: Definition) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not given:
        raise ToolError(f"The definition must be an object, not {shown(given)}")
    return dict(given)
