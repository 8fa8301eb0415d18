"""From a folder with a `pptb.config.json` to a tool of the app.

Read when the app loads: nothing heavy is imported for it, and no code of the tool's runs. A folder with an
error gives no tool; all of its findings are told at once.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from shared.contract import execution, loading, names, schemas
from shared.contract.config import Agents, Contract, Package, read_package
from shared.contract.entry import Entry, docstring, find_entry, foreign_entry
from shared.contract.findings import CONFIG_FILE, Finding, Findings, Severity
from shared.contract.handler import make_handler
from shared.contract.reading import read_json
from shared.contract.validation import LONGEST_TIMEOUT_MS, check_document, is_hidden
from shared.errors import DeclarationError, ResultError, ToolError
from shared.tool.context import Context
from shared.tool.discovery import Fault
from shared.tool.handler import Handler, ToolEntry
from shared.tool.result import ToolResult
from shared.tool.spec import (
    REPEATABLE_ATTEMPTS,
    ExecutionMode,
    Isolation,
    JsonObject,
    RunRules,
    ToolAnnotations,
    ToolSpec,
    returns_data,
)
from shared.tool.validation import kind_of


class ContractTool:
    """A tool that its contract describes. A `ToolEntry`: its entry is loaded at the first call."""

    def __init__(self, spec: ToolSpec, folder: Path, entry: Entry | None) -> None:
        self.spec = spec
        self.entry = entry
        self.folder = folder
        self._lock = threading.Lock()
        self._handler: Handler | None = None

    @property
    def page(self) -> Path | None:
        """The folder of its page's files; None: it has no window."""
        return (self.folder / execution.PAGE).parent if self.spec.rules.has_window else None

    def check_returned(self, data: object) -> ToolResult:
        """What a window gave, checked against `returnTopic`. Raises `ResultError` with every fault.

        Its entry is not loaded for it.
        """
        if not isinstance(data, dict):
            raise ResultError(f"returnData: expected object, got {kind_of(data)}")
        return make_handler(self.spec, _no_entry).finish(data)

    def load(self) -> Handler:
        """The handler, made once per process. Raises `DeclarationError` that names the tool and its file."""
        with self._lock:
            if self._handler is None:
                if self.entry is None:
                    self._handler = make_handler(self.spec, _no_entry)
                elif self.spec.rules.runs_apart_only:
                    # What its module does when it is imported is kept out of this process too.
                    self._handler = make_handler(self.spec, _elsewhere)
                else:
                    function = loading.load_entry(self.spec.name, self.entry)
                    self._handler = make_handler(self.spec, function)
            return self._handler


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one folder. `tool` is None with an error, and for a contract that exposes nothing."""

    folder: str
    tool: ContractTool | None
    findings: tuple[Finding, ...]

    def texts(self, *severities: Severity) -> list[str]:
        return [str(finding) for finding in self.findings if finding.severity in severities]

    @property
    def errors(self) -> list[str]:
        return self.texts(Severity.ERROR)


class Contracts(NamedTuple):
    """What came of all folders: tools with their folder's name, and per folder what is to be said."""

    entries: list[tuple[str, ToolEntry]]
    #: Folders that are left out; one fault each, with all of its errors.
    faults: list[Fault]
    #: Warnings and notes, of folders that work and of such that expose nothing.
    warnings: list[Fault]


def find_contracts(
    folder: Path, *, max_timeout_ms: int = LONGEST_TIMEOUT_MS, strict: bool = False
) -> Contracts:
    """The contract tools below `folder` (`tools/`): every folder there with a `pptb.config.json`.

    `strict`: schemas are shown to jsonschema too, which a cold start is spared.
    """
    contracts = Contracts([], [], [])
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if not is_contract_folder(path):
            continue
        checked = check_contract(path, max_timeout_ms=max_timeout_ms, strict=strict)
        if checked.errors:
            contracts.faults.append(Fault(path.name, "; ".join(checked.errors)))
        elif checked.tool is not None:
            contracts.entries.append((path.name, checked.tool))
        told = checked.texts(Severity.WARNING, Severity.NOTE)
        contracts.warnings.extend(Fault(path.name, text) for text in told)
    return contracts


def is_contract_folder(path: Path) -> bool:
    return path.is_dir() and ((path / CONFIG_FILE).exists() or (path / CONFIG_FILE).is_symlink())


