"""Finds decorated tools, resources and prompts: one folder each, each an importable package.

What is declared wrongly is left out with its reason, and so is a folder that cannot be imported; everything
else works, also in the same folder.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from shared.errors import DeclarationError
from shared.tool import prompts, resources
from shared.tool.collecting import collecting, faults_in
from shared.tool.handler import ToolEntry
from shared.tool.import_fault import import_fault
from shared.tool.prompts import DecoratedPrompt
from shared.tool.resources import DecoratedResource

_LOG = logging.getLogger(__name__)
#: A folder with this file is a contract tool's, read by `shared.contract`.
CONTRACT_FILE: Final = "pptb.config.json"
#: The home of what every app offers.
BUILT_IN: Final = "the app itself"
_NO_PACKAGE: Final = (
    "Python cannot import a folder of this name: use letters, digits and _, with a letter first"
)
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a folder, or something in it, is left out."""

    folder: str
    #: For everybody who may know of the app's tools: no path, and nothing that an exception said.
    reason: str
    #: What an exception said, for the log and for whoever develops the tool.
    detail: str = ""

    @property
    def whole(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class Found:
    """What there is by name, and what was left out."""

    tools: dict[str, ToolEntry]
    faults: tuple[Fault, ...]
    resources: dict[str, DecoratedResource] = field(default_factory=dict)
    prompts: dict[str, DecoratedPrompt] = field(default_factory=dict)
    #: Tool name -> the folder it is from.
    homes: dict[str, str] = field(default_factory=dict)
    #: The same for resources and prompts.
    resource_homes: dict[str, str] = field(default_factory=dict)
    prompt_homes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Declarations:
    """Everything declared, each with the folder it is from."""

    tools: list[tuple[str, ToolEntry]] = field(default_factory=list)
    resources: list[tuple[str, DecoratedResource]] = field(default_factory=list)
    prompts: list[tuple[str, DecoratedPrompt]] = field(default_factory=list)

    def take(self, home: str, values: Iterable[object]) -> list[str]:
        """Takes what is decorated among the values, such as a module's globals. What is wrong with them."""
        reasons = []
        # A function may be there under two names.
        for value in {id(value): value for value in values}.values():
            try:
                tool, resource, prompt = _tool_of(value), resources.declared(value), prompts.declared(value)
            except DeclarationError as error:
                reasons.append(error.message)
                continue
            self.tools += [] if tool is None else [(home, tool)]
            self.resources += [] if resource is None else [(home, resource)]
            self.prompts += [] if prompt is None else [(home, prompt)]
        return reasons

    def __len__(self) -> int:
        return len(self.tools) + len(self.resources) + len(self.prompts)


def find_tools(
    folder: Path,
    built_in: Iterable[Callable[..., Any]] = (),
    contracts: Iterable[tuple[str, ToolEntry]] = (),
    contract_faults: Iterable[Fault] = (),
    prompts_from_elsewhere: Iterable[tuple[str, DecoratedPrompt]] = (),
) -> Found:
    """Loads every tool, resource and prompt below `folder`, a package on the import path (`tools/`).

    `built_in`: decorated functions of the app's own, whose names and uris nobody else can take. `contracts`,
    `contract_faults`, `prompts_from_elsewhere`: what a higher floor has found by itself, with its homes (for
    contracts, the folders that hold them).
    """
    declared = Declarations()
    faults: list[Fault] = [*contract_faults]
    declared.take(BUILT_IN, built_in)
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if (path / CONTRACT_FILE).exists():
            continue
        if not (path / "__init__.py").is_file() or path.name.startswith(("_", ".")):
            continue
        if not _PACKAGE.fullmatch(path.name):
            faults.append(Fault(path.name, _NO_PACKAGE))
            continue
        faults += _load(declared, folder.name, path.name)
    tools, tool_clashes = unique(
        "tool", [*declared.tools, *contracts], lambda entry: {"name": entry.spec.function_name.lower()}
    )
    found_resources, resource_clashes = unique("resource", declared.resources, _resource_marks)
    all_prompts = [*declared.prompts, *prompts_from_elsewhere]
    found_prompts, prompt_clashes = unique("prompt", all_prompts, _prompt_marks)
    faults += [*tool_clashes, *resource_clashes, *prompt_clashes]
    for fault in faults:
        _LOG.error("tools/%s: left out: %s", fault.folder, fault.whole)
    return Found(
        tools,
        tuple(faults),
        found_resources,
        found_prompts,
        # The first of a name is the one that stands.
        {entry.spec.name: home for home, entry in reversed([*declared.tools, *contracts])},
        {entry.spec.name: home for home, entry in reversed(declared.resources)},
        {entry.spec.name: home for home, entry in reversed(all_prompts)},
    )


def declared_in(root: str, name: str) -> tuple[Declarations, list[str]]:
    """What one folder's package declares, and every reason why something in it is left out. Imports it.

    The log has what an exception said.
    """
    declared = Declarations()
    faults = _load(declared, root, name, logging.ERROR)
    return declared, [fault.reason for fault in faults]


def _load(declared: Declarations, root: str, name: str, level: int = logging.DEBUG) -> list[Fault]:
    """Imports a folder's package and takes what is declared there. Every reason why something is left out.

    `level`: of the log line with the traceback of an import that has failed.
    """
    package = f"{root}.{name}"
    before = len(declared)
    module: ModuleType | None = None
    reasons: list[str] = []
    failed: list[Fault] = []
    try:
        with collecting(package):
            module = importlib.import_module(package)
    except DeclarationError as error:
        reasons.append(error.message)
    except (Exception, SystemExit) as error:
        _LOG.log(level, "tools/%s: %s", name, traceback.format_exc())
        told = f"cannot be imported: {import_fault(error, package)}"
        failed.append(Fault(name, told, "" if str(error) in told else str(error)))
    reasons = [*faults_in(package), *reasons]
    if module is not None:
        reasons += declared.take(name, _own(module, root))
        if not reasons and len(declared) == before:
            reasons.append("has no function decorated with @tool, @resource or @prompt in its __init__.py")
    return [*(Fault(name, reason) for reason in reasons), *failed]


def unique[E: (ToolEntry, DecoratedResource, DecoratedPrompt)](
    kind: str, entries: Iterable[tuple[str, E]], marks_of: Callable[[E], dict[str, str]]
) -> tuple[dict[str, E], list[Fault]]:
    """The entries by name. One with a mark (a name, a uri) that stands already is a fault: the host would not
    start.
    """
    kept: dict[str, E] = {}
    home: dict[tuple[str, str], str] = {}
    faults: list[Fault] = []
    for folder, entry in entries:
        marks = marks_of(entry)
        clash = next((mark for mark in marks.items() if mark in home), None)
        if clash is None:
            home.update(dict.fromkeys(marks.items(), folder))
            kept[entry.spec.name] = entry
        else:
            verb = "rename" if clash[0] == "name" else "change"
            which = "it" if home[clash] == BUILT_IN else "either"
            what = f"its {kind} '{entry.spec.name}' has the {clash[0]} of one in '{home[clash]}'"
            faults.append(Fault(folder, f"{what}; {verb} {which}"))
    return kept, faults


def _own(module: ModuleType, root: str) -> list[object]:
    """What a folder's module holds, but for functions that it imported from another tool's folder."""
    own = f"{module.__name__}."

    def foreign(value: object) -> bool:
        home = f"{getattr(value, '__module__', '') or ''}."
        return home.startswith(f"{root}.") and not home.startswith(own)

    return [value for value in vars(module).values() if not foreign(value)]


def _resource_marks(entry: DecoratedResource) -> dict[str, str]:
    # Functions are told apart by names without case, and with `_` for what a function's name cannot hold.
    return {"name": entry.spec.function_name.lower(), "uri": entry.spec.uri.shape}


def _prompt_marks(entry: DecoratedPrompt) -> dict[str, str]:
    return {"name": entry.spec.function_name.lower()}


def _tool_of(value: object) -> ToolEntry | None:
    # `@tool` needs pydantic. Where nothing has loaded it, nothing is decorated with it.
    decorator = sys.modules.get("shared.tool.decorator")
    found: ToolEntry | None = None if decorator is None else decorator.declared(value)
    return found
