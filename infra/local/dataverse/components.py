"""What creating and replacing definitions share: columns of tables, labels, membership in solutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.attributes import LABELS
from infra.local.dataverse.errors import ApiError
from infra.local.dataverse.labels import merged

if TYPE_CHECKING:
    from infra.local.dataverse.context import Context
    from infra.local.dataverse.schema import Column, Table

DUPLICATE_NAME: Final = "0x80044363"


def add_column(context: Context, table: Table, column: Column) -> None:
    """Give a table a new column. Raises ApiError (400) when it has it."""
    if column.name in table.columns:
        raise ApiError(400, DUPLICATE_NAME, f"Attribute {column.name} already exists on {table.name}.")
    table.add(column)
    note_component(context, column.id)


def drop_column(context: Context, table: Table, name: str) -> None:
    """Take a column from a table, with its values and the keys it is part of."""
    del table.columns[name]
    for key in [key for key, columns in table.keys.items() if name in columns]:
        del table.keys[key]
    for row in context.store.table(table.name).values():
        row.values.pop(name, None)


def check_solution(context: Context) -> None:
    """Refuse a MSCRM.SolutionUniqueName that names no solution. Raises ApiError (400)."""
    solution = context.call.header("mscrm.solutionuniquename")
    table = context.catalogue.table("solution")
    if solution is not None and context.store.by_key(table, {"uniquename": solution}) is None:
        raise ApiError(400, "0x80048538", f"The solution with the unique name {solution} was not found.")


def replaced(context: Context, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The new definition, its labels merged with the old ones if MSCRM.MergeLabels says so."""
    keep = (context.call.header("mscrm.mergelabels") or "false").lower() == "true"
    for name in LABELS & after.keys():
        if isinstance(after[name], dict):
            after[name] = merged(before.get(name), after[name], keep=keep)
    return after


def note_component(context: Context, component: str) -> None:
    """Remember that a definition was written for a solution."""
    solution = context.call.header("mscrm.solutionuniquename")
    if solution is not None:
        context.environment.components.append((solution, component))
