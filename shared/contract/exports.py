"""Which function of a loaded entry is called, and whether it can be.

`invokeHeadless`, `invoke_headless`, or a module-level `default` (a function, or an object with one of those
two); the first of them that is there decides. Sync or async, of (input, context).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from shared.errors import DeclarationError
from shared.tool.validation import kind_of

NAMES: Final = ("invokeHeadless", "invoke_headless")
_MISSING = object()


def find_export(module: ModuleType) -> Callable[..., Any]:
    """The entry's function. Raises `DeclarationError` whose text follows the file's name."""
    exported = vars(module)
    for name in NAMES:
        if name in exported:
            return _checked(name, exported[name])
    default = exported.get("default", _MISSING)
    if default is _MISSING:
        raise DeclarationError(
            "does not export invokeHeadless(input, context): define invokeHeadless, invoke_headless or default"
        )
    if not inspect.isroutine(default) and not inspect.isclass(default):
        for name in NAMES:
            method = getattr(default, name, _MISSING)
            if method is not _MISSING:
                return _checked(f"default.{name}", method)
    return _checked("default", default)


def is_async(function: Callable[..., Any]) -> bool:
    # An object may be called through an async method of its class.
    call: object = vars(type(function)).get("__call__")
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _checked(name: str, value: Any) -> Callable[..., Any]:
    if inspect.isclass(value):
        raise DeclarationError(f"exports the class {name}; export a function, or an object of the class")
    if not callable(value):
        raise DeclarationError(f"exports {name} that is no function but {kind_of(value)}")
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        raise DeclarationError(f"exports {name} that is a generator; return one object instead")
    function: Callable[..., Any] = value
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return function  # a builtin that does not say what it takes
    try:
        signature.bind({}, None)
    except TypeError:
        raise DeclarationError(f"exports {name}{signature}, which must take (input, context)") from None
    return function
