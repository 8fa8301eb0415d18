"""What a new lock does to the names that an app publishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.upstream.lock import Lock, LockedPrompt, LockedTool


@dataclass(frozen=True, slots=True)
class Change:
    """What a new lock does to a published name."""

    #: `added`, `removed`, `changed`.
    kind: str
    #: The tool's or prompt's qualified name.
    qualified: str
    #: What of it, for a changed one.
    what: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind:<8} {self.qualified}" + (f" ({', '.join(self.what)})" if self.what else "")


def changes(before: Lock, after: Lock) -> list[Change]:
    """What is different, by qualified name."""
    tools = _compared({one.qualified: one for one in before.tools}, {one.qualified: one for one in after.tools})
    old = {one.qualified: one for one in before.prompts}
    prompts = _compared(old, {one.qualified: one for one in after.prompts})
    return sorted([*tools, *prompts], key=lambda one: one.qualified)


def _compared[E: (LockedTool, LockedPrompt)](old: Mapping[str, E], new: Mapping[str, E]) -> list[Change]:
    found = [Change("added", name) for name in new if name not in old]
    found += [Change("removed", name) for name in old if name not in new]
    for name in old.keys() & new.keys():
        what = _different(old[name], new[name])
        if what:
            found.append(Change("changed", name, tuple(what)))
    return found


def _different(old: Any, new: Any) -> list[str]:
    names = type(old).__dataclass_fields__
    return [name.replace("_", " ") for name in names if getattr(old, name) != getattr(new, name)]
