"""Reads and writes large JSON so that the rest of the process goes on meanwhile.

`json.loads` and `json.dumps` are one call of C code each. It keeps Python's lock from the first character to
the last, on whichever thread it runs: a second for what a call may bring. Here the same C code is given one
piece after the other, with Python's own steps between them, at which other threads get their turn. What comes
of it is the same.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from shared.large_json import collector
from shared.large_json.reading import Reader
from shared.large_json.writing import written

#: Characters of a text that is read at once, on whichever thread: a hop to another one costs more.
SMALL: Final = 64 * 1024
#: Large texts that are read at a time. What one becomes takes many times its own size in memory.
THREADS: Final = 2

_pool = ThreadPoolExecutor(THREADS, thread_name_prefix="large-json")


async def run[**P, R](function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function that works on something large on a thread of this module's pool."""
    call = functools.partial(function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool, call)


def loads(text: str, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text. Raises `ValueError` and `RecursionError`, as `json.loads` does.

    `parse_constant`: called with `NaN`, `Infinity` and `-Infinity`, which are no JSON.
    """
    if len(text) <= SMALL:
        return json.loads(text, parse_constant=parse_constant)
    with collector.at_rest():
        return Reader(text, json.JSONDecoder(parse_constant=parse_constant)).whole()


def dumps(value: Any) -> str:
    """A value's JSON, compact and not only ASCII."""
    return "".join(written(value))