def check_contract(folder: Path, *, max_timeout_ms: int = LONGEST_TIMEOUT_MS, strict: bool = False) -> Checked:
    """Reads and checks one folder. Never raises for what stands in it."""
    found = Findings()
    document = read_json(folder, CONFIG_FILE, found)
    tool = None
    if document is not None:
        contract = check_document(document, found, max_timeout_ms=max_timeout_ms)
        tool = _tool(folder, document, contract, found)
        if strict and contract.invocation is not None:
            for key, schema in (
                ("prefill", contract.invocation.prefill),
                ("returnTopic", contract.invocation.return_topic),
            ):
                if schema is not None:
                    schemas.check_meta(schema, f"$.invocation.{key}", found)
    return Checked(folder.name, None if found.error_count else tool, found.all)


def _tool(folder: Path, document: JsonObject, contract: Contract, found: Findings) -> ContractTool | None:
    agents = contract.agents
    if agents is None or is_hidden(document):
        return None
    package = read_package(folder, found)
    before = found.error_count
    entry = None
    # An entry of the wrong kind is an error already; no other one is to take its place.
    if agents.headless_entry is not None or "headlessEntry" not in document["agents"]:
        entry = find_entry(folder, agents.headless_entry, package, found)
    is_faulty = found.error_count > before or (entry is None and "headlessEntry" in document["agents"])
    around = execution.Folder(
        has_entry=entry is not None or is_faulty,
        has_page=_has_page(folder),
        foreign_entry=foreign_entry(folder),
    )
    executions = execution.execution_modes(agents, around, found)
    name = ""
    try:
        name = names.tool_name(package.display_name, package.display_name_from)
    except DeclarationError as error:
        found.error("$", error.message)
    if found.error_count or executions is None:
        return None
    if agents.isolation is Isolation.PROCESS and ExecutionMode.HEADLESS not in executions[0]:
        found.warn("$.agents.isolation", "'process' has no effect", "only headless runs have a process")
    return ContractTool(_spec(name, package, contract, agents, executions, entry, found), folder, entry)


def _spec(
    name: str,
    package: Package,
    contract: Contract,
    agents: Agents,
    executions: tuple[tuple[ExecutionMode, ...], ExecutionMode],
    entry: Entry | None,
    found: Findings,
) -> ToolSpec:
    annotations = ToolAnnotations(idempotent=agents.idempotent)
    assumed_attempts = REPEATABLE_ATTEMPTS if annotations.repeatable else 1
    rules = RunRules(
        modes=agents.modes,
        default_mode=agents.default_mode,
        execution_modes=executions[0],
        default_execution_mode=executions[1],
        timeout_ms=agents.timeout_ms,
        max_attempts=agents.max_attempts or assumed_attempts,
        isolation=agents.isolation,
        window_timeout_ms=agents.window.timeout_ms if agents.window else None,
        window_methods=agents.window.api_methods if agents.window else (),
    )
    invocation = contract.invocation
    prefill = invocation.prefill if invocation else None
    spec = ToolSpec(
        name=name,
        tool_id=package.tool_id,
        title=package.display_name.strip(),
        description=_description(package, entry, found),
        input_schema={"properties": {}, **(prefill or {"type": "object"})},
        result_schema=invocation.return_topic if invocation else None,
        rules=rules,
        annotations=annotations,
        capabilities=invocation.capabilities if invocation else (),
    )
    has_data = returns_data(spec)
    default = rules.resolve_mode(returns_data=has_data)
    return replace(
        spec, description=names.described(spec.description, rules.modes, default, returns_data=has_data)
    )


def _description(package: Package, entry: Entry | None, found: Findings) -> str:
    text = package.description or (docstring(entry) if entry is not None else None)
    if text:
        return text
    found.warn(
        "$",
        "the tool has no description, and agents choose by it",
        "give package.json or pyproject.toml a description, or the entry a docstring",
    )
    return package.display_name.strip()


def _has_page(folder: Path) -> bool:
    """Whether its page is there, and inside the folder: a link that leads out of it is never served."""
    page = folder / execution.PAGE
    return page.is_file() and page.resolve().is_relative_to(folder.resolve())


def _elsewhere(arguments: JsonObject, context: Context | None) -> None:
    raise ToolError("This tool runs in a process of its own only.")


def _no_entry(arguments: JsonObject, context: Context | None) -> None:
    raise ToolError("This tool runs in a window only.")
