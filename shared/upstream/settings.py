"""The settings of upstream servers, read from the environment and checked as a whole.

    MCP_SERVERS                        JSON or YAML text, or `@file`; without it the file mcp_servers.json or
                                       mcp_servers.yaml beside function_app.py, if there is one
    TOOLBOX_UPSTREAM_COMMANDS          bare names that `mcpServers` entries may start beside npx, uvx and docker
    TOOLBOX_UPSTREAM_TOOL_TIMEOUT      seconds for a call (120)
    TOOLBOX_UPSTREAM_INIT_TIMEOUT      seconds to connect, and to list (10)
    TOOLBOX_UPSTREAM_CLEANUP_TIMEOUT   seconds to close a connection (5)
    TOOLBOX_UPSTREAM_GRACE             seconds that the outer bound of an operation adds to its own timeout (7)
    TOOLBOX_UPSTREAM_MEDIA_BYTES       media past this become artifacts (262144)
    TOOLBOX_UPSTREAM_POLICY            JSON or `@file`, see `shared.upstream.policy`
    TOOLBOX_UPSTREAM_NAMES             `safe` or `dotted`: how tools are published
    TOOLBOX_PROJECTS                   JSON, owner -> project or list of projects; the first is the owner's own

Every fault is a `SettingsError` that names its setting. No value is repeated, as servers and policies hold
secrets.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from shared.contract.envelope import LEGAL_PROJECT, is_project
from shared.errors import EnvelopeError, SettingsError
from shared.settings import integer
from shared.tool.binding import ENVELOPE_KEY

#: The folder of function_app.py.
APP_ROOT: Final = Path(__file__).resolve().parents[2]
#: What stands for MCP_SERVERS when it is not set; the first one that is there.
DEFAULT_FILES: Final = ("mcp_servers.json", "mcp_servers.yaml", "mcp_servers.yml")
#: The folder of project configuration: projects/<name>/mcp_servers.json.
PROJECTS_FOLDER: Final = "projects"

_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,3})?")
_MOST_SECONDS: Final = 86_400.0
_MOST_MEDIA_BYTES: Final = 16 * 1024 * 1024


class PublishedNames(StrEnum):
    """How the tools of upstream servers are named towards clients."""

    #: `docs_read_6e32feee`: any client can take it.
    SAFE = "safe"
    #: `docs.read`
    DOTTED = "dotted"


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """All settings of upstream servers. Times are seconds."""

    root: Path = APP_ROOT
    #: The text of MCP_SERVERS; empty when the configuration stands in `servers_file`, or nowhere.
    servers_text: str = field(default="", repr=False)
    servers_file: Path | None = None
    commands: tuple[str, ...] = ()
    tool_timeout: float = 120.0
    #: Whether an operator has set `tool_timeout`: then it comes before the 60 s of YAML entries.
    tool_timeout_given: bool = False
    init_timeout: float = 10.0
    cleanup_timeout: float = 5.0
    grace: float = 7.0
    media_bytes: int = 262_144
    #: The policy's JSON; empty: everything is allowed.
    policy: str = field(default="", repr=False)
    names: PublishedNames = PublishedNames.SAFE
    #: Owner -> the projects granted to it, its own first.
    projects: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def project_of(self, owner: str, asked: str | None = None) -> str | None:
        """The project whose servers a call sees; None: only the global ones.

        `asked`: the call's `__pptb.project`. Raises `EnvelopeError` for a project that the owner does not have,
        in the same words whether or not another owner has it.
        """
        granted = self.projects.get(owner, ())
        if asked is None:
            return granted[0] if granted else None
        if asked not in granted:
            raise EnvelopeError(
                f"{ENVELOPE_KEY}.project: there is no such project for you; "
                + (f"yours are {', '.join(granted)}" if granted else "you have none, leave it out")
            )
        return asked

    def project_folder(self, project: str) -> Path:
        return self.root / PROJECTS_FOLDER / project

    def known_projects(self) -> tuple[str, ...]:
        """Every project that is granted to someone or has a folder with a legal name, sorted."""
        names = {name for granted in self.projects.values() for name in granted}
        folder = self.root / PROJECTS_FOLDER
        if folder.is_dir():
            names |= {path.name for path in folder.iterdir() if path.is_dir() and is_project(path.name)}
        return tuple(sorted(names))


def upstream_settings(environ: Mapping[str, str] = os.environ, root: Path = APP_ROOT) -> UpstreamSettings:
    """Reads and checks the settings. Raises `SettingsError` naming the first illegal one."""
    servers_text, servers_file = _servers(environ, root)
    tool_timeout = _seconds(environ, "TOOLBOX_UPSTREAM_TOOL_TIMEOUT", 120.0)
    return UpstreamSettings(
        root=root,
        servers_text=servers_text,
        servers_file=servers_file,
        commands=_commands(environ),
        tool_timeout=tool_timeout,
        tool_timeout_given=bool(environ.get("TOOLBOX_UPSTREAM_TOOL_TIMEOUT", "").strip()),
        init_timeout=_seconds(environ, "TOOLBOX_UPSTREAM_INIT_TIMEOUT", 10.0),
        cleanup_timeout=_seconds(environ, "TOOLBOX_UPSTREAM_CLEANUP_TIMEOUT", 5.0),
        grace=_seconds(environ, "TOOLBOX_UPSTREAM_GRACE", 7.0),
        media_bytes=integer(environ, "TOOLBOX_UPSTREAM_MEDIA_BYTES", 262_144, 0, _MOST_MEDIA_BYTES),
        policy=_policy(environ, root),
        names=_names(environ),
        projects=_projects(environ),
    )


def _servers(environ: Mapping[str, str], root: Path) -> tuple[str, Path | None]:
    text = environ.get("MCP_SERVERS", "")
    if text.strip().startswith("@"):
        path = root / text.strip()[1:].strip()
        if not path.is_file():
            raise SettingsError(
                "MCP_SERVERS names a file that is not there. A path begins at the app's folder."
            )
        return "", path
    if text.strip():
        return text, None
    found = (root / name for name in DEFAULT_FILES)
    return "", next((path for path in found if path.is_file()), None)


def _commands(environ: Mapping[str, str]) -> tuple[str, ...]:
    names = environ.get("TOOLBOX_UPSTREAM_COMMANDS", "").replace(",", " ").split()
    if not all(_COMMAND.fullmatch(name) for name in names):
        raise SettingsError(
            "TOOLBOX_UPSTREAM_COMMANDS must be bare names of programs with commas or blanks between them, like "
            "'node, deno': no paths, no arguments, only the characters A-Z a-z 0-9 . _ + -"
        )
    return tuple(dict.fromkeys(names))


def _seconds(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not _SECONDS.fullmatch(text) or not 0 < float(text) <= _MOST_SECONDS:
        raise SettingsError(
            f"{name} must be seconds, more than 0 and at most {_MOST_SECONDS:.0f}, like 30 or 2.5."
        )
    return float(text)


def _policy(environ: Mapping[str, str], root: Path) -> str:
    text = environ.get("TOOLBOX_UPSTREAM_POLICY", "").strip()
    if not text.startswith("@"):
        return text
    try:
        return (root / text[1:].strip()).read_text("utf-8-sig")
    except (OSError, ValueError):
        raise SettingsError("TOOLBOX_UPSTREAM_POLICY names a file that cannot be read.") from None


def _names(environ: Mapping[str, str]) -> PublishedNames:
    text = environ.get("TOOLBOX_UPSTREAM_NAMES", "").strip().lower() or PublishedNames.SAFE
    try:
        return PublishedNames(text)
    except ValueError:
        raise SettingsError("TOOLBOX_UPSTREAM_NAMES must be safe or dotted.") from None


def _projects(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    text = environ.get("TOOLBOX_PROJECTS", "").strip()
    if not text:
        return {}
    shape = (
        'TOOLBOX_PROJECTS must be a JSON object of owner -> project or list of projects, like {"ana": "sales"}'
    )
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise SettingsError(f"{shape}; it is not JSON.") from None
    if not isinstance(raw, dict):
        raise SettingsError(f"{shape}; it is JSON but no object.")
    granted: dict[str, tuple[str, ...]] = {}
    for owner, value in raw.items():
        names = value if isinstance(value, list) else [value]
        if not all(isinstance(name, str) and is_project(name) for name in names):
            raise SettingsError(f"TOOLBOX_PROJECTS: a project's name must be {LEGAL_PROJECT}.")
        granted[owner] = tuple(dict.fromkeys(names))
    return granted
