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

from shared import settings as app_settings
from shared.contract.findings import Severity
from shared.contract.tool import check_contract, is_contract_folder
from shared.contract.validation import LONGEST_TIMEOUT_MS
from shared.errors import SettingsError
from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.discovery import Fault, find_tools
from shared.tool.handler import ToolEntry
from shared.tool.references import reference_faults
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
        report.tools = [name for name in report.tools if found.homes.get(name) == only]
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
        for fault in (*_refused(schema), *reference_faults(schema))
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


def _cap() -> int:
    """The app's limit for timeoutMS, as far as its settings can be read here."""
    try:
        return app_settings.load(os.environ).max_timeout_ms
    except SettingsError:
        return LONGEST_TIMEOUT_MS


def _refused(schema: JsonObject) -> list[str]:
    """What the meta-schema says, and patterns that cannot be compiled (its format `regex`)."""
    from jsonschema import Draft202012Validator as Draft

    faults = []
    for error in Draft(Draft.META_SCHEMA, format_checker=Draft.FORMAT_CHECKER).iter_errors(schema):
        said = error.message
        if error.validator == "format" and error.validator_value == "regex":
            said = f"{str(error.instance)[:80]!r} is no regular expression that Python's re can compile"
        faults.append(f"{error.json_path}: {said[:300]}")
    return list(dict.fromkeys(faults))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
