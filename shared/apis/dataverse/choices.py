"""Choices (option sets): global ones as definitions, and the single options of any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shared.apis.dataverse.call import Call
from shared.apis.dataverse.metadata import Definition, Options, create, replace
from shared.apis.dataverse.names import definition, shown
from shared.apis.record import Record
from shared.errors import ToolError

SETS: Final = "GlobalOptionSetDefinitions"


async def create_global_option_set(
    call: Call, option_set_definition: Definition, options: Options = None
) -> Record:
    """`{"id": MetadataId}` of the new global choice."""
    return await create(call, SETS, option_set_definition, options)


async def update_global_option_set(
    call: Call, option_set_identifier: object, option_set_definition: Definition, options: Options = None
) -> None:
    """`optionSetIdentifier`: name or MetadataId."""
    await replace(call, definition(SETS, option_set_identifier, "Name"), option_set_definition, options)


async def delete_global_option_set(call: Call, option_set_identifier: object) -> None:
    """Refused while a column uses it."""
    await call.send("DELETE", definition(SETS, option_set_identifier, "Name"))


async def insert_option_value(call: Call, params: Mapping[str, Any]) -> Record:
    """`{OptionSetName}` or `{EntityLogicalName, AttributeLogicalName}`, with Value?, Label.

    Gives `{NewOptionValue}`.
    """
    return await _act(call, "InsertOptionValue", params)


async def update_option_value(call: Call, params: Mapping[str, Any]) -> Record:
    """As `insert_option_value`, with Value and Label. MergeLabels is True if absent: the action needs it."""
    return await _act(call, "UpdateOptionValue", {"MergeLabels": True, **_checked("updateOptionValue", params)})


async def delete_option_value(call: Call, params: Mapping[str, Any]) -> Record:
    """`{OptionSetName}` or `{EntityLogicalName, AttributeLogicalName}`, with Value."""
    return await _act(call, "DeleteOptionValue", params)


async def order_option(call: Call, params: Mapping[str, Any]) -> Record:
    """As `insert_option_value`, with Values: all of them, in their new order."""
    return await _act(call, "OrderOption", params)


async def _act(call: Call, action: str, params: Mapping[str, Any]) -> Record:
    found: Record = await call.json("POST", action, body=_checked(action, params))
    return found


def _checked(action: str, params: object) -> dict[str, Any]:
    if not isinstance(params, Mapping):
        raise ToolError(f"{action}: params must be an object, not {shown(params)}")
    if not params.get("OptionSetName") and not (
        params.get("EntityLogicalName") and params.get("AttributeLogicalName")
    ):
        raise ToolError(f"{action}: name OptionSetName, or EntityLogicalName and AttributeLogicalName")
    return dict(params)
