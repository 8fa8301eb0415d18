"""Makes `tools.lock.json`: `python -m shared.lockfile.writing [--packaged] [--root FOLDER]`.

In a process of its own, since it imports every tool. Prints one JSON object: what is in the file, and what is
left out. Exit code 0, also with faults: they are in the file, and each start tells them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from shared import settings as app_settings
from shared.builtin import built_in
from shared.contract.tool import ContractTool, find_contracts
from shared.errors import SettingsError
from shared.files import replace_text
from shared.jobs.payload import Sealer
from shared.lockfile.forms import Kind, spec_json
from shared.lockfile.reading import LOCK_FILE, VERSION, Check, names_in
from shared.lockfile.sources import digest
from shared.tool.binding import trigger_fields
from shared.tool.discovery import BUILT_IN, Fault, Found, find_tools
from shared.tool.handler import ToolEntry
from shared.tool.prompts import DecoratedPrompt, PromptSpec
from shared.tool.resources import ResourceSpec
from shared.tool.spec import ExecutionMode, JsonObject, ToolSpec
from shared.toolbox import binding_of
from shared.upstream import publish
from shared.upstream.lock import LOCK_FILE as UPSTREAM_LOCK_FILE
from shared.upstream.lock import LockedPrompt
from shared.upstream.names import canonical
from shared.upstream.policy import Policy
from shared.upstream.publish import Published, UpstreamEntry


def lock_of(tools: Path, check: Check, max_timeout_ms: int) -> JsonObject:
    """The file's content for a folder of tools, which is imported. Logs nothing but what tools log."""
    contracts = find_contracts(tools, max_timeout_ms=max_timeout_ms)
    # Which upstream tools a policy lets nobody use is the environment's to say, at each start.
    published = publish.published(tools.parent / UPSTREAM_LOCK_FILE, Policy(), _NoCaller())
    found = find_tools(
        tools,
        built_in(lambda: (), _nothing, Sealer(()), _nothing),
        [*contracts.entries, *published.tools],
        [*contracts.faults, *published.faults],
        published.prompts,
    )
    return {
        "version": VERSION,
        "check": check,
        "sources": (names_in if check == "names" else digest)(str(tools.parent), tools.name),
        "assumes": {"maxTimeoutMs": max_timeout_ms, "settings": _settings_in_names()},
        "faults": [_told(fault) for fault in found.faults],
        "warnings": [_told(warning) for warning in contracts.warnings],
        **_entries(found, published),
    }


def write(path: Path, lock: Mapping[str, Any]) -> None:
    """At once or not at all. The same lock always gives the same bytes."""
    first = {key: value for key, value in lock.items() if key not in ("bindings", "specs")}
    lines = [_text(first), *lock["bindings"], _text(lock["specs"])]
    replace_text(path, "".join(f"{line}\n" for line in lines))


def _entries(found: Found, published: Published) -> JsonObject:
    upstream = {prompt.name: prompt for prompt in published.lock.prompts}
    from_servers = {id(entry) for _, entry in published.prompts}
    return {
        "specs": {name: spec_json(entry.spec) for name, entry in found.tools.items()},
        "bindings": [
            *(binding_of("tool", {**trigger_fields(entry.spec)}) for entry in found.tools.values()),
            *(binding_of("resource", {**entry.spec.trigger_fields()}) for entry in found.resources.values()),
            *(binding_of("prompt", {**entry.spec.trigger_fields()}) for entry in found.prompts.values()),
        ],
        "tools": [_tool(entry, found.homes[name]) for name, entry in found.tools.items()],
        "resources": [
            _one(_kind(found.resource_homes[name]), found.resource_homes[name], entry.spec)
            for name, entry in found.resources.items()
        ],
        "prompts": [
            _prompt(entry, found.prompt_homes[name], upstream[name] if id(entry) in from_servers else None)
            for name, entry in found.prompts.items()
        ],
    }


def _tool(entry: ToolEntry, home: str) -> JsonObject:
    spec = entry.spec
    as_job = spec.rules.execution_modes != (ExecutionMode.INLINE,)
    body = {**_one(_kind(home), home, spec), "asJob": as_job}
    if isinstance(entry, ContractTool):
        return body | {"kind": Kind.CONTRACT, "entry": entry.entry and entry.entry.file}
    if isinstance(entry, UpstreamEntry):
        return body | {"kind": Kind.UPSTREAM, "canonical": canonical(entry.locked.server, entry.locked.tool)}
    return body


def _prompt(entry: DecoratedPrompt, home: str, upstream: LockedPrompt | None) -> JsonObject:
    body = _one(_kind(home), home, entry.spec)
    if upstream is None:
        return body
    return body | {"kind": Kind.UPSTREAM, "canonical": canonical(upstream.server, upstream.prompt)}


def _one(kind: Kind, home: str, spec: ToolSpec | ResourceSpec | PromptSpec) -> JsonObject:
    return {"kind": kind, "home": home, "name": spec.name, "function": spec.function_name}


def _kind(home: str) -> Kind:
    return Kind.BUILT_IN if home == BUILT_IN else Kind.DECORATED


def _settings_in_names() -> dict[str, str | None]:
    # Known to the decorator, which built-in tools have loaded.
    from shared.tool.decorator import settings_in_names

    return dict(sorted(settings_in_names.items()))


def _told(fault: Fault) -> JsonObject:
    return {"folder": fault.folder, "reason": fault.reason}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _nothing() -> NoReturn:
    raise AssertionError("no tool is called here")


class _NoCaller:
    """A `Caller`: nothing is called while a lock file is made."""

    async def call(self, *_: Any) -> NoReturn:
        _nothing()

    async def prompt(self, *_: Any) -> NoReturn:
        _nothing()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m shared.lockfile.writing")
    parser.add_argument(
        "--packaged", action="store_true", help="for a package: names are checked, not contents"
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the app's folder (default: this one)")
    options = parser.parse_args(argv)
    logging.disable()
    # Tools are imported, and may print; the last line of stdout is ours.
    try:
        timeout = app_settings.load(os.environ, options.root / "host.json").max_timeout_ms
    except SettingsError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    root = options.root.resolve()
    sys.path.insert(0, str(root))
    lock = lock_of(root / "tools", "names" if options.packaged else "content", timeout)
    write(root / LOCK_FILE, lock)
    counts = {kind: len(lock[kind]) for kind in ("tools", "resources", "prompts")}
    told = {**counts, "faults": lock["faults"], "settings": list(lock["assumes"]["settings"])}
    sys.stdout.write(f"\n{json.dumps(told)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
