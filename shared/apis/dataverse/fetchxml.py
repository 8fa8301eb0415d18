"""FetchXML: which table it asks, and which page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Final
from urllib.parse import unquote

from shared.errors import ToolError
from shared.text import shape_of

#: Rows of one page, at most and by default: the service's own limit.
MAX_PAGE: Final = 5000
COOKIE: Final = "@Microsoft.Dynamics.CRM.fetchxmlpagingcookie"
MORE: Final = "@Microsoft.Dynamics.CRM.morerecords"


def parse(text: object) -> ET.Element:
    """The `<fetch>` element. Raises `ToolError` when it is none, or asks no table."""
    if not isinstance(text, str) or not text.strip():
        raise ToolError(
            f"FetchXML must be a text such as <fetch><entity name='account' /></fetch>, not {shape_of(text)}"
        )
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ToolError("FetchXML must not have a document type")
    try:
        fetch = ET.fromstring(text.strip())  # noqa: S314 - entities are refused
    except ET.ParseError as error:
        raise ToolError(f"The FetchXML is not well-formed: {error}") from None
    if fetch.tag != "fetch":
        raise ToolError(f"FetchXML must begin with <fetch>, not <{fetch.tag}>")
    entity_of(fetch)
    return fetch


def entity_of(fetch: ET.Element) -> str:
    entity = fetch.find("entity")
    name = "" if entity is None else entity.get("name", "").strip()
    if not name:
        raise ToolError("The FetchXML names no table: it needs <entity name='…'>")
    return name


def page(fetch: ET.Element, number: int, cookie: str | None, size: int | None) -> str:
    """The query for one page. `top` cannot be combined with pages and makes it the only one."""
    if fetch.get("top") is not None:
        return ET.tostring(fetch, encoding="unicode")
    paged = ET.Element("fetch", dict(fetch.attrib))
    paged.extend(fetch)
    if size is not None:
        paged.set("count", str(size))
    elif paged.get("count") is None:
        paged.set("count", str(MAX_PAGE))
    paged.set("page", str(number))
    if cookie:
        paged.set("paging-cookie", cookie)
    return ET.tostring(paged, encoding="unicode")


def cookie_of(annotation: object) -> str | None:
    """The next page's `paging-cookie` from the answer's annotation, whose own text is encoded twice.

    None when there is none that can be read: pages then go by number alone.
    """
    if not isinstance(annotation, str) or "<!" in annotation:
        return None
    try:
        found = ET.fromstring(annotation).get("pagingcookie")  # noqa: S314 - no entities
    except ET.ParseError:
        return None
    return unquote(unquote(found)) if found else None
