"""The tool folders that a page of the documentation shows, ready to be loaded."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"
_BLOCK = re.compile(r"```python\n# tools/(\w+)/__init__\.py\n(.*?)```", re.DOTALL)


def write_examples(page: str, folder: Path) -> list[str]:
    """Writes each code block that names its file below `folder`. The names of the tool folders."""
    found = _BLOCK.findall((DOCS / page).read_text("utf-8"))
    for name, code in found:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(code, "utf-8")
    return [name for name, _ in found]
