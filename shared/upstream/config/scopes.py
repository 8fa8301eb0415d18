"""Global and project configuration: names to keys within a scope, then the project's entries over the global
ones.

A project's entry takes the place of the global one with the same key, whole: no field is merged, with one
exception. What the global entry lists in `disabled_tools` stays off, as a project must not widen what the
operator has forbidden. A project's entry that is broken does not bring the global one back: a call meant for
one server would reach another. Source: vectors/agentzero/agentzero-merge.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import ConfigError
from shared.tool.validation import kind_of
from shared.upstream.config.entries import Entry, broken_entries, entries_of
from shared.upstream.config.faults import ConfigFault, ConfigWarning, Notes, Scope, fault_of
from shared.upstream.config.parts import Document
from shared.upstream.config.text import Syntax, read_text
from shared.upstream.names import normalize


@dataclass(frozen=True, slots=True)
class ScopeEntries:
    """The entries of one scope by key, in their order; broken ones too, as long as they have a name."""

    scope: Scope
    entries: Mapping[str, Entry] = field(default_factory=dict)
    faults: tuple[ConfigFault, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """One entry of the effective configuration. `disabled_tools`: off in the global entry below it."""

    key: str
    entry: Entry
    scope: Scope
    disabled_tools: tuple[str, ...] = ()


def read_scope(
    text: str | None, scope: Scope, syntax: Syntax = Syntax.ANY, project: str | None = None
) -> ScopeEntries:
    """The entries in a scope's text; none for a blank text. It does not raise: a fault is a value."""
    whole = Notes()
    document = None
    try:
        document = read_text(text or "", syntax)
    except ValueError as reason:
        whole.fault("text", f"cannot be read: {reason}")
    found: dict[str, Entry] = {}
    faults = [
        fault_of(error, entry.label, scope, project)
        for entry in _entries(document, whole)
        if (error := _place(entry, found)) is not None
    ]
    return ScopeEntries(
        scope,
        found,
        (*whole.faults_of("", scope, project), *faults),
        whole.warnings_of("", scope, project),
    )


def _entries(document: Document | None, notes: Notes) -> list[Entry]:
    if document is None:
        return []
    # Last, so that a broken entry never takes the name of a sound one.
    return [*entries_of(document.value, notes), *broken_entries(document.broken, notes)]


def _place(entry: Entry, found: dict[str, Entry]) -> ConfigError | None:
    """Puts the entry under its key. What is wrong if that is not possible: an entry that is left out."""
    unnamed = Notes()
    if not isinstance(entry.name, str):
        if entry.broken is not None:
            unnamed.fault(entry.place, entry.broken)
        elif entry.name is None:
            unnamed.fault("name", "a server needs a name; this one has none")
        else:
            unnamed.fault("name", f"must be text, not {kind_of(entry.name)}")
        return unnamed.errors[0]
    try:
        key = normalize(entry.name)
    except ConfigError as error:
        return error
    if key not in found:
        found[key] = entry
        return None
    if entry.broken is not None:
        unnamed.fault(entry.place, entry.broken)
    else:
        unnamed.fault("name", f"another entry before this one has the same name, which is '{key}' for both")
    return unnamed.errors[0]


def merge(common: ScopeEntries, project: ScopeEntries | None = None) -> list[Merged]:
    """The effective entries: the global ones in their order, a project's in their place or after them."""
    own = dict(project.entries) if project is not None else {}
    merged: list[Merged] = []
    for key, entry in common.entries.items():
        if (over := own.pop(key, None)) is None:
            merged.append(Merged(key, entry, common.scope))
        else:
            merged.append(Merged(key, over, Scope.PROJECT, _disabled_tools(entry)))
    return merged + [Merged(key, entry, Scope.PROJECT) for key, entry in own.items()]


def _disabled_tools(entry: Entry) -> tuple[str, ...]:
    names = entry.body.get("disabled_tools")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
