"""Reads rows of a Dataverse table: one page in a call, all pages into a file as a job.

A job keeps what it has read, and where it is, in its checkpoint: when its worker is lost, the next attempt goes
on behind the last page that was kept.
"""

from __future__ import annotations

import asyncio
import csv
import functools
import io
import json
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote

from shared.apis import dataverseAPI
from shared.apis.pages import Page, Rows
from shared.tool import Context, ToolError

#: Rows of one page: in a call an agent reads them all, as a job nobody does.
CALL_PAGE = 50
JOB_PAGE = 5_000
#: Characters of a file that are handed to storage at once, about.
PART = 256 * 1024
#: Bytes of rows, or seconds, after which pages are kept for another attempt: small pages go together.
KEEP_BYTES = 64 * 1024
KEEP_SECONDS = 5.0
#: What a service answers that does not know a place in a query any more.
UNKNOWN_PLACE = (400, 404, 410)
FORMATS = {"csv": "text/csv", "jsonl": "application/jsonl"}


async def invokeHeadless(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002, N802
    is_job = context.job_id is not None
    size = input.get("pageSize") or (JOB_PAGE if is_job else CALL_PAGE)
    query = await _query(input, size)
    if is_job:
        return await _to_file(query, input.get("format", "csv"), context)
    async for page in query().pages():
        return {"rowCount": len(page.records), "more": not page.last, "rows": list(map(_plain, page.records))}
    return {"rowCount": 0, "more": False, "rows": []}


async def _query(input: dict[str, Any], size: int) -> Callable[..., Rows]:  # noqa: A002
    """The rows that the input asks for, in pages of `size`; `cursor=`: from there on."""
    ways = [name for name in ("fetchXml", "odata", "entityName") if input.get(name)]
    if len(ways) != 1:
        got = " and ".join(ways) or "none of them"
        raise ToolError(f"give exactly one of fetchXml, odata and entityName, not {got}")
    others = [name for name in ("columns", "filter") if input.get(name) and ways != ["entityName"]]
    if others:
        raise ToolError(f"{' and '.join(others)} belong to entityName, not to {ways[0]}")
    if ways == ["fetchXml"]:
        by_xml: Callable[..., Rows] = dataverseAPI.iterateFetchXml
        return functools.partial(by_xml, input["fetchXml"], pageSize=size)
    by_query: Callable[..., Rows] = dataverseAPI.iterateQuery
    if ways == ["odata"]:
        return functools.partial(by_query, input["odata"], pageSize=size)
    table = input["entityName"]
    columns = input.get("columns")
    if not columns:
        about = await dataverseAPI.getEntityMetadata(table, True, ["PrimaryNameAttribute"])
        columns = [about.PrimaryNameAttribute]
    query = f"{await dataverseAPI.getEntitySetName(table)}?$select={quote(','.join(columns), safe=',')}"
    if input.get("filter"):
        query += f"&$filter={quote(input['filter'], safe='')}"
    return functools.partial(by_query, query, pageSize=size)


@dataclass(slots=True)
class _Done:
    """How far the job is."""

    pages: int = 0
    rows: int = 0
    #: Every column that a row has had.
    columns: dict[str, None] = field(default_factory=dict)
    #: Where the next page begins.
    cursor: str | None = None


async def _to_file(query: Callable[..., Rows], kind: str, context: Context) -> dict[str, Any]:
    """All pages, one at a time, into a file that grows on disk and is stored when it is complete."""
    name = f"{context.tool_name}.{kind}"
    with tempfile.TemporaryFile() as lines:
        done = await _all_pages(query, lines, context)
        lines.seek(0)
        data = _as_csv(lines, done.columns) if kind == "csv" else lines
        link = await asyncio.to_thread(context.artifacts.write, name, data, FORMATS[kind])
    artifact = {"uri": link.uri, "name": name, "mimeType": FORMATS[kind], "size": link.size}
    artifact["url"] = f"/mcp/jobs/{context.job_id}/artifacts/{name}"
    return {"rowCount": done.rows, "more": False, "artifact": artifact}


async def _all_pages(query: Callable[..., Rows], lines: IO[bytes], context: Context) -> _Done:
    """Writes every row as a line of JSON: those that an earlier attempt has kept, then those behind them."""
    done = await asyncio.to_thread(_kept, lines, context)
    while True:
        kept_pages = done.pages
        try:
            await _pages(query(cursor=done.cursor), lines, done, context)
            return done
        except ToolError as error:
            is_refused = done.cursor is not None and done.pages == kept_pages
            if not is_refused or getattr(error, "status", None) not in UNKNOWN_PLACE:
                raise
            context.logger.warn(f"begins anew: the service cannot go on behind page {done.pages}: {error}")
        done = await asyncio.to_thread(_anew, lines, context)


async def _pages(rows: Rows, lines: IO[bytes], done: _Done, context: Context) -> None:
    """The pages, each reported. How many there will be is not known: the percentage only comes near its end."""
    waiting = bytearray()
    is_kept, kept_at = True, time.monotonic()
    async for page in rows.pages():
        waiting += await asyncio.to_thread(_write, page, lines, done)
        context.update_progress(100 - 100 / (done.pages + 1), f"page {done.pages}, {done.rows} rows")
        context.logger.info(f"page {done.pages}: {len(page.records)} rows, {done.rows} in all")
        is_due = len(waiting) >= KEEP_BYTES or time.monotonic() - kept_at >= KEEP_SECONDS
        if is_kept and is_due and not page.last:
            try:
                await asyncio.to_thread(_keep, page, bytes(waiting), done, context)
            except ToolError as error:
                is_kept = False
                context.logger.warn(f"page {done.pages} and those behind it are not kept: {error}")
            kept_at = time.monotonic()
            waiting.clear()
        elif not is_kept:
            waiting.clear()


def _write(page: Page, lines: IO[bytes], done: _Done) -> bytes:
    records = list(map(_plain, page.records))
    written = b"".join(map(_line, records))
    lines.write(written)
    done.pages += 1
    done.rows += len(records)
    done.columns |= dict.fromkeys(column for record in records for column in record)
    return written


def _keep(page: Page, written: bytes, done: _Done, context: Context) -> None:
    """The rows since the last time, with the place behind them."""
    place = {"cursor": page.cursor, "pages": done.pages, "rows": done.rows}
    context.checkpoint.save(place, zlib.compress(written, 1))


def _kept(lines: IO[bytes], context: Context) -> _Done:
    """What an earlier attempt has kept, written into the file."""
    place = context.checkpoint.value
    if place is None:
        return _Done()
    done = _Done(pages=place["pages"], cursor=place["cursor"])
    try:
        for part in context.checkpoint.parts():
            written = zlib.decompress(part)
            lines.write(written)
            records = list(map(json.loads, written.splitlines()))
            done.rows += len(records)
            done.columns |= dict.fromkeys(column for record in records for column in record)
    except (ToolError, zlib.error) as error:
        context.logger.warn(f"begins anew: what an earlier attempt has kept cannot be read: {error}")
        return _anew(lines, context)
    context.logger.info(f"goes on behind page {done.pages}: an earlier attempt has kept {done.rows} rows")
    return done


def _anew(lines: IO[bytes], context: Context) -> _Done:
    context.checkpoint.clear()
    lines.seek(0)
    lines.truncate()
    return _Done()


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
