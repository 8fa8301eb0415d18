"""From the lock file to what the triggers call. A tool's code is loaded at its first call."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from shared.contract.entry import Entry
from shared.contract.tool import ContractTool
from shared.errors import DeclarationError
from shared.lockfile.forms import Kind, spec_json, spec_of
from shared.lockfile.reading import LOCK_FILE, ToolsLock
from shared.tool.discovery import BUILT_IN, Declarations, Fault, Found, declared_in
from shared.tool.handler import Handler, ToolEntry
from shared.tool.prompts import DecoratedPrompt
from shared.tool.resources import DecoratedResource
from shared.tool.spec import JsonObject
from shared.upstream.publish import Published

_LOG = logging.getLogger(__name__)

type BuiltIn = Callable[[], Iterable[Callable[..., Any]]]


class LockedTool:
    """A decorated tool that the lock file describes. A `ToolEntry`."""

    def __init__(self, form: JsonObject, find: Callable[[], ToolEntry]) -> None:
        self.spec = spec_of(form)
        self._form = form
        self._find = find
        self._lock = threading.Lock()
        self._entry: ToolEntry | None = None

    def load(self) -> Handler:
        with self._lock:
            if self._entry is None:
                found = self._find()
                if spec_json(found.spec) != self._form:
                    # Its schemas come from what is imported now, which checks by its own.
                    _LOG.warning(
                        "tool '%s' declares something else than %s says: agents see what it said before",
                        self.spec.name,
                        LOCK_FILE,
                    )
                self._entry = found
            return self._entry.load()


class LockedApp:
    """What a lock file holds, as the app uses it. `found` has no resources and prompts: see the methods."""

    def __init__(self, lock: ToolsLock, tools: Path, built_in: BuiltIn, published: Published) -> None:
        """`tools`: the folder of tools; `built_in`: what the app itself offers, asked at the first use."""
        self._tools = tools
        self._built_in = built_in
        self._body = lock.body
        self._specs = lock.specs()
        self._published = published
        upstream = {entry.spec.name: entry for _, entry in published.tools}
        entries = {one["name"]: self._entry(one, upstream) for one in self._body["tools"]}
        self.found = Found(
            tools={name: entry for name, entry in entries.items() if entry is not None},
            faults=tuple(Fault(one["folder"], one["reason"]) for one in self._body["faults"]),
            homes={one["name"]: one["home"] for one in self._body["tools"]},
        )

    def resource(self, name: str) -> DecoratedResource:
        """Imports its folder at the first call. Raises `DeclarationError`."""
        declared = self._declared(self._one("resources", name)["home"])
        return _named([entry for _, entry in declared.resources], "resource", name)

    def prompt(self, name: str) -> DecoratedPrompt:
        """The same for a prompt."""
        one = self._one("prompts", name)
        upstream = one["kind"] == Kind.UPSTREAM
        known = self._published.prompts if upstream else self._declared(one["home"]).prompts
        return _named([entry for _, entry in known], "prompt", name)

    def _entry(self, one: Mapping[str, Any], upstream: Mapping[str, ToolEntry]) -> ToolEntry | None:
        name, home = one["name"], one["home"]
        if one["kind"] == Kind.UPSTREAM:
            # None: the policy, which is the environment's, lets nobody use it.
            return upstream.get(name)
        if one["kind"] == Kind.CONTRACT:
            folder, file = self._tools / home, one["entry"]
            return ContractTool(spec_of(self._specs[name]), folder, file and Entry(file, folder / file))
        return LockedTool(self._specs[name], lambda: self._tool(home, name))

    def _tool(self, home: str, name: str) -> ToolEntry:
        """Raises `DeclarationError` that names the tool, and no path: its caller is told."""
        try:
            declared = self._declared(home)
        except DeclarationError as error:
            raise DeclarationError(f"tool '{name}': {error.message}") from None
        return _named([entry for _, entry in declared.tools], "tool", name)

    def _one(self, kind: str, name: str) -> JsonObject:
        found: JsonObject = next(one for one in self._body[kind] if one["name"] == name)
        return found

    def _declared(self, home: str) -> Declarations:
        """Raises `DeclarationError` where nothing of the folder can be had."""
        if home == BUILT_IN:
            return self._of_the_app
        declared, reasons = declared_in(self._tools.name, home)
        if reasons and not len(declared):
            raise DeclarationError(f"tools/{home}: {'; '.join(reasons)}")
        return declared

    @functools.cached_property
    def _of_the_app(self) -> Declarations:
        declared = Declarations()
        declared.take(BUILT_IN, self._built_in())
        return declared


def _named[E: (ToolEntry, DecoratedResource, DecoratedPrompt)](entries: list[E], kind: str, name: str) -> E:
    for entry in entries:
        if entry.spec.name == name:
            return entry
    raise DeclarationError(f"{kind} '{name}' is in {LOCK_FILE} and not in its folder any more")
