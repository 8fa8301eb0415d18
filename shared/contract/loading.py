"""Loads a tool's headless entry, once per process, with the files beside it.

`import helpers` in an entry, or in a file beside it, also inside a function, means the `helpers.py` beside it,
as in a script; another tool has another one. Each entry's folder is a private package
(`toolbox_contracts.NAME`) in `sys.modules`, and its modules have builtins of their own whose `__import__` looks
beside the entry first. Nothing is put on `sys.path`, no name without the private prefix enters `sys.modules`,
and no other code's imports change. Python's own import locks make it safe between threads. What goes past the
import statement (`importlib.import_module("helpers")`) does not find the file: import it with a statement.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import importlib
import logging
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from shared.contract.entry import Entry
from shared.contract.exports import find_export
from shared.errors import DeclarationError
from shared.tool.import_fault import import_fault

_LOG = logging.getLogger(__name__)

ROOT: Final = "toolbox_contracts"


class _Home:
    """The folder of an entry: a private package whose modules see each other by their plain names."""

    def __init__(self, package: str, folder: Path) -> None:
        self.package = package
        # The APIs are names of every module here, as they are globals in the original; loaded with the tool.
        from shared.apis.globals import api_globals

        self.builtins = {**vars(builtins), "__import__": self._import, **api_globals()}
        self.names = frozenset(
            path.stem
            for path in folder.iterdir()
            if (path.suffix == ".py" and path.is_file()) or (path / "__init__.py").is_file()
        )
        #: Module name -> file, for entries: a package of the same name beside one does not take its place.
        self.entries: dict[str, str] = {}

    def loader(self, name: str, path: str) -> SourceFileLoader:
        return _Loader(self, name, path)

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        head = name.partition(".")[0]
        if level or head not in self.names:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        private = f"{self.package}.{name}"
        if fromlist:
            return builtins.__import__(private, globals, locals, fromlist, 0)
        importlib.import_module(private)
        return sys.modules[f"{self.package}.{head}"]


class _Loader(SourceFileLoader):
    def __init__(self, home: _Home, name: str, path: str) -> None:
        super().__init__(name, path)
        self._home = home

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._home.builtins
        super().exec_module(module)


class _Finder(MetaPathFinder):
    """Answers for names below `ROOT` only."""

    def __init__(self) -> None:
        self.homes: dict[str, _Home] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{ROOT}."):
            return None
        home = self.homes.get(".".join(fullname.split(".")[:2]))
        if home is None:
            return None
        if fullname in home.entries:
            file = home.entries[fullname]
            return spec_from_file_location(fullname, file, loader=home.loader(fullname, file))
        for folder in path or ():
            # Any callable of (name, path) will do as a loader's class.
            finder = FileFinder(folder, (home.loader, [".py"]))  # type: ignore[arg-type]
            spec = finder.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None


_finder = _Finder()
_lock = threading.Lock()


def load_entry(tool: str, entry: Entry) -> Callable[..., Any]:
    """The entry's function of (input, context).

    Raises `DeclarationError` that names the tool, the file as it stands in the tool's folder, and what kind of
    error there was: never a path of the machine. The log has the rest. An entry that failed is tried again by
    the next call, as Python does with any module.
    """
    package = _package_name(entry.path.parent)
    what = f"tool '{tool}': {entry.file}"
    try:
        _make_package(package, entry.path)
        module = importlib.import_module(f"{package}.{entry.path.stem}")
    except (Exception, SystemExit) as error:
        _LOG.error("%s cannot be loaded", what, exc_info=True)
        raise DeclarationError(f"{what} cannot be loaded: {import_fault(error, package)}") from error
    try:
        return find_export(module)
    except DeclarationError as error:
        raise DeclarationError(f"{what} {error.message}") from None


@functools.cache
def _package_name(folder: Path) -> str:
    digest = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    readable = re.sub(r"[^A-Za-z0-9_]", "_", folder.name if folder.name != "dist" else folder.parent.name)
    return f"{ROOT}.{readable}_{digest}"


def _make_package(name: str, entry: Path) -> None:
    """Makes the private package around an entry's folder at its first use."""
    folder = entry.parent
    with _lock:
        if ROOT not in sys.modules:
            sys.modules[ROOT] = _package(ROOT, [])
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        if name not in _finder.homes:
            _finder.homes[name] = _Home(name, folder)
            sys.modules[name] = _package(name, [str(folder)])
        _finder.homes[name].entries[f"{name}.{entry.stem}"] = str(entry)


def _package(name: str, path: list[str]) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = path
    return module
