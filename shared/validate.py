"""Checks tools and tells every fault at once: `python -m shared.validate [--json] [PATH]`.

PATH is a folder of tools or one tool's folder. Beside what is found whenever tools are loaded, schemas are
checked here against the meta-schema: that costs too much for a cold start. Warnings do not count as faults.
Exit code 0: no fault; 1: faults; 2: no such folder.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from shared import settings as app_settings
from shared.contract.findings import Severity
from shared.contract.tool import check_contract, is_contract_folder
from shared.contract.validation import LONGEST_TIMEOUT_MS
from shared.errors import SettingsError
from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.decorator import declared
from shared.tool.discovery import Fault, find_tools
from shared.tool.handler import ToolEntry
from shared.tool.spec import JsonObject, ToolSpec


@dataclass(slots=True)
class Report:
    tools: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def check(path: Path) -> Report:
    """Everything that is wrong below `path`, a folder of tools or a tool's own folder."""
    only: str | None = None
    if is_contract_folder(path) or (path / "__init__.py").is_file():
        path, only = path.parent, path.name
    report = Report()
    contracts: list[tuple[str, ToolEntry]] = []
    cap = _cap()
    for place in sorted(entry for entry in path.iterdir() if is_contract_folder(entry)):
        checked = check_contract(place, max_timeout_ms=cap, strict=True)
        report.faults += [Fault(place.name, text) for text in checked.texts(Severity.ERROR)]
        told = checked.texts(Severity.WARNING, Severity.NOTE)
        report.warnings += [Fault(place.name, text) for text in told]
        if checked.tool is not None:
            contracts.append((place.name, checked.tool))
    found = find_tools(path, contracts=contracts)
    report.faults += found.faults
    for name, entry in found.tools.items():
        home = found.homes.get(name, name)
        report.faults += [Fault(home, reason) for reason in schema_faults(entry.spec)]
    report.tools = list(found.tools)
    if only is not None:
        report.faults = [fault for fault in report.faults if fault.folder == only]
        report.warnings = [warning for warning in report.warnings if warning.folder == only]
        own = {entry.spec.name for folder, entry in contracts if folder == only} | _names_of(path.name, only)
        report.tools = [name for name in report.tools if name in own]
    return report


def schema_faults(spec: ToolSpec) -> list[str]:
    """What the JSON Schema meta-schema refuses of a tool's published schemas."""
    published: list[tuple[str, JsonObject | None]] = [
        ("input schema", published_input_schema(spec)),
        ("result schema", published_result_schema(spec)),
    ]
    return [
        f"tool '{spec.name}': {what}: {fault}"
        for what, schema in published
        if schema is not None and (fault := _refused(schema))
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="validate", description="Check tools.")
    parser.add_argument("path", type=Path, nargs="?", default=Path("tools"))
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    given = parser.parse_args(arguments)
    path: Path = given.path.resolve()
    if not path.is_dir():
        sys.stderr.write(f"{given.path} is no folder\n")
        return 2
    logging.disable(logging.CRITICAL)  # the faults are printed below
    for entry in (path.parent, path.parent.parent):
        sys.path.insert(0, str(entry))
    report = check(path)
    if given.json:
        body = {
            "tools": report.tools,
            "faults": [{"folder": fault.folder, "reason": fault.reason} for fault in report.faults],
            "warnings": [{"folder": item.folder, "reason": item.reason} for item in report.warnings],
        }
        sys.stdout.write(json.dumps(body) + "\n")
    else:
        for kind, items in (("error", report.faults), ("warning", report.warnings)):
            for item in items:
                sys.stdout.write(f"{kind:<8} {item.folder}: {item.reason}\n")
        told = f"{len(report.tools)} tool(s), {len(report.faults)} fault(s), {len(report.warnings)} warning(s)"
        sys.stdout.write(told + "\n")
    return 1 if report.faults else 0


def _names_of(package: str, folder: str) -> set[str]:
    """The tools that a folder's package declares."""
    module = sys.modules.get(f"{package}.{folder}")
    entries = [declared(value) for value in vars(module).values()] if module is not None else []
    return {entry.spec.name for entry in entries if entry is not None}


def _cap() -> int:
    """The app's limit for timeoutMS, as far as its settings can be read here."""
    try:
        return app_settings.load(os.environ).max_timeout_ms
    except SettingsError:
        return LONGEST_TIMEOUT_MS


def _refused(schema: JsonObject) -> str:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path)
        return f"${where}: {error.message}"
    return ""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
