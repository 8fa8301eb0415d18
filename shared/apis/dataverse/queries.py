"""Queries for rows: FetchXML and OData, one page or all of them."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from shared.apis.dataverse import batch, fetchxml
from shared.apis.dataverse.call import ANNOTATIONS, REPRESENTATION, Call
from shared.apis.dataverse.names import shown
from shared.apis.headers import prefer
from shared.apis.pages import Page, Rows
from shared.apis.record import Record
from shared.apis.urls import relative_url
from shared.errors import DataverseError, ToolError
from shared.text import shape_of

#: Characters of an address that a GET may have; a longer one travels inside of a batch request.
MAX_ADDRESS: Final = 32_000
NEXT_LINK: Final = "@odata.nextLink"


async def fetch_xml_query(call: Call, fetch_xml: str) -> Record:
    """One page: `{"value": [row, …], "@Microsoft.Dynamics.CRM.fetchxmlpagingcookie"?, …}`, with annotations."""
    fetch = fetchxml.parse(fetch_xml)
    return await _fetch(call, fetchxml.entity_of(fetch), fetch_xml.strip(), None)


async def retrieve_multiple(call: Call, fetch_xml: str) -> Record:
    """The same as `fetchXmlQuery`."""
    return await fetch_xml_query(call, fetch_xml)


async def query_data(call: Call, odata_query: str) -> Record:
    """One page of `accounts?$select=name&$filter=…`: `{"value": [row, …], "@odata.nextLink"?}`.

    Rows come with annotations. The query begins with an entity set's name; an `@odata.nextLink` of this
    environment will do as well.
    """
    return await _read(call, relative(call, odata_query), None)


def iterate_fetch_xml(
    call: Call, fetch_xml: str, page_size: int | None = None, cursor: str | None = None
) -> Rows:
    """All rows of a FetchXML query, page by page. `cursor`: from an earlier page, to go on behind it."""
    fetch = fetchxml.parse(fetch_xml)
    entity = fetchxml.entity_of(fetch)
    size = _page_size(page_size)

    async def page(number: int, at: str | None) -> Page:
        current, cookie = _fetch_cursor(at)
        found = await _fetch(call, entity, fetchxml.page(fetch, current, cookie, size), None)
        more = fetch.get("top") is None and found.get(fetchxml.MORE) in (True, "true")
        following = fetchxml.cookie_of(found.get(fetchxml.COOKIE))
        more = more or (following is not None and fetch.get("top") is None and fetchxml.MORE not in found)
        return Page(number, found.get("value", []), f"{current + 1}:{following or ''}" if more else None)

    return Rows(page, cursor)


def iterate_query(
    call: Call, odata_query: str, page_size: int | None = None, cursor: str | None = None
) -> Rows:
    """All rows of an OData query, along its `@odata.nextLink`s. `cursor`: to go on behind an earlier page."""
    first = relative(call, odata_query)
    size = _page_size(page_size)

    async def page(number: int, at: str | None) -> Page:
        found = await _read(call, first if at is None else relative(call, at), size)
        link = found.get(NEXT_LINK)
        return Page(number, found.get("value", []), None if link is None else _next(call, link))

    return Rows(page, cursor)


def relative(call: Call, query: object) -> str:
    """The query as a path below the root, encoded. Raises `ToolError` when it leads anywhere else."""
    if not isinstance(query, str) or not query.strip():
        raise ToolError(f"The query must be a text such as accounts?$select=name, not {shape_of(query)}")
    text = query.strip()
    if text.lower().startswith(call.root.lower()):
        text = text[len(call.root) :]
    path = relative_url(text, "The query")
    if path[:1] in ("", "$", "&", "?"):
        raise ToolError(
            f"The query must begin with an entity set's name, such as accounts?…: not {shown(text)}"
        )
    return path


def _next(call: Call, link: object) -> str:
    """The next page's path. A link to any other place is not followed: the token would go there."""
    if not isinstance(link, str) or not link.lower().startswith(call.root.lower()):
        raise DataverseError(
            "The @odata.nextLink leads to another address than the environment's: not followed"
        )
    return link[len(call.root) :]


async def _fetch(call: Call, entity: str, fetch_xml: str, size: int | None) -> Record:
    table = await call.table(entity)
    return await _read(call, f"{table.entity_set}?fetchXml={quote(fetch_xml, safe='')}", size)


async def _read(call: Call, path: str, size: int | None) -> Record:
    page_size = f"odata.maxpagesize={size}" if size is not None else None
    headers = {"prefer": prefer(REPRESENTATION, ANNOTATIONS, page_size)}
    if len(call.root) + len(path) > MAX_ADDRESS:
        return await batch.read(call, path, headers)
    found: Any = await call.json("GET", path, headers=headers)
    if not isinstance(found, Record):
        raise DataverseError("Dataverse answered a query with something else than rows")
    return found


def _page_size(size: int | None) -> int | None:
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= fetchxml.MAX_PAGE:
        raise ToolError(f"pageSize must be between 1 and {fetchxml.MAX_PAGE}, not {shown(size)}")
    return size


def _fetch_cursor(cursor: str | None) -> tuple[int, str | None]:
    if cursor is None:
        return 1, None
    number, mark, cookie = cursor.partition(":") if isinstance(cursor, str) else ("", "", "")
    if not mark or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ToolError(f"cursor must be one that a page of the same query gave, not {shape_of(cursor)}")
    return int(number), cookie or None
