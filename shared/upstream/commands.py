"""`dev.py upstream sync|list|enable|disable`: `python -m shared.upstream.commands ...`.

Exit code 0: all well; 1: a fault, or with `sync --check` a lock that is not what the servers say now; 2: wrong
usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Final

from shared.errors import ToolboxError
from shared.tool.spec import JsonObject
from shared.upstream import editing
from shared.upstream.findings import Fault, Findings, findings_of
from shared.upstream.lock import LOCK_FILE, scope_of
from shared.upstream.settings import APP_ROOT, UpstreamSettings, upstream_settings
from shared.upstream.sync import differs, read_before, sync, write

#: Beside the names that the app itself has taken, prompts of other servers have theirs.
_TOOLS: Final = "tools"


def main(arguments: list[str], root: Path = APP_ROOT) -> int:
    """Does what the command line says, and gives the exit code. `root`: the folder of function_app.py."""
    given = _parser().parse_args(arguments)
    # What is wrong is printed; the log would say it again.
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        settings = upstream_settings(os.environ, root)
        if given.command == "sync":
            return _sync(settings, check=given.check, as_json=given.json)
        if given.command == "list":
            return _list(settings, as_json=given.json)
        return _switch(settings, given.tool, given.project, disabled=given.command == "disable")
    except ToolboxError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 1
    except (OSError, UnicodeEncodeError) as error:
        # Its file is named by its name alone. Half a character can stand in JSON, and in no file.
        name = Path(str(getattr(error, "filename", None) or "a file")).name
        reason = getattr(error, "strerror", None) or "it would hold half a character"
        sys.stderr.write(f"error: {name} cannot be written: {reason}\n")
        return 1
    finally:
        logging.disable(level)


def _sync(settings: UpstreamSettings, *, check: bool, as_json: bool) -> int:
    path = settings.root / LOCK_FILE
    faults: list[Fault] = []
    done = asyncio.run(sync(settings, read_before(path, faults), own_names(settings.root)))
    done.faults[:0] = faults
    changed = differs(path, done.lock)
    if not check:
        write(path, done.lock)
    if as_json:
        _say_json(
            {
                "tools": len(done.lock.tools),
                "prompts": len(done.lock.prompts),
                "changes": [asdict(change) for change in done.changes],
                "faults": [fault._asdict() for fault in done.faults],
                "warnings": [warning._asdict() for warning in done.warnings],
                "written": not check,
            }
        )
    else:
        _say_findings(Findings(done.faults, done.warnings))
        for change in done.changes:
            _say(str(change))
        counts = f"{len(done.lock.tools)} tool(s), {len(done.lock.prompts)} prompt(s) of other servers"
        if check:
            _say(f"{counts}; {LOCK_FILE} {'is out of date' if changed else 'is what the servers say'}")
        else:
            _say(f"{counts} in {LOCK_FILE}; the app publishes them when it starts next")
    return 1 if done.faults or (check and changed) else 0


def _list(settings: UpstreamSettings, *, as_json: bool) -> int:
    """What is configured and what is locked. Asks no server."""
    from shared.upstream.config.loading import load_all

    faults: list[Fault] = []
    locked = read_before(settings.root / LOCK_FILE, faults)
    everything = load_all(settings, refresh=True)
    found = findings_of(everything)
    found.faults[:0] = faults
    servers: list[JsonObject] = []
    for project, loaded in everything.items():
        scope = scope_of(project)
        for config in loaded.servers.values():
            if config.project == project:
                tools = [one for one in locked.tools if one.server == config.key and scope in one.scopes]
                servers.append(
                    {
                        "name": config.name,
                        "scope": scope,
                        "transport": str(config.transport),
                        "disabled": config.disabled,
                        "tools": [
                            {
                                "name": one.tool,
                                "published": one.name,
                                "disabled": one.disabled or one.tool in config.disabled_tools,
                            }
                            for one in tools
                        ],
                        "prompts": [
                            one.prompt
                            for one in locked.prompts
                            if one.server == config.key and scope in one.scopes
                        ],
                    }
                )
    body = {
        "servers": servers,
        "commands": list(settings.commands),
        "faults": [one._asdict() for one in found.faults],
        "warnings": [one._asdict() for one in found.warnings],
    }
    if as_json:
        _say_json(body)
        return 1 if found.faults else 0
    _say_findings(found)
    for server in servers:
        state = "disabled" if server["disabled"] else f"{len(server['tools'])} tool(s) locked"
        _say(f"{server['name']}  {server['transport']}  {server['scope']}  {state}")
        for tool in server["tools"]:
            _say(f"    {tool['published']}  = {tool['name']}{'  (disabled)' if tool['disabled'] else ''}")
    if not servers and not found.faults:
        _say("No servers are configured: see docs/upstream.md for the file mcp_servers.json.")
    if settings.commands:
        _say(f"Commands that entries may start beside npx, uvx and docker: {', '.join(settings.commands)}")
    return 1 if found.faults else 0


def _switch(settings: UpstreamSettings, qualified: str, project: str | None, *, disabled: bool) -> int:
    path = editing.switch(settings, qualified, project, disabled=disabled)
    word = "disabled" if disabled else "enabled"
    _say(f"{qualified} is {word} in {path.name}; the app does as it says when it starts next")
    return 0


def own_names(root: Path) -> set[str]:
    """The names of the app's own tools and prompts, which no tool of another server may have."""
    from shared.builtin import built_in
    from shared.contract.tool import find_contracts
    from shared.jobs.payload import Sealer
    from shared.tool.discovery import find_tools

    def nothing() -> object:
        raise AssertionError("nothing is called here")

    folder = root / _TOOLS
    contracts = find_contracts(folder)
    app_parts = built_in(lambda: (), nothing, Sealer(()), nothing)  # type: ignore[arg-type]
    found = find_tools(folder, app_parts, contracts.entries, contracts.faults)
    return {*found.tools, *found.prompts}


def _say_findings(found: Findings) -> None:
    for line in found.lines():
        _say(line)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _say_json(body: JsonObject) -> None:
    _say(json.dumps(body, ensure_ascii=False))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dev.py upstream", description="Tools of other MCP servers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    sync_ = commands.add_parser("sync", help=f"ask every server, and write {LOCK_FILE}")
    sync_.add_argument("--check", action="store_true", help="write nothing; exit with 1 if it would change")
    list_ = commands.add_parser("list", help="what is configured and locked; asks no server")
    for command in (sync_, list_):
        command.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    for name in ("enable", "disable"):
        switch = commands.add_parser(name, help=f"{name} one tool of a server")
        switch.add_argument("tool", metavar="SERVER.TOOL", help="the tool's qualified name")
        switch.add_argument("--project", help="in this project's configuration")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
