"""tools/list and prompts/list: every page, guarded against servers that never stop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import MCPProtocolError
from shared.upstream.connection.limits import LIST_ENTRIES, LIST_PAGES
from shared.upstream.connection.link import ListKind
from shared.upstream.model import UpstreamPrompt, UpstreamTool

#: Asks for one page; `{}` or `{"cursor": …}` are its parameters.
type Fetch = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Listing[T: (UpstreamTool, UpstreamPrompt)]:
    """`remarks`: what was left out, one sentence each."""

    entries: tuple[T, ...]
    remarks: tuple[str, ...] = ()


async def list_all[T: (UpstreamTool, UpstreamPrompt)](
    fetch: Fetch,
    kind: ListKind,
    read: Callable[[object], T | None],
    server: str,
    *,
    pages: int = LIST_PAGES,
    most: int = LIST_ENTRIES,
) -> Listing[T]:
    """All entries in the server's order. A list that cannot be read to its end is a `MCPProtocolError`, never
    half a list. Of entries with one name the first is kept; one without a name is left out; both are remarked
    on."""
    found: dict[str, T] = {}
    twice: dict[str, None] = {}
    nameless = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(pages):
        page = await fetch({} if cursor is None else {"cursor": cursor})
        entries = page.get(kind)
        if not isinstance(entries, list):
            raise MCPProtocolError(f"Server '{server}': {kind}/list answered without a list of {kind}.", server)
        for entry in entries:
            one = read(entry)
            if one is None:
                nameless += 1
            elif one.name in found:
                twice[one.name] = None
            else:
                found[one.name] = one
        if len(found) + nameless + len(twice) > most:
            raise MCPProtocolError(f"Server '{server}' lists more than {most} {kind}.", server)
        cursor = page.get("nextCursor")
        if cursor is None:
            return Listing(tuple(found.values()), tuple(_remarks(kind, twice, nameless)))
        if not isinstance(cursor, str):
            raise MCPProtocolError(
                f"Server '{server}': {kind}/list answered with a cursor that is no text.", server
            )
        if cursor in seen:
            raise MCPProtocolError(
                f"Server '{server}': the pages of {kind}/list go in a circle: a cursor came back.", server
            )
        seen.add(cursor)
    raise MCPProtocolError(f"Server '{server}': {kind}/list has more than {pages} pages.", server)


def _remarks(kind: ListKind, twice: Mapping[str, None], nameless: int) -> list[str]:
    one = kind.removesuffix("s")
    remarks = [f"the {one} '{name}' is listed twice: the first is kept" for name in twice]
    if nameless:
        remarks.append(f"{nameless} {kind} without a usable name are left out")
    return remarks
