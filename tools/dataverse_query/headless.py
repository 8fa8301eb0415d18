"""Reads rows of a Dataverse table: one page in a call, all pages into a file as a job."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import IO, Any
from urllib.parse import quote

from shared.apis import dataverseAPI
from shared.apis.pages import Page, Rows
from shared.tool import Context, ToolError

#: Rows of one page: in a call an agent reads them all, as a job nobody does.
CALL_PAGE = 50
JOB_PAGE = 5_000
FORMATS = {"csv": "text/csv", "jsonl": "application/jsonl"}


async def invokeHeadless(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002, N802
    is_job = context.job_id is not None
    size = input.get("pageSize") or (JOB_PAGE if is_job else CALL_PAGE)
    rows = await _query(input, size)
    if is_job:
        return await _to_file(rows, input.get("format", "csv"), context)
    async for page in rows.pages():
        return {"rowCount": len(page.records), "more": not page.last, "rows": list(map(_plain, page.records))}
    return {"rowCount": 0, "more": False, "rows": []}


async def _query(input: dict[str, Any], size: int) -> Rows:  # noqa: A002
    """The rows that the input asks for, in pages of `size`."""
    ways = [name for name in ("fetchXml", "odata", "entityName") if input.get(name)]
    if len(ways) != 1:
        got = " and ".join(ways) or "none of them"
        raise ToolError(f"give exactly one of fetchXml, odata and entityName, not {got}")
    others = [name for name in ("columns", "filter") if input.get(name) and ways != ["entityName"]]
    if others:
        raise ToolError(f"{' and '.join(others)} belong to entityName, not to {ways[0]}")
    if ways == ["fetchXml"]:
        by_xml: Callable[..., Rows] = dataverseAPI.iterateFetchXml
        return by_xml(input["fetchXml"], pageSize=size)
    by_query: Callable[..., Rows] = dataverseAPI.iterateQuery
    if ways == ["odata"]:
        return by_query(input["odata"], pageSize=size)
    table = input["entityName"]
    columns = input.get("columns")
    if not columns:
        about = await dataverseAPI.getEntityMetadata(table, True, ["PrimaryNameAttribute"])
        columns = [about.PrimaryNameAttribute]
    query = f"{await dataverseAPI.getEntitySetName(table)}?$select={quote(','.join(columns), safe=',')}"
    if input.get("filter"):
        query += f"&$filter={quote(input['filter'], safe='')}"
    return by_query(query, pageSize=size)


async def _to_file(rows: Rows, kind: str, context: Context) -> dict[str, Any]:
    """All pages, one at a time, into a file that grows on disk and is stored when it is complete."""
    name = f"{context.tool_name}.{kind}"
    with io.TextIOWrapper(tempfile.TemporaryFile(), encoding="utf-8", newline="") as file:
        count = 0
        write = _csv_writer(file) if kind == "csv" else _json_writer(file)
        async for page in _told(rows, context):
            count += len(page.records)
            write([_plain(record) for record in page.records])
        file.flush()
        file.buffer.seek(0)
        link = await asyncio.to_thread(context.artifacts.write, name, file.buffer, FORMATS[kind])
    artifact = {"uri": link.uri, "name": name, "mimeType": FORMATS[kind], "size": link.size}
    artifact["url"] = f"/mcp/jobs/{context.job_id}/artifacts/{name}"
    return {"rowCount": count, "more": False, "artifact": artifact}


async def _told(rows: Rows, context: Context) -> AsyncIterator[Page]:
    """The pages, each reported. How many there will be is not known: the percentage only comes near its end."""
    count = 0
    async for page in rows.pages():
        count += len(page.records)
        context.update_progress(100 - 100 / (page.number + 1), f"page {page.number}, {count} rows")
        context.logger.info(f"page {page.number}: {len(page.records)} rows, {count} in all")
        yield page


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """The row without the service's annotations about the row itself."""
    return {name: value for name, value in record.items() if not name.startswith("@")}


def _csv_writer(file: IO[str]) -> Any:
    """Columns are those of the first page; what a later row has besides goes to none of them."""
    writer: csv.DictWriter[str] | None = None

    def write(rows: list[dict[str, Any]]) -> None:
        nonlocal writer
        if writer is None and rows:
            columns = list(dict.fromkeys(name for row in rows for name in row))
            writer = csv.DictWriter(file, columns, restval="", extrasaction="ignore")
            writer.writeheader()
        for row in rows:
            assert writer is not None
            writer.writerow({name: _cell(value) for name, value in row.items()})

    return write


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    text = str(value) if isinstance(value, str) else value
    # A spreadsheet would run it as a formula.
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t") else text


def _json_writer(file: IO[str]) -> Any:
    def write(rows: list[dict[str, Any]]) -> None:
        buffer = io.StringIO()
        for row in rows:
            buffer.write(json.dumps(row, ensure_ascii=False))
            buffer.write("\n")
        file.write(buffer.getvalue())

    return write
