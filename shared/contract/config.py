"""What a tool's folder declares: its contract (`pptb.config.json`) and its package's metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shared.contract.findings import Findings, shown, step
from shared.contract.reading import read_json, read_toml
from shared.tool.spec import ExecutionMode, Isolation, JsonObject, Mode

PACKAGE_FILE: Final = "package.json"
PYPROJECT_FILE: Final = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Invocation:
    """What a call takes and gives. The schemas are ready for use: root `type: object`, draft 2020-12."""

    version: str
    capabilities: tuple[str, ...] = ()
    #: JSON Schema of the arguments; None: not declared.
    prefill: JsonObject | None = None
    #: JSON Schema of the result; None: not declared.
    return_topic: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class WindowRules:
    """What windows of the tool may do, and for how long."""

    #: How long one waits for a person; None: `agents.timeoutMS`, else the app's setting.
    timeout_ms: int | None = None
    #: Methods of the APIs that the page may call beside those that read.
    api_methods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agents:
    """How agents may call the tool. None: not declared."""

    version: str
    invokable: bool = False
    modes: tuple[Mode, ...] = (Mode.TWO_WAY,)
    default_mode: Mode | None = None
    timeout_ms: int | None = None
    headless: bool | None = None
    #: Empty: declared, and none of it is legal.
    execution_modes: tuple[ExecutionMode, ...] | None = None
    default_execution_mode: ExecutionMode | None = None
    #: As written: a path inside the tool's folder.
    headless_entry: str | None = None
    #: The last four are this product's own.
    max_attempts: int | None = None
    isolation: Isolation = Isolation.THREAD
    idempotent: bool | None = None
    window: WindowRules | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """A whole `pptb.config.json`. Where something was illegal, an error says so and the default stands here."""

    invocation: Invocation | None = None
    agents: Agents | None = None


@dataclass(frozen=True, slots=True)
class Main:
    """An entry file that a package names, and where it does."""

    file: str
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class Package:
    """Metadata of a tool's package. package.json wins over pyproject.toml, the folder's name comes last.

    - `tool_id`: package.json `name`, `[project] name`
    - `display_name`: package.json `displayName`, `[tool.toolbox] displayName`
    - `description`: package.json, `[project]`
    - `mains`: `[tool.toolbox] main`, and package.json `main` when it names a `.py` file; in that order
    """

    tool_id: str
    display_name: str
    #: Where the display name stands, for a fault that asks to change it.
    display_name_from: str
    description: str | None = None
    mains: tuple[Main, ...] = ()


def read_package(folder: Path, found: Findings) -> Package:
    """Never fails: what cannot be used is a finding."""
    npm = _Texts({}, found.of(PACKAGE_FILE), "$")
    if (folder / PACKAGE_FILE).exists():
        npm.table = read_json(folder, PACKAGE_FILE, npm.found) or {}
    pyproject: JsonObject = {}
    python_found = found.of(PYPROJECT_FILE)
    if (folder / PYPROJECT_FILE).exists():
        pyproject = read_toml(folder, PYPROJECT_FILE, python_found) or {}
    project = _Texts(_table(pyproject, "project"), python_found, "$.project")
    own = _Texts(_table(_table(pyproject, "tool"), "toolbox"), python_found, "$.tool.toolbox")

    display_name, source = npm.text("displayName"), f"{PACKAGE_FILE} displayName"
    if display_name is None:
        display_name, source = own.text("displayName"), f"{PYPROJECT_FILE} [tool.toolbox] displayName"
    if display_name is None:
        display_name, source = folder.name, f"the folder's name, or {PACKAGE_FILE} displayName"
    mains = []
    python_main, npm_main = own.text("main"), npm.text("main")
    if python_main is not None:
        mains.append(Main(PYPROJECT_FILE, "$.tool.toolbox.main", python_main))
    # Most packages name a page or a script there, which is no entry of ours.
    if npm_main is not None and npm_main.strip().endswith(".py"):
        mains.append(Main(PACKAGE_FILE, "$.main", npm_main))
    return Package(
        tool_id=(npm.text("name") or "").strip() or (project.text("name") or "").strip() or folder.name,
        display_name=display_name,
        display_name_from=source,
        description=(npm.text("description") or "").strip()
        or (project.text("description") or "").strip()
        or None,
        mains=tuple(mains),
    )


def _table(document: JsonObject, name: str) -> JsonObject:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class _Texts:
    """Texts of one table; another kind of value is an error."""

    table: dict[str, Any]
    found: Findings
    path: str

    def text(self, name: str) -> str | None:
        value = self.table.get(name)
        if value is None or isinstance(value, str):
            return value
        self.found.error(step(self.path, name), f"must be a string, got {shown(value)}")
        return None
