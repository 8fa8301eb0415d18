"""The toolbox's own app with the tools of a fixture: every trigger of it, as it is deployed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from unittest import mock

from shared import toolbox

ROOT = Path(__file__).resolve().parents[2]


def toolbox_with(tools: Path) -> ModuleType:
    """The module `function_app.py` of the repository, with the tools of another folder; `.app` is the app."""
    spec = importlib.util.spec_from_file_location("toolbox_function_app", ROOT / "function_app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    made = toolbox.Toolbox(tools)
    with mock.patch.object(toolbox, "Toolbox", return_value=made):
        spec.loader.exec_module(module)
    return module
