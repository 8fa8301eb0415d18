"""One tool of many by a name that somebody gave: the only place that says which names a tool answers to.

In this order, so that no name of another server's tool can hide one of the app's own:

1. the name that it is published under, in any case, as the MCP host finds it
2. another name of it, such as a server's qualified `server.tool`, in any case
3. its id, such as `mcp:server:tool`, as it is written

A name whose tool is not published (disabled, or denied to all) is as none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping

from shared.tool.handler import Catalogue, ToolEntry

#: Finds a tool by any name that it may be called by; None: there is no such tool.
type Resolver = Callable[[str], ToolEntry | None]


def resolver(catalogue: Catalogue, aliases: Mapping[str, str] | None = None) -> Resolver:
    """`resolve` among these tools. `aliases`: other names -> the names that are published."""
    return functools.partial(resolve, catalogue, dict(aliases or {}))


def resolve(catalogue: Catalogue, aliases: Mapping[str, str], name: str) -> ToolEntry | None:
    """The tool that is meant. Of names that differ in case only, the one that is written so comes first."""
    own = _any_case(name, catalogue)
    if own is not None:
        return catalogue[own]
    # One whose tool is not published must hide no other.
    known = {other: published for other, published in aliases.items() if published in catalogue}
    other = _any_case(name, known)
    if other is not None:
        return catalogue[known[other]]
    return next((entry for entry in catalogue.values() if entry.spec.tool_id == name), None)


def _any_case(name: str, names: Collection[str]) -> str | None:
    if name in names:
        return name
    wanted = name.lower()
    return next((known for known in names if known.lower() == wanted), None)
