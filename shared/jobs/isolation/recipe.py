"""How a tool's own process finds the tool's code: told by the worker, which has read the declarations already.

    {kind: "contract", name, toolId, resultSchema, file, path}   the entry's file, see `shared.contract`
    {kind: "decorated", name, module}                            the module whose globals hold it

The process loads this one tool and nothing else of the app: no trigger, no other tool, no Functions library.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import DeclarationError
from shared.tool.handler import Handler, ToolEntry
from shared.tool.import_fault import import_fault
from shared.tool.spec import JsonObject, ToolSpec

if TYPE_CHECKING:
    from shared.contract.tool import ContractTool

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolHomes:
    """Where the app's tools are: the folder of them all, and each one's folder by the tool's name."""

    tools: Path
    folders: Mapping[str, str]


def recipe_of(entry: ToolEntry, homes: ToolHomes | None) -> JsonObject:
    """Raises `DeclarationError` for a tool whose code another process cannot find."""
    from shared.contract.tool import ContractTool

    if isinstance(entry, ContractTool):
        return _of_contract(entry)
    name = entry.spec.name
    folder = None if homes is None else homes.folders.get(name)
    if homes is None or folder is None or not (homes.tools / folder).is_dir():
        raise DeclarationError(f"tool '{name}' is in no folder that a process of its own could load it from")
    return {"kind": "decorated", "name": name, "module": f"{homes.tools.name}.{folder}"}


def load(recipe: JsonObject) -> Handler:
    """In the tool's own process. Raises `DeclarationError`; the app's log has what the tool's module raised."""
    return _load_contract(recipe) if recipe["kind"] == "contract" else _load_decorated(recipe)


def _of_contract(tool: ContractTool) -> JsonObject:
    spec, entry = tool.spec, tool.entry
    if entry is None:
        raise DeclarationError(f"tool '{spec.name}' has no headless entry")
    return {
        "kind": "contract",
        "name": spec.name,
        "toolId": spec.tool_id,
        "resultSchema": spec.result_schema,
        "file": entry.file,
        "path": str(entry.path),
    }


def _load_contract(recipe: JsonObject) -> Handler:
    from shared.contract.entry import Entry
    from shared.contract.handler import make_handler
    from shared.contract.loading import load_entry

    entry = Entry(recipe["file"], Path(recipe["path"]))
    # The input was checked before the job was made.
    spec = ToolSpec(
        name=recipe["name"],
        tool_id=recipe["toolId"],
        title="",
        description="",
        input_schema={"type": "object"},
        result_schema=recipe["resultSchema"],
    )
    return make_handler(spec, load_entry(spec.name, entry))


def _load_decorated(recipe: JsonObject) -> Handler:
    from shared.tool.collecting import collecting
    from shared.tool.decorator import declared

    name, package = recipe["name"], recipe["module"]
    try:
        # As discovery does it: a wrong declaration beside this one is not this one's business.
        with collecting(package):
            module = importlib.import_module(package)
    except (DeclarationError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        _LOG.error("tool '%s' cannot be loaded", name, exc_info=True)
        raise DeclarationError(f"tool '{name}' cannot be loaded: {import_fault(error, package)}") from error
    for value in vars(module).values():
        with contextlib.suppress(DeclarationError):
            entry = declared(value)
            if entry is not None and entry.spec.name == name:
                return entry.load()
    raise DeclarationError(f"tool '{name}' is not in {package} any more")
