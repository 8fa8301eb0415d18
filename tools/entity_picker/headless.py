"""Picks records of a table by a part of their name. Which one is meant must be clear: no guesses."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from shared.apis import dataverseAPI
from shared.tool import Context, ToolError

#: Records that are looked at; more than that is no choice any more.
MOST = 50
#: Candidates that an error names.
NAMED = 10


async def invokeHeadless(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002, N802
    table, search = input["entityName"], (input.get("search") or "").strip()
    about = await dataverseAPI.getEntityMetadata(table, True, ["PrimaryIdAttribute", "PrimaryNameAttribute"])
    key, name = about.PrimaryIdAttribute, about.PrimaryNameAttribute
    query = f"{await dataverseAPI.getEntitySetName(table)}?$select={key},{name}&$orderby={name}&$top={MOST + 1}"

    async def records(condition: str) -> list[tuple[str, str]]:
        narrowed = f"{query}&$filter={quote(condition, safe='')}" if condition else query
        rows = (await dataverseAPI.queryData(narrowed)).value
        return [(str(row[key]), str(row.get(name) or "")) for row in rows]

    literal = search.replace("'", "''")
    found = await records(search and f"contains({name},'{literal}')")
    context.logger.info(f"{len(found)} candidates")
    what = f"'{search}'" if search else "no search text"
    if not found:
        raise ToolError(f"no {table} has a name that contains {what}")
    exact = [one for one in found if search and one[1].casefold() == search.casefold()]
    if search and not exact and len(found) > MOST:  # it may be behind those that were looked at
        exact = await records(f"{name} eq '{literal}'")
    if input.get("allowMultiSelect"):
        if len(found) > MOST:
            raise ToolError(f"more than {MOST} {table} records match {what}: search for more of the name")
        return {"selectedIds": [one[0] for one in found], "selectedNames": [one[1] for one in found]}
    chosen = exact if len(exact) == 1 else found
    if len(chosen) > 1:
        shown = "; ".join(f"{label} ({identifier})" for identifier, label in chosen[:NAMED])
        more = "; and more" if len(chosen) > NAMED else ""
        raise ToolError(
            f"several {table} records match {what}: {shown}{more}. Search for one of them by its name."
        )
    ((identifier, label),) = chosen
    return {"selectedId": identifier, "selectedName": label}
