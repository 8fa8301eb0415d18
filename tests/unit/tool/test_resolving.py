"""By which names a tool is found, and which of them comes first."""

from __future__ import annotations

import pytest

from shared.tool.handler import ToolEntry
from shared.tool.resolving import resolver
from shared.upstream.lock import LockedTool, Schemas
from shared.upstream.publish import UpstreamEntry


def entry(name: str, tool_id: str) -> ToolEntry:
    _, server, tool = tool_id.split(":")
    scopes = {"global": Schemas("h", {"type": "object", "properties": {}})}
    return UpstreamEntry(LockedTool(name, server, tool, "", "", scopes, 1_000), None)  # type: ignore[arg-type]


ENTRIES = {
    one.spec.name: one
    for one in (
        entry("docs_read", "mcp:docs:read"),
        entry("docs_READ_2", "mcp:docs:READ"),
        entry("own.read", "mcp:a:b"),
        entry("mcp:c:d", "mcp:e:f"),
        entry("last", "mcp:c:d"),
        entry("named", "mcp:x:late"),
    )
}
ALIASES = {
    "docs.read": "docs_read",
    "docs.READ": "docs_READ_2",
    "own.read": "docs_read",
    "OWN.read": "docs_read",
    "off.tool": "nothing",
    "mcp:a:b": "nothing",
    "mcp:x:late": "docs_read",
}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("docs_read", "docs_read"),
        ("DOCS_read", "docs_read"),
        ("docs.read", "docs_read"),
        ("Docs.Read", "docs_read"),
        ("docs.READ", "docs_READ_2"),
        ("mcp:docs:read", "docs_read"),
        ("mcp:docs:READ", "docs_READ_2"),
        ("MCP:docs:read", None),  # an id is taken as it is written
        # Published first, then other names, then ids.
        ("own.read", "own.read"),
        ("OWN.read", "own.read"),
        ("mcp:c:d", "mcp:c:d"),
        ("mcp:x:late", "docs_read"),
        # A name of no tool hides none.
        ("off.tool", None),
        ("nothing", None),
        ("mcp:a:b", "own.read"),
        ("", None),
    ],
)
def test_names_are_looked_up_in_one_order(name: str, found: str | None) -> None:
    assert resolver(ENTRIES, ALIASES)(name) is (None if found is None else ENTRIES[found])


def test_a_tool_that_comes_later_is_found_too() -> None:
    entries: dict[str, ToolEntry] = {}
    find = resolver(entries, ALIASES)
    assert find("docs.read") is None
    entries.update(ENTRIES)
    assert find("docs.read") is ENTRIES["docs_read"]
