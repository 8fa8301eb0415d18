"""Imports point one way, down the floors of the house; and the app loads light."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Module prefix -> floor; the longest fitting prefix counts. A module may import its own floor and lower ones.
FLOORS = {
    "shared.account": 0,
    "shared.errors": 0,
    "shared.files": 0,
    "shared.ids": 0,
    "shared.large_json": 0,
    "shared.settings": 0,
    "shared.auth": 0,
    "shared.principal": 0,
    "shared.redaction": 0,
    "shared.storage": 0,
    "shared.telemetry": 0,
    "shared.text": 0,
    "shared.tool": 1,
    "shared.contract": 2,
    "shared.apis": 2,
    "shared.invocations": 2,
    "shared.jobs": 3,
    "shared.incoming": 4,
    "shared.invoke": 4,
    "shared.launching": 5,
    "shared.web": 4,
    "shared.builtin": 4,
    "shared.upstream": 4,
    "shared.lockfile": 5,
    "shared.runtime": 5,
    "shared.startup": 5,
    "shared.toolbox": 5,
    "shared.validate": 5,
    "function_app": 6,
}
#: Too heavy for a cold start: loaded by the first call that needs them, never at load.
HEAVY = (
    "aiohttp", "azure.core", "azure.data", "azure.identity", "azure.storage", "cryptography", "httpx",
    "jsonschema", "mcp", "mcp_types", "msal", "opentelemetry", "requests", "tenacity",
)  # fmt: skip


def modules(*folders: str) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        top = ROOT / folder
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(path: Path) -> set[str]:
    """Every module named in an import statement, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative imports hide where they point"
            found.add(str(node.module))
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def floor_of(module: str) -> int | None:
    fitting = [prefix for prefix in FLOORS if module == prefix or module.startswith(f"{prefix}.")]
    return FLOORS[max(fitting, key=len)] if fitting else None


def test_shared_imports_point_down() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules("shared", "function_app.py")
        for imported in imports_of(path)
        if (own := floor_of(module)) is not None and (other := floor_of(imported)) is not None and other > own
    ]
    assert wrong == []


def test_every_shared_module_has_a_floor() -> None:
    homeless = [module for module, _ in modules("shared") if module != "shared" and floor_of(module) is None]
    assert homeless == []


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("shared", ("tools", "infra", "tests", "function_app")),
        ("infra/local/host", ("shared", "tools", "tests", "function_app", "infra.local.dev")),
        ("tools", ("infra", "tests", "function_app")),
        ("infra", ("tests",)),
    ],
)
def test_packages_keep_away_from_each_other(folder: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules(folder)
        for imported in imports_of(path)
        if any(imported == name or imported.startswith(f"{name}.") for name in forbidden)
    ]
    assert wrong == []


def test_a_tool_sees_only_what_is_made_for_tools() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, path in modules("tools")
        for imported in imports_of(path)
        if imported.startswith("shared") and not imported.startswith(("shared.tool", "shared.apis"))
    ]
    assert wrong == []


def test_loading_the_app_imports_nothing_heavy() -> None:
    """In a fresh process, with all settings present: what is merely imported costs every cold start."""
    script = "import function_app, json, sys; print(json.dumps(sorted(sys.modules)))"
    environment = {
        **os.environ,
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": "some-token",
        "TOOLBOX_SEAL_KEY": "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI=",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    heavy = [name for name in loaded if any(name == top or name.startswith(f"{top}.") for top in HEAVY)]
    assert heavy == []
    assert "azure.functions" in loaded


def test_no_module_stands_in_the_place_of_a_name_for_authors() -> None:
    """`from shared.tool import prompt` would give a module `shared/tool/prompt.py` once that is imported."""
    import shared.tool

    assert {path.stem for path in (ROOT / "shared" / "tool").glob("*.py")} & set(shared.tool.__all__) == set()
