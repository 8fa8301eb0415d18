"""Faults of declarations, collected while a folder of tools is imported, so that one hides nothing else.

A wrong `@tool`, `@resource` or `@prompt` raises where it stands. That would end the import of its module, and
with it the good declarations beside it and the faults after it. Discovery therefore imports inside of
`collecting`: a wrong declaration then leaves its function plain, its fault is kept, and the import goes on.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from shared.errors import DeclarationError

#: The package that is being imported by discovery.
_importing: ContextVar[str | None] = ContextVar("importing", default=None)
#: Module -> faults. They stay as long as the module stays imported: a second discovery must find them too.
_faults: dict[str, list[str]] = {}


class Faults:
    """What is wrong with one declaration, so that all of it is told at once."""

    def __init__(self, prefix: str) -> None:
        #: What every message of the declaration begins with, like `prompt 'review': `.
        self._prefix = prefix
        self._texts: list[str] = []

    def tried[T](self, part: Callable[[], T]) -> T | None:
        """What the part gives; None, with its fault kept, if it raises a `DeclarationError`."""
        try:
            return part()
        except DeclarationError as error:
            self._texts.append(error.message.removeprefix(self._prefix))
            return None

    def add(self, text: str) -> None:
        self._texts.append(text)

    def check(self) -> None:
        """Raises `DeclarationError` if there is any."""
        if self._texts:
            raise DeclarationError(self._prefix + "; ".join(dict.fromkeys(self._texts)))


@contextmanager
def collecting(package: str) -> Iterator[None]:
    """Within, faults of declarations are kept for `faults_in`, not raised. `package`: like `tools.greet`."""
    if package not in sys.modules:
        for module in _modules_of(package):
            del _faults[module]
    token = _importing.set(package)
    try:
        yield
    finally:
        _importing.reset(token)


def faults_in(package: str) -> list[str]:
    """What is wrong with the declarations of a package and of its modules."""
    return list(dict.fromkeys(fault for module in _modules_of(package) for fault in _faults[module]))


def collected[F, O](declare: Callable[[F, O], F]) -> Callable[[F, O], F]:
    """For what a decorator does with a function and its options: its `DeclarationError` is kept or raised."""

    @functools.wraps(declare)
    def declared(target: F, options: O) -> F:
        try:
            return declare(target, options)
        except DeclarationError as error:
            package = _importing.get()
            if package is None:
                raise
            _faults.setdefault(_home_of(target, package), []).append(error.message)
            return target

    return declared


def _home_of(target: Any, package: str) -> str:
    """The module of a function, which may be another tool's that is being imported; else the package."""
    module = getattr(target, "__module__", None)
    root = package.partition(".")[0]
    return module if isinstance(module, str) and module.startswith(f"{root}.") else package


def _modules_of(package: str) -> list[str]:
    return [module for module in _faults if f"{module}.".startswith(f"{package}.")]
