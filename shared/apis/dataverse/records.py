"""Rows: created, read, changed, deleted, linked; one by one and in bulk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.apis.dataverse.call import REPRESENTATION, Call, Table
from shared.apis.dataverse.names import GUID, guid, schema_name, select, shown
from shared.apis.http import Answer
from shared.apis.record import Record
from shared.errors import ToolError

_ID_AT_END: Final = re.compile(rf"\(({GUID.pattern})\)\s*$")
TYPE: Final = "@odata.type"
PREFIX: Final = "Microsoft.Dynamics.CRM."


async def create(call: Call, entity_logical_name: str, record: Mapping[str, Any]) -> Record:
    """The new row with all its columns, and `id`. Lookups: `"parentid@odata.bind": "/accounts(…)"`."""
    table = await call.table(entity_logical_name)
    answer = await call.send("POST", table.entity_set, headers={"prefer": REPRESENTATION}, body=_row(record))
    created: Record = answer.json()
    found = created.get(table.primary_id) or entity_id(answer)
    return Record({"id": found, **created})


async def retrieve(
    call: Call,
    entity_logical_name: str,
    id: object,  # noqa: A002 - the contract's own name
    columns: Iterable[str] | None = None,
) -> Record:
    """One row, by GUID or alternate key; all columns when none are named."""
    path = await call.row(entity_logical_name, id) + select(columns)
    found: Record = await call.json("GET", path)
    return found


async def update(
    call: Call,
    entity_logical_name: str,
    id: object,  # noqa: A002 - the contract's own name
    record: Mapping[str, Any],
) -> None:
    """Changes the columns that `record` has. A row that does not exist is an error, and never made.

    Additional header `If-Match` with an etag: only if nobody has changed the row since. With None: no
    condition, and a row that does not exist is made.
    """
    path = await call.row(entity_logical_name, id)
    headers = {"if-match": "*"}
    if "if-none-match" in call.additional:
        headers = {}
    await call.send("PATCH", path, headers=headers, body=_row(record))


async def delete(call: Call, entity_logical_name: str, id: object) -> None:  # noqa: A002
    """Deletes one row, by GUID or alternate key."""
    await call.send("DELETE", await call.row(entity_logical_name, id))


async def create_multiple(
    call: Call, entity_logical_name: str, records: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Ids of the new rows, in order; all rows are made or none. `@odata.type` is added where it is missing."""
    table = await call.table(entity_logical_name)
    targets = [_typed(table, record) for record in _rows(records)]
    answer = await call.json("POST", f"{table.entity_set}/{PREFIX}CreateMultiple", body={"Targets": targets})
    return [str(found) for found in answer.get("Ids", [])]


async def update_multiple(call: Call, entity_logical_name: str, records: Iterable[Mapping[str, Any]]) -> None:
    """Changes rows, all or none. Every record holds its own id (`accountid`, or `@odata.id`)."""
    table = await call.table(entity_logical_name)
    targets = [_typed(table, record) for record in _rows(records)]
    for number, target in enumerate(targets):
        if table.primary_id in target:
            target[table.primary_id] = guid(target[table.primary_id], f"records[{number}].{table.primary_id}")
        elif "@odata.id" not in target:
            raise ToolError(f"updateMultiple: records[{number}] has no '{table.primary_id}'")
    await call.send("POST", f"{table.entity_set}/{PREFIX}UpdateMultiple", body={"Targets": targets})


async def associate(
    call: Call,
    primary_entity_name: str,
    primary_entity_id: object,
    relationship_name: str,
    related_entity_name: str,
    related_entity_id: object,
) -> None:
    """Links two rows of a many-to-many relationship."""
    row = await call.row(primary_entity_name, primary_entity_id)
    related = await call.row(related_entity_name, related_entity_id)
    name = schema_name(relationship_name, "relationshipName")
    await call.send("POST", f"{row}/{name}/$ref", body={"@odata.id": call.root + related})


async def disassociate(
    call: Call,
    primary_entity_name: str,
    primary_entity_id: object,
    relationship_name: str,
    related_entity_id: object,
) -> None:
    """Takes the link between two rows of a many-to-many relationship away."""
    row = await call.row(primary_entity_name, primary_entity_id)
    name = schema_name(relationship_name, "relationshipName")
    await call.send("DELETE", f"{row}/{name}({guid(related_entity_id, 'relatedEntityId')})/$ref")


async def get_entity_set_name(call: Call, entity_logical_name: str) -> str:
    """`account` -> `accounts`, from the environment's metadata (kept for the life of the process)."""
    return (await call.table(entity_logical_name)).entity_set


def entity_id(answer: Answer) -> str | None:
    """The id of what was made, from the header `OData-EntityId`."""
    found = _ID_AT_END.search(answer.headers.get("odata-entityid", ""))
    return found[1].lower() if found else None


def _row(record: object, what: str = "record") -> dict[str, Any]:
    if not isinstance(record, Mapping):
        raise ToolError(f"{what} must be an object with columns and values, not {shown(record)}")
    return dict(record)


def _rows(records: object) -> list[dict[str, Any]]:
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise ToolError(f"records must be a list of objects, not {shown(records)}")
    found = [_row(record, f"records[{number}]") for number, record in enumerate(records)]
    if not found:
        raise ToolError("records must not be empty")
    return found


def _typed(table: Table, record: dict[str, Any]) -> dict[str, Any]:
    return {TYPE: f"{PREFIX}{table.logical_name}", **record}
