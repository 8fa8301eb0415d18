"""`dev.py upstream enable|disable`: edits a server's `disabled_tools` in its file, and the lock with it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared.errors import ConfigError
from shared.files import replace_text
from shared.upstream import lock
from shared.upstream.lock import LOCK_FILE, LockedTool, scope_of
from shared.upstream.names import normalize, split_qualified
from shared.upstream.settings import DEFAULT_FILES, UpstreamSettings

_LIST = "disabled_tools"


def switch(settings: UpstreamSettings, qualified: str, project: str | None, *, disabled: bool) -> Path:
    """Writes the file and the lock; the file. Raises `ConfigError` that says what to write by hand instead."""
    server, tool = split_qualified(qualified)
    path = _file(settings, project)
    raw = _read(path, server, tool, disabled=disabled)
    entry = _entry(raw, server)
    if entry is None:
        raise ConfigError(server, f"there is no such server in {path.name}")
    known = entry.get(_LIST, [])
    if not isinstance(known, list):
        raise ConfigError(f"{server}.{_LIST}", "must be a list of tool names")
    names = [name for name in known if name != tool] + ([tool] if disabled else [])
    if names:
        entry[_LIST] = names
    else:
        entry.pop(_LIST, None)
    replace_text(path, json.dumps(raw, indent=2, ensure_ascii=False) + "\n")
    _lock(settings, server, tool, project, disabled=disabled)
    return path


def _file(settings: UpstreamSettings, project: str | None) -> Path:
    if project is None:
        if settings.servers_file is None:
            raise ConfigError(
                "MCP_SERVERS", f"holds the servers itself: write the tool into its '{_LIST}' there"
            )
        return settings.servers_file
    if project not in settings.known_projects():
        raise ConfigError("project", f"there is no project '{project}'")
    folder = settings.project_folder(project)
    found = next((folder / name for name in DEFAULT_FILES if (folder / name).is_file()), None)
    if found is None:
        raise ConfigError("project", f"'{project}' has no servers of its own; leave --project out")
    return found


def _read(path: Path, server: str, tool: str, *, disabled: bool) -> Any:
    """The file's JSON. One with comments, or YAML, would lose what its author wrote there."""
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(path.name, f"cannot be read: {type(error).__name__}") from None
    except ValueError:
        do = f"add '{tool}' to" if disabled else f"take '{tool}' out of"
        raise ConfigError(
            path.name, f"is no plain JSON, and would lose its comments: {do} '{_LIST}' of '{server}' by hand"
        ) from None


def _entry(raw: Any, key: str) -> dict[str, Any] | None:
    """The server's entry, in whichever of the forms it stands."""
    servers = raw.get("mcpServers", raw.get("servers", raw.get("tools"))) if isinstance(raw, dict) else raw
    if isinstance(servers, dict):
        pairs = list(servers.items())
    elif isinstance(servers, list):
        pairs = [(entry.get("name"), entry) for entry in servers if isinstance(entry, dict)]
    else:
        pairs = [(raw.get("name"), raw)] if isinstance(raw, dict) else []
    for name, entry in pairs:
        if isinstance(name, str) and isinstance(entry, dict) and name.strip() and normalize(name) == key:
            return entry
    return None


def _lock(settings: UpstreamSettings, server: str, tool: str, project: str | None, *, disabled: bool) -> None:
    """A tool that is locked for several scopes stays published as long as one of them has it."""
    path = settings.root / LOCK_FILE
    made = lock.read(path)

    def switched(one: LockedTool) -> LockedTool:
        if (one.server, one.tool) != (server, tool) or set(one.scopes) != {scope_of(project)}:
            return one
        return replace(one, disabled=disabled)

    after = replace(made, tools=tuple(map(switched, made.tools)))
    if after != made:
        replace_text(path, after.to_text())
