"""The vectors of Power Platform ToolBox, and tool folders made from their cases.

A case without `defect` holds here in meaning. For each one with `defect` a test module says what is done
instead, in a table by id that must name exactly those cases.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "pptb"


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text("utf-8"))


def cases(name: str) -> list[Any]:
    return list(load(name)["cases"])


def kept(given: Iterable[Any]) -> list[Any]:
    """The cases that hold here too, as parameters."""
    return [pytest.param(case, id=case["id"]) for case in given if "defect" not in case]


def defects(given: Iterable[Any]) -> set[str]:
    return {case["id"] for case in given if "defect" in case}


def write_tool(
    folder: Path,
    config: Any,
    *,
    display_name: str | None = None,
    description: str = "Does one thing.",
    page: bool = False,
    entry: str | None = None,
) -> Path:
    """A tool's folder. `config`: the document, or the raw text of the file, or None for no file."""
    folder.mkdir(parents=True, exist_ok=True)
    if config is not None:
        text = config if isinstance(config, str) else json.dumps(config)
        (folder / "pptb.config.json").write_text(text, "utf-8")
    if display_name is not None:
        package = {"name": folder.name, "displayName": display_name, "description": description}
        (folder / "package.json").write_text(json.dumps(package), "utf-8")
    if page:
        (folder / "ui").mkdir(exist_ok=True)
        (folder / "ui" / "index.html").write_text("<html></html>")
    if entry is not None:
        (folder / "headless.py").write_text(entry, "utf-8")
    return folder
