"""Checks a folder of tools and tells every fault at once: `python -m shared.tool.validate [--json] FOLDER`.

Beside what is found whenever tools are loaded, the schemas themselves are checked here against the meta-schema:
that costs too much for a cold start. Exit code 0: no fault; 1: faults; 2: no such folder.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from shared.tool.binding import published_input_schema, published_result_schema
from shared.tool.discovery import Fault, Found, find_tools
from shared.tool.spec import JsonObject, ToolSpec


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


def faults_of(folder: Path) -> tuple[Found, list[Fault]]:
    """The tools below `folder`, and everything that is wrong there."""
    found = find_tools(folder)
    faults = list(found.faults)
    for name, entry in found.tools.items():
        faults += [Fault(name, reason) for reason in schema_faults(entry.spec)]
    return found, faults


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="validate", description="Check a folder of tools.")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("tools"))
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    given = parser.parse_args(arguments)
    folder: Path = given.folder.resolve()
    if not folder.is_dir():
        sys.stderr.write(f"{given.folder} is no folder\n")
        return 2
    logging.disable(logging.CRITICAL)  # the faults are printed below
    sys.path.insert(0, str(folder.parent))
    found, faults = faults_of(folder)
    if given.json:
        listed = [{"folder": fault.folder, "reason": fault.reason} for fault in faults]
        sys.stdout.write(json.dumps({"tools": list(found.tools), "faults": listed}) + "\n")
    else:
        for fault in faults:
            sys.stdout.write(f"{folder.name}/{fault.folder}: {fault.reason}\n")
        sys.stdout.write(f"{len(found.tools)} tool(s), {len(faults)} fault(s)\n")
    return 1 if faults else 0


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
