"""Reads rows of a Dataverse table: one page in a call, all pages into a file as a job."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from shared.apis import dataverseAPI
from shared.apis.pages import Page, Rows
from shared.tool import Context, ToolError

#: Rows of one page: in a call an agent reads them all, as a job nobody does.
CALL_PAGE = 50
JOB_PAGE = 5_000
#: Characters of a file that are handed to storage at once, about.
PART = 256 * 1024
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
    with tempfile.TemporaryFile() as lines:
        count = 0
        columns: dict[str, None] = {}
        async for page in _told(rows, context):
            count += len(page.records)
            records = list(map(_plain, page.records))
            columns |= dict.fromkeys(column for record in records for column in record)
            await asyncio.to_thread(lines.writelines, map(_line, records))
        lines.seek(0)
        data = _as_csv(lines, columns) if kind == "csv" else lines
        link = await asyncio.to_thread(context.artifacts.write, name, data, FORMATS[kind])
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


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _as_csv(lines: Iterable[bytes], columns: Iterable[str]) -> Iterator[bytes]:
    """The rows with every column that one of them has: an answer leaves out what is empty in a row."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, list(columns), restval="")
    if writer.fieldnames:
        writer.writeheader()
    for line in lines:
        writer.writerow({name: _cell(value) for name, value in json.loads(line).items()})
        if buffer.tell() >= PART:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    text = str(value) if isinstance(value, str) else value
    # A spreadsheet would run it as a formula.
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
