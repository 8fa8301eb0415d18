"""Compiles every module below a folder: `python -I bytecode.py FOLDER`. In a process of its own, so that the
same sources give the same bytes.

The bytecode is of the kind that Python uses without a look at the source (PEP 552, unchecked hash): a package
is replaced as a whole, and deployments set files' times anew, which would void the usual kind.
"""

from __future__ import annotations

import importlib.util
import py_compile
import sys
from pathlib import Path


def compile_below(folder: Path) -> int:
    """How many modules were compiled. One with a syntax error is left out: whoever imports it is told of it."""
    count = 0
    for path in sorted(folder.rglob("*.py")):
        try:
            py_compile.compile(
                str(path),
                cfile=importlib.util.cache_from_source(str(path), optimization=""),
                dfile=str(path.relative_to(folder)),
                doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except py_compile.PyCompileError:
            continue
        count += 1
    return count


if __name__ == "__main__":
    compile_below(Path(sys.argv[1]))
