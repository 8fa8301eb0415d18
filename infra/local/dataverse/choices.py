"""InsertOptionValue, UpdateOptionValue, DeleteOptionValue, OrderOption: for columns and global option sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.errors import ApiError, bad_payload
from infra.local.dataverse.labels import text_of
from infra.local.dataverse.schema import CHOICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.dataverse.context import Context

_FIRST_VALUE: Final = 100_000_000


def _options(context: Context, body: dict[str, Any]) -> dict[int, str]:
    catalogue = context.catalogue
    if (name := body.get("OptionSetName")) is not None:
        if name not in catalogue.option_sets:
            raise ApiError(400, "0x80044336", f"The option set {name} was not found.")
        return catalogue.option_sets[name].options
    table = catalogue.table(str(body.get("EntityLogicalName")))
    column = table.columns.get(str(body.get("AttributeLogicalName")))
    if column is None or column.kind not in CHOICES:
        raise ApiError(400, "0x80041103", f"'{table.name}' has no choice '{body.get('AttributeLogicalName')}'.")
    return catalogue.options(column)


def _value(body: dict[str, Any], options: dict[int, str]) -> int:
    value = body.get("Value")
    if not isinstance(value, int) or value not in options:
        raise ApiError(400, "0x80048403", f"The option value {value} does not exist.")
    return value


def _insert(context: Context, body: dict[str, Any]) -> dict[str, Any]:
    options = _options(context, body)
    value = body.get("Value")
    if value is None:
        value = max([_FIRST_VALUE - 1, *options]) + 1
    if value in options:
        raise ApiError(400, "0x80048403", f"The option value {value} exists already.")
    options[int(value)] = text_of(body.get("Label"))
    return {"NewOptionValue": int(value)}


def _update(context: Context, body: dict[str, Any]) -> None:
    options = _options(context, body)
    options[_value(body, options)] = text_of(body.get("Label"))


def _delete(context: Context, body: dict[str, Any]) -> None:
    options = _options(context, body)
    del options[_value(body, options)]


def _order(context: Context, body: dict[str, Any]) -> None:
    options, values = _options(context, body), body.get("Values")
    if not isinstance(values, list) or sorted(values) != sorted(options):
        raise bad_payload("OrderOption", "'Values' must name every option once.")
    ordered = {value: options[value] for value in values}
    options.clear()
    options.update(ordered)


CHOICE_ACTIONS: Final[dict[str, Callable[[Context, dict[str, Any]], dict[str, Any] | None]]] = {
    "InsertOptionValue": _insert,
    "UpdateOptionValue": _update,
    "DeleteOptionValue": _delete,
    "OrderOption": _order,
}
