"""Actions and functions, bound and unbound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.apis.dataverse import literals
from shared.apis.dataverse.call import Call
from shared.apis.dataverse.names import operation_name, shown
from shared.apis.dataverse.records import PREFIX
from shared.apis.record import Record
from shared.errors import ToolError


async def execute(call: Call, request: Mapping[str, Any]) -> Record:
    """`{operationName, operationType: "action" | "function", entityName?, entityId?, parameters?}`.

    A function is a GET with its parameters in the address (see `literals`), an action a POST with its
    parameters as JSON. With `entityName` and `entityId` it is bound to a row, with `entityName` alone to the
    table. Gives the operation's result, an empty record when it has none.
    """
    if not isinstance(request, Mapping):
        raise ToolError(f"execute: the request must be an object, not {shown(request)}")
    name = operation_name(request.get("operationName"))
    kind = request.get("operationType")
    if kind not in ("action", "function"):
        raise ToolError(f"execute: operationType must be 'action' or 'function', not {shown(kind)}")
    parameters = request.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise ToolError(f"execute: parameters must be an object, not {shown(parameters)}")
    bound = await _bound_to(call, request.get("entityName"), request.get("entityId"))
    if bound and "." not in name:
        name = PREFIX + name
    if kind == "function":
        found = await call.json("GET", bound + await literals.invocation(call, name, parameters))
    else:
        found = await call.json("POST", bound + name, body=dict(parameters) or None)
    return found if isinstance(found, Record) else Record(value=found)


async def _bound_to(call: Call, entity: str | None, key: object) -> str:
    if not entity:
        if key:
            raise ToolError("execute: entityId needs entityName as well")
        return ""
    if key:
        return f"{await call.row(entity, key)}/"
    return f"{(await call.table(entity)).entity_set}/"
