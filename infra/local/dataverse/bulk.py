"""CreateMultiple, UpdateMultiple, UpsertMultiple and DeleteMultiple: all records of a call, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.errors import bad_payload, missing_record
from infra.local.dataverse.payload import finish, insert, read_payload
from infra.local.dataverse.values import as_guid

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.dataverse.context import Context
    from infra.local.dataverse.schema import Table


def _targets(table: Table, body: dict[str, Any]) -> list[dict[str, Any]]:
    targets = body.get("Targets")
    if not isinstance(targets, list) or not targets:
        raise bad_payload(table.set_name, "The parameter 'Targets' is missing or empty.")
    wanted = f"Microsoft.Dynamics.CRM.{table.name}"
    for target in targets:
        kind = str(target.get("@odata.type", "")).removeprefix("#")
        if kind != wanted:
            raise bad_payload(
                table.set_name,
                f"Microsoft.OData.ODataException: An item of 'Targets' has the type '{kind}' where "
                f"'{wanted}' is expected. Does it have its @odata.type?",
            )
    return targets


def _id(table: Table, target: dict[str, Any]) -> str:
    found = as_guid(str(target.get(table.primary_id, "")))
    if found is None:
        raise bad_payload(table.set_name, f"An item of 'Targets' lacks its {table.primary_id}.")
    return found


def _create(context: Context, table: Table, body: dict[str, Any]) -> dict[str, Any]:
    with context.store.transaction():
        return {"Ids": [insert(context, table, target).id for target in _targets(table, body)]}


def _update(context: Context, table: Table, body: dict[str, Any]) -> None:
    with context.store.transaction():
        for target in _targets(table, body):
            _change(context, table, target, _id(table, target))


def _upsert(context: Context, table: Table, body: dict[str, Any]) -> dict[str, Any]:
    results = []
    with context.store.transaction():
        for target in _targets(table, body):
            row_id = _id(table, target)
            exists = row_id in context.store.table(table.name)
            if exists:
                _change(context, table, target, row_id)
            else:
                insert(context, table, target)
            record = {"@odata.id": f"{context.call.root}{table.set_name}({row_id})"}
            results.append({"RecordCreated": not exists, "Target": record})
    return {"Results": results}


def _delete(context: Context, table: Table, body: dict[str, Any]) -> None:
    with context.store.transaction():
        for target in _targets(table, body):
            row_id = _id(table, target)
            row = context.store.table(table.name).get(row_id)
            if row is None:
                raise missing_record(table.name, row_id)
            context.store.delete(table, row)


def _change(context: Context, table: Table, target: dict[str, Any], row_id: str) -> None:
    row = context.store.table(table.name).get(row_id)
    if row is None:
        raise missing_record(table.name, row_id)
    payload = read_payload(context, table, target)
    context.store.update(table, row, payload.values)
    finish(context, table, row, payload)


BULK: Final[dict[str, Callable[[Context, Table, dict[str, Any]], dict[str, Any] | None]]] = {
    "CreateMultiple": _create,
    "UpdateMultiple": _update,
    "UpsertMultiple": _upsert,
    "DeleteMultiple": _delete,
}
