"""What is told of a module that cannot be imported: what kind of error, and where in the tool's own files.

What the error says is for the log: it may hold a path of the machine, or whatever the module was working with.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath


def import_fault(error: BaseException, package: str) -> str:
    """`KeyError in headless.py, line 3`; of a module that is not there, its name.

    `package`: what the tool's own modules are below of.
    """
    kind = type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{kind}: No module named '{error.name.removeprefix(f'{package}.')}'"
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{kind}{_place(error.filename, error.lineno)}"
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if f"{frame.f_globals.get('__name__', '')}.".startswith(f"{package}."):
            return f"{kind}{_place(frame.f_code.co_filename, line)}"
    return kind


def _place(file: str, line: int) -> str:
    return f" in {PurePath(file).name}, line {line}"
