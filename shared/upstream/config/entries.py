"""The forms that a configuration may have -> one kind of entry.

{"mcpServers": {"docs": {…}}}      the key is the name, whatever the entry says
{"mcpServers": [{"name": …}]}      and [{"name": …}], and one such object alone
{"servers": {"docs": {…}}}         as VS Code writes it
tools: [{type: mcp, name: …}]      as HoloDeck's agents have it, YAML or JSON; tools of other types are left out
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from shared.tool.validation import kind_of
from shared.upstream.config.faults import Notes, listed, shown
from shared.upstream.config.fields import KNOWN_KEYS
from shared.upstream.config.parts import CONTAINERS, GAP, TOOLS, BrokenEntry

#: HoloDeck's other kinds of tools.
_OTHER_TOOLS: Final = ("function", "prompt", "skill", "vectorstore", "hierarchical_document")
_LEFT_OUT: Final = "is no `type: mcp` tool and is left out"
_FORMS: Final = "legal are mcpServers, servers, tools, a list of servers, or one server"


class Form(StrEnum):
    """Which rules an entry follows."""

    #: Forgiving: unknown keys are noted, command lines are split, the transport is inferred.
    SERVERS = "mcpServers"
    #: `type: mcp`: exact spellings, no unknown keys, npx, uvx and docker only.
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class Entry:
    """One server as it was written. `name`: None where there is none; `place`: where it stands in the text.

    `broken`: why it is no mapping, or could not be read; then `body` is empty.
    """

    place: str
    form: Form
    name: Any
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    broken: str | None = None

    @property
    def label(self) -> str:
        """What to call it in a fault."""
        name = " ".join(self.name.split()) if isinstance(self.name, str) else ""
        return name or self.place


def entries_of(value: Any, notes: Notes) -> list[Entry]:
    """The entries in a read text. What is wrong with the whole is noted; a broken entry is an entry."""
    if isinstance(value, list):
        return list(_of_list(value, ""))
    if not isinstance(value, dict):
        notes.fault("mcpServers", f"the configuration must be an object or a list, not {kind_of(value)}")
        return []
    if KNOWN_KEYS & value.keys() and not ({*CONTAINERS, TOOLS} & value.keys()):
        return [_entry(value, "the one server", value.get("name"))]
    found: list[Entry] = []
    container = next((key for key in CONTAINERS if key in value), None)
    if container is not None:
        found += _of_container(value[container], container, notes)
    if TOOLS in value:
        found += _of_tools(value[TOOLS], notes)
    elif container is None and value:
        notes.fault("mcpServers", f"unknown form with {listed(sorted(map(shown, value)))}; {_FORMS}")
    if "inputs" in value:
        notes.warn("inputs", "inputs are not asked for here: use ${VAR} and a setting of that name")
    return found


def broken_entries(broken: Iterable[BrokenEntry], notes: Notes) -> Iterator[Entry]:
    """The entries that could not be read, in the form of the place where they stand."""
    for one in broken:
        if one.section == TOOLS and one.kind in _OTHER_TOOLS:
            notes.warn(one.place, _LEFT_OUT)
            continue
        is_tool = one.section == TOOLS or (not one.section and one.kind == "mcp")
        form = Form.TOOLS if is_tool else Form.SERVERS
        yield Entry(one.place, form, one.name, broken=one.message)


def _of_container(value: Any, container: str, notes: Notes) -> Iterator[Entry]:
    if isinstance(value, list):
        yield from _of_list(value, container)
    elif isinstance(value, dict):
        for name, body in value.items():
            yield _entry(body, f"{container}.{shown(name)}", name)
    else:
        notes.fault(
            container, f"must be an object of name -> server, or a list of servers, not {kind_of(value)}"
        )


def _of_list(value: list[Any], container: str) -> Iterator[Entry]:
    for index, body in enumerate(value):
        if body is GAP:
            continue
        place = f"{container}[{index}]"
        if isinstance(body, dict) and set(CONTAINERS) & body.keys():
            inside = listed(sorted(set(CONTAINERS) & body.keys()))
            yield Entry(
                place, Form.SERVERS, None, broken=f"an item of a list is one server; here it holds {inside}"
            )
        else:
            yield _entry(body, place, body.get("name") if isinstance(body, dict) else None)


def _of_tools(value: Any, notes: Notes) -> Iterator[Entry]:
    if not isinstance(value, list):
        notes.fault("tools", f"must be a list of tools, not {kind_of(value)}")
        return
    for index, body in enumerate(value):
        if body is GAP:
            continue
        place = f"tools[{index}]"
        if isinstance(body, dict) and body.get("type") in _OTHER_TOOLS:
            notes.warn(place, _LEFT_OUT)
        else:
            yield _entry(body, place, body.get("name") if isinstance(body, dict) else None, Form.TOOLS)


def _entry(body: Any, place: str, name: Any, form: Form = Form.SERVERS) -> Entry:
    if not isinstance(body, dict):
        return Entry(place, form, name, broken=f"a server must be an object, not {kind_of(body)}")
    if body.get("type") == "mcp" and not place.startswith(CONTAINERS):
        form = Form.TOOLS
    return Entry(place, form, name, body)
