"""Checks tools and tells every fault at once: `python -m shared.validate [--json] [PATH]`.

PATH is a folder of tools or one tool's folder. Beside what is found whenever tools are loaded, schemas are
checked here against the meta-schema, their patterns by compiling them, and their references by following them:
that costs too much for a cold start. Nothing is fetched. Warnings do not count as faults.
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
from typing import Final, NoReturn

from shared import settings as app_settings
from shared.builtin import built_in
from shared.contract.findings import Severity
from shared.contract.tool import check_contract, is_contract_folder
from shared.contract.validation import LONGEST_TIMEOUT_MS
from shared.errors import SettingsError
from shared.jobs.payload import Sealer
from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.discovery import BUILT_IN, Fault, find_tools
from shared.tool.handler import ToolEntry
from shared.tool.meta_schema import refused
from shared.tool.references import reference_faults
from shared.tool.spec import JsonObject, ToolSpec
from shared.tool.validation import SchemaCheck

#: The app's folder of tools: never a tool itself, whatever is in it.
TOOLS: Final = "tools"


@dataclass(slots=True)
class Report:
    tools: list[str] = field(default_factory=list)
    built_in: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def check(path: Path) -> Report:
    """Everything that is wrong below `path`, a folder of tools or a tool's own folder."""
    only: str | None = None
    is_package = (path / "__init__.py").is_file() and path.name != TOOLS
    if is_contract_folder(path) or is_package:
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
    # With the app's own, whose names nobody else can take.
    found = find_tools(path, built_in(lambda: (), _no_store, Sealer(()), _no_store), contracts)
    report.faults += found.faults
    for name, entry in found.tools.items():
        if (home := found.homes[name]) != BUILT_IN:
            reasons = schema_faults(entry.spec)
            report.faults += [Fault(home, reason) for reason in reasons]
            # A schema with a fault may check nothing.
            odd = [] if reasons else odd_defaults(entry.spec)
            report.warnings += [Fault(home, reason) for reason in odd]
            report.tools.append(name)
        else:
            report.built_in.append(name)
    if only is not None:
        report.faults = [fault for fault in report.faults if fault.folder == only]
        report.warnings = [warning for warning in report.warnings if warning.folder == only]
        report.tools = [name for name in report.tools if found.homes[name] == only]
    return report


def schema_faults(spec: ToolSpec) -> list[str]:
    """What is wrong with a tool's published schemas, every fault with its JSON path."""
    published: list[tuple[str, JsonObject | None]] = [
        ("input schema", published_input_schema(spec)),
        ("result schema", published_result_schema(spec)),
    ]
    return [
        f"tool '{spec.name}': {what}: {fault}"
        for what, schema in published
        if schema is not None
        for fault in (*refused(schema), *reference_faults(schema))
    ]


def odd_defaults(spec: ToolSpec) -> list[str]:
    """Published defaults that the tool would refuse of a caller. The schema has no fault."""
    root = spec.input_schema
    definitions = root.get("$defs", {})
    described = [
        (name, part)
        for owner in (root, *definitions.values())
        for name, part in (owner.get("properties") or {}).items()
        if isinstance(part, dict) and "default" in part
    ]
    return [
        f"tool '{spec.name}': the default of '{name}' does not fit its schema: {fault}"
        for name, part in described
        for fault in SchemaCheck({**part, "$defs": definitions}).faults(part["default"])
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="validate", description="Check tools.")
    parser.add_argument("path", type=Path, nargs="?", default=Path(TOOLS))
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
            # Names that the app itself has taken.
            "builtIn": report.built_in,
            "faults": [{"folder": fault.folder, "reason": fault.whole} for fault in report.faults],
            "warnings": [{"folder": item.folder, "reason": item.reason} for item in report.warnings],
        }
        sys.stdout.write(json.dumps(body) + "\n")
    else:
        for kind, items in (("error", report.faults), ("warning", report.warnings)):
            for item in items:
                sys.stdout.write(f"{kind:<8} {item.folder}: {item.whole}\n")
        told = f"{len(report.tools)} tool(s), {len(report.faults)} fault(s), {len(report.warnings)} warning(s)"
        sys.stdout.write(told + "\n")
    return 1 if report.faults else 0


def _no_store() -> NoReturn:
    raise SettingsError("nothing is stored here: tools are only looked at")


def _cap() -> int:
    """The app's limit for timeoutMS, as far as its settings can be read here."""
    try:
        return app_settings.load(os.environ).max_timeout_ms
    except SettingsError:
        return LONGEST_TIMEOUT_MS


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
