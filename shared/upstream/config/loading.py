"""The effective configuration of a call: read, checked and kept until one of its files changes.

    global    the setting MCP_SERVERS, or the file mcp_servers.json (.yaml, .yml) in the app's folder
    project   the file projects/<name>/mcp_servers.json (.yaml, .yml); without one it has the global servers

Files are read again at each load, those of an `env_file` too: they are small, and a change shows at the next
call. Everything else is done only when one of them, or a variable that a text names, is not what it was.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from shared.contract.envelope import LEGAL_PROJECT, is_project
from shared.errors import ConfigError
from shared.upstream.config.building import Place, build
from shared.upstream.config.env_file import EnvFiles, print_of
from shared.upstream.config.faults import ConfigFault, ConfigWarning, Notes, Scope
from shared.upstream.config.model import ServerConfig
from shared.upstream.config.scopes import ScopeEntries, merge, read_scope
from shared.upstream.config.text import MAX_CHARACTERS, Syntax
from shared.upstream.settings import DEFAULT_FILES, UpstreamSettings

__all__ = ["ConfigFault", "ConfigWarning", "Loaded", "ServerConfig", "effective", "load", "load_all"]

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
#: A key tells whether two texts are equal and nothing else: texts hold secrets.
_DIGEST_KEY: Final = secrets.token_bytes(32)


@dataclass(frozen=True, slots=True)
class Loaded:
    """`servers`: those that are sound, by key, disabled ones included.

    `env_files`: the files of variables that were read, and a print of what each held. `key`: equal for equal
    texts, variables and prints.
    """

    servers: Mapping[str, ServerConfig]
    faults: tuple[ConfigFault, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()
    key: str = ""
    env_files: Mapping[Path, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Source:
    """A scope's text. `fault`: why it could not be read."""

    scope: Scope
    text: str = ""
    syntax: Syntax = Syntax.ANY
    folder: Path = field(default_factory=Path)
    fault: str | None = None
    warning: str | None = None


#: (root, project) -> the last configuration.
_kept: dict[tuple[Path, str | None], Loaded] = {}


def load(
    settings: UpstreamSettings,
    project: str | None = None,
    *,
    refresh: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """The servers of a call with this project (None: the global ones), and everything that is wrong with them.

    `refresh`: builds it anew though nothing that is read has changed: a program may be there now, or a folder
    that is mounted be a link. Raises `ConfigError` for a name that no project can have; whether an owner has
    the project is asked before (`UpstreamSettings.project_of`).
    """
    if project is not None and not is_project(project):
        raise ConfigError("project", f"must be {LEGAL_PROJECT}")
    sources = [_global_source(settings)]
    if project is not None:
        sources.append(_project_source(settings, project))
    place = (settings.root, project)
    kept = _kept.get(place)
    if kept is not None and not refresh:
        now = {path: print_of(path) for path in kept.env_files}
        if kept.key == _key(settings, sources, environ, now):
            return kept
    kept = _kept[place] = _build(settings, project, sources, environ)
    return kept


def is_current(settings: UpstreamSettings, project: str | None, loaded: Loaded) -> bool:
    """Whether nothing else has been built in its place. Reads no file, and waits for nothing."""
    return _kept.get((settings.root, project)) is loaded


def effective(
    settings: UpstreamSettings, project: str | None = None, *, environ: Mapping[str, str] = os.environ
) -> Mapping[str, ServerConfig]:
    """The servers that a call may use: without those that are disabled."""
    servers = load(settings, project, environ=environ).servers
    return {key: config for key, config in servers.items() if not config.disabled}


def load_all(
    settings: UpstreamSettings, *, refresh: bool = False, environ: Mapping[str, str] = os.environ
) -> dict[str | None, Loaded]:
    """The configuration of every scope: None is the global one, then each project that is known."""
    names: list[str | None] = [None, *settings.known_projects()]
    return {name: load(settings, name, refresh=refresh, environ=environ) for name in names}


def _build(
    settings: UpstreamSettings,
    project: str | None,
    sources: list[_Source],
    environ: Mapping[str, str],
) -> Loaded:
    servers: dict[str, ServerConfig] = {}
    faults: list[ConfigFault] = []
    warnings: list[ConfigWarning] = []
    read: list[ScopeEntries] = []
    for source in sources:
        about = Notes()
        if source.fault is not None:
            about.fault("file", source.fault)
        if source.warning is not None:
            about.warn("file", source.warning)
        of_project = project if source.scope is Scope.PROJECT else None
        scope = read_scope(source.text, source.scope, source.syntax, of_project)
        faults += [*about.faults_of("", source.scope, of_project), *scope.faults]
        warnings += [*about.warnings_of("", source.scope, of_project), *scope.warnings]
        read.append(scope)
    env_files = EnvFiles()
    folders = {source.scope: source.folder for source in sources}
    for merged in merge(*read):
        of_project = project if merged.scope is Scope.PROJECT else None
        place = Place(settings, environ, folders[merged.scope], merged.scope, of_project, env_files)
        built = build(merged.entry, merged.key, place, merged.disabled_tools)
        faults += built.faults
        warnings += built.warnings
        if built.config is not None:
            servers[merged.key] = built.config
    key = _key(settings, sources, environ, env_files.prints)
    prints = MappingProxyType(env_files.prints)
    return Loaded(MappingProxyType(servers), tuple(faults), tuple(warnings), key, prints)


def _global_source(settings: UpstreamSettings) -> _Source:
    if settings.servers_file is None:
        return _Source(Scope.GLOBAL, settings.servers_text, folder=settings.root)
    return _file_source(Scope.GLOBAL, settings.servers_file, settings.root)


def _project_source(settings: UpstreamSettings, project: str) -> _Source:
    folder = settings.project_folder(project)
    there = [folder / name for name in DEFAULT_FILES if (folder / name).is_file()]
    if not there:
        return _Source(Scope.PROJECT, folder=folder)
    source = _file_source(Scope.PROJECT, there[0], folder)
    if len(there) == 1:
        return source
    others = ", ".join(path.name for path in there[1:])
    return _Source(
        source.scope,
        source.text,
        source.syntax,
        folder,
        source.fault,
        f"{there[0].name} is read, {others} is not",
    )


def _file_source(scope: Scope, path: Path, folder: Path) -> _Source:
    """`folder`: where the relative names in the file begin."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            # One more than may be there: reading the text says that it is too long.
            text = file.read(MAX_CHARACTERS + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        return _Source(scope, folder=folder, fault=f"{path.name} cannot be read: {reason}")
    return _Source(scope, text, Syntax.of_file(path.name), folder)


def _key(
    settings: UpstreamSettings,
    sources: list[_Source],
    environ: Mapping[str, str],
    env_files: Mapping[Path, str],
) -> str:
    digest = hashlib.blake2b(key=_DIGEST_KEY, digest_size=16)
    parts = [*settings.commands]
    for source in sources:
        parts += [source.scope, source.syntax, source.text, source.fault or "", source.warning or ""]
        # Set but empty is not the same as not set.
        parts += [repr(environ.get(name)) for name in sorted(set(_VARIABLE.findall(source.text)))]
    for path, held in env_files.items():
        parts += [str(path), held]
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
