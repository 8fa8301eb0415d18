"""A configuration taken apart: what can be read of it when one of its entries cannot.

Both readers of text do the same. Only when the whole is refused, each entry of a list of servers, of
`mcpServers` (or `servers`) and of `tools` is read alone. An entry that is broken is left out and told of; what
is wrong around the entries stays the whole text's fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from shared.upstream.config import scan
from shared.upstream.config.faults import shown

#: The keys under which a mapping of servers stands: everybody's, and the one of VS Code.
CONTAINERS: Final = ("mcpServers", "servers")
#: The key of a list of HoloDeck's tools.
TOOLS: Final = "tools"
REPEATED: Final = "there is another entry with this name before it, which stays"


class Gap:
    """The place of a broken entry in a list, so that those after it keep their numbers."""


GAP: Final = Gap()


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """An entry that could not be read, while the text around it could.

    `name`: the server's, None where it has none that can be told. `section`: the key that it stands under,
    empty in a bare list. `kind`: its `type`, if that can be told.
    """

    name: str | None
    place: str
    message: str
    section: str = CONTAINERS[0]
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """`value`: what was read, without the entries in `broken`; in a list, `GAP` stands for each of them."""

    value: Any
    broken: tuple[BrokenEntry, ...] = ()


def sections_of(keys: list[str | None]) -> list[str]:
    """Those of an object's keys whose values hold entries that are read."""
    container = next((key for key in CONTAINERS if key in keys), None)
    return [key for key in (container, TOOLS) if key is not None and key in keys]


def unreadable(name: str | None, place: str, error: ValueError, section: str, kind: str | None) -> BrokenEntry:
    return BrokenEntry(name, place, f"cannot be read; in this entry, {error}", section, kind)


def json_parts(text: str, read: Callable[[str], Any]) -> Document | None:
    """The document of a JSON text that cannot be read as a whole. `read`: text -> value, or `ValueError`.

    None when the brackets do not fit together, or no single entry is to blame.
    """
    whole = scan.outline(text)
    if whole is None:
        return None
    parts = _Parts(read)
    value: Any = parts.of_list(whole.members, "") if whole.is_list else parts.of_object(whole.members)
    return Document(value, (*parts.broken, *parts.around)) if parts.broken else None


class _Parts:
    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read
        self.broken: list[BrokenEntry] = []
        #: What is wrong beside the entries: told when there are broken ones too.
        self.around: list[BrokenEntry] = []

    def of_object(self, members: list[scan.Member]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        sections = sections_of([member.key for member in members])
        for member in members:
            key = member.key or ""
            if key in found:
                self.around.append(BrokenEntry(None, shown(key), "stands twice; the first stays"))
                continue
            inside = scan.outline(member.text) if key in sections else None
            if inside is not None and inside.is_list:
                found[key] = self.of_list(inside.members, key)
            elif inside is not None and key != TOOLS:
                found[key] = self._of_mapping(inside.members, key)
            else:
                try:
                    found[key] = self._read(member.text)
                except ValueError as error:
                    self.around.append(BrokenEntry(None, shown(key), f"cannot be read: {error}"))
        return found

    def of_list(self, members: list[scan.Member], section: str) -> list[Any]:
        found: list[Any] = []
        for index, member in enumerate(members):
            try:
                found.append(self._read(member.text))
            except ValueError as error:
                name, kind = self._text(member, "name"), self._text(member, "type")
                self.broken.append(unreadable(name, f"{section}[{index}]", error, section, kind))
                found.append(GAP)
        return found

    def _of_mapping(self, members: list[scan.Member], section: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for member in members:
            name = member.key or ""
            place = f"{section}.{shown(name)}"
            try:
                value = self._read(member.text)
            except ValueError as error:
                self.broken.append(unreadable(name, place, error, section, self._text(member, "type")))
            else:
                if name in found:
                    self.broken.append(BrokenEntry(name, place, REPEATED, section))
                else:
                    found[name] = value
        return found

    def _text(self, entry: scan.Member, key: str) -> str | None:
        """The text under a key of a broken entry, if the outline of the entry shows one."""
        inside = scan.outline(entry.text)
        texts = {member.text for member in inside.members if member.key == key} if inside is not None else set()
        if len(texts) != 1:
            return None
        try:
            value = self._read(texts.pop())
        except ValueError:
            return None
        return value if isinstance(value, str) else None
