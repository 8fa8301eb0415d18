"""Finds decorated tools: one folder a tool, each an importable package.

A tool that cannot be loaded is left out with its reason; the others work.
"""

from __future__ import annotations

import importlib
import logging
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shared.errors import DeclarationError
from shared.tool.handler import ToolEntry

_LOG = logging.getLogger(__name__)
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a tool's folder gives no tool."""

    folder: str
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """The tools by name, and the folders that gave none."""

    tools: dict[str, ToolEntry]
    faults: tuple[Fault, ...]


def find_tools(folder: Path) -> Found:
    """Loads every tool below `folder`, a package on the import path (`tools/`)."""
    entries: list[tuple[str, ToolEntry]] = []
    faults: list[Fault] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not (path / "__init__.py").is_file() or not _PACKAGE.fullmatch(path.name):
            continue
        try:
            found = _declared_in(f"{folder.name}.{path.name}")
        except DeclarationError as error:
            faults.append(Fault(path.name, error.message))
        except Exception as error:
            _LOG.debug("%s", traceback.format_exc())
            faults.append(Fault(path.name, f"cannot be imported: {type(error).__name__}: {error}"))
        else:
            entries += [(path.name, entry) for entry in found]
            if not found:
                faults.append(Fault(path.name, "has no function decorated with @tool in its __init__.py"))
    tools, clashes = unique(entries)
    for fault in (*faults, *clashes):
        _LOG.error("tools/%s is left out: %s", fault.folder, fault.reason)
    return Found(tools, (*faults, *clashes))


def unique(entries: Iterable[tuple[str, ToolEntry]]) -> tuple[dict[str, ToolEntry], list[Fault]]:
    """The entries by name. A name that stands already, in any case, is a fault: the host would not start."""
    tools: dict[str, ToolEntry] = {}
    home: dict[str, str] = {}
    faults: list[Fault] = []
    for folder, entry in entries:
        name = entry.spec.name
        if name.lower() in home:
            faults.append(
                Fault(folder, f"its tool '{name}' has the name of one in '{home[name.lower()]}'; rename either")
            )
            continue
        home[name.lower()] = folder
        tools[name] = entry
    return tools, faults


def _declared_in(package: str) -> list[ToolEntry]:
    from shared.tool.decorator import declared

    module = importlib.import_module(package)
    found = {id(entry): entry for value in vars(module).values() if (entry := declared(value)) is not None}
    return list(found.values())
