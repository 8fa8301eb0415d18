"""`dev.py upstream sync`: asks every configured server what it has, and makes the lock of it.

Every scope is asked: the global one and each project. A server that cannot be asked keeps what was locked of it
before, so that an outage takes no tool away, and is a fault of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from shared.errors import ConfigError, DeclarationError, ToolboxError
from shared.tool.spec import JsonObject, check_name
from shared.upstream import lock, normalise
from shared.upstream.config.faults import ConfigFault, ConfigWarning, Scope
from shared.upstream.config.loading import load_all
from shared.upstream.config.model import ServerConfig
from shared.upstream.connection.connection import ServerConnection
from shared.upstream.lock import Lock, LockedPrompt, LockedTool, Schemas, digest, hash_of, scope_of
from shared.upstream.model import UpstreamPrompt, UpstreamTool
from shared.upstream.names import alias
from shared.upstream.settings import UpstreamSettings

#: Servers that are asked at once.
AT_ONCE: Final = 8
_ICON_KEYS: Final = ("src", "mimeType", "sizes", "theme")
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


class Fault(NamedTuple):
    """What is wrong with a server, in which scope."""

    scope: str
    server: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a new lock does to a published name."""

    #: `added`, `removed`, `changed`.
    kind: str
    #: The tool's or prompt's qualified name.
    qualified: str
    #: What of it, for a changed one.
    what: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind:<8} {self.qualified}" + (f" ({', '.join(self.what)})" if self.what else "")


@dataclass(slots=True)
class Synced:
    """What came of a sync."""

    lock: Lock
    changes: list[Change] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


@dataclass(slots=True)
class _Asked:
    """One server of one scope, and what it has; None where it could not be asked."""

    scope: str
    config: ServerConfig
    tools: tuple[UpstreamTool, ...] | None = None
    prompts: tuple[UpstreamPrompt, ...] | None = None
    reason: str = ""


async def sync(settings: UpstreamSettings, before: Lock, taken: Collection[str] = ()) -> Synced:
    """Asks every server. `taken`: names of the app's own tools and prompts, which no upstream one may have."""
    done = Synced(Lock())
    asked: list[_Asked] = []
    for project, loaded in load_all(settings, refresh=True).items():
        # A project's configuration is merged over the global one, which is asked by itself.
        scope, own = scope_of(project), Scope.GLOBAL if project is None else Scope.PROJECT
        done.faults += [_fault(scope, one) for one in loaded.faults if one.scope is own]
        done.warnings += [_fault(scope, one) for one in loaded.warnings if one.scope is own]
        asked += [
            _Asked(scope, config)
            for config in loaded.servers.values()
            if not config.disabled and config.scope is own
        ]
    gate = asyncio.Semaphore(AT_ONCE)
    await asyncio.gather(*(_ask(one, settings, gate) for one in asked))
    done.faults += [Fault(one.scope, one.config.name, one.reason) for one in asked if one.reason]
    done.lock = _locked(asked, settings, before, taken, done.warnings)
    done.changes = changes(before, done.lock)
    return done


def _fault(scope: str, one: ConfigFault | ConfigWarning) -> Fault:
    return Fault(scope, one.name or "configuration", f"{one.field}: {one.message}")


async def _ask(one: _Asked, settings: UpstreamSettings, gate: asyncio.Semaphore) -> None:
    async with gate:
        connection = ServerConnection(one.config, settings)
        try:
            await connection.connect()
            one.tools, one.prompts = connection.tools, connection.prompts
        except ToolboxError as error:
            one.reason = error.message
        finally:
            try:
                await connection.disconnect()
            except ToolboxError as error:
                one.reason = one.reason or error.message


def _locked(
    asked: Iterable[_Asked],
    settings: UpstreamSettings,
    before: Lock,
    taken: Collection[str],
    warnings: list[Fault],
) -> Lock:
    tools: dict[tuple[str, str], LockedTool] = {}
    prompts: dict[tuple[str, str], LockedPrompt] = {}
    for one in asked:
        if one.tools is None:
            for known in before.tools:
                if known.server == one.config.key and one.scope in known.scopes:
                    kept = replace(known, scopes={one.scope: known.scopes[one.scope]})
                    _add(tools, kept, (known.server, known.tool))
            for asked_for in before.prompts:
                if asked_for.server == one.config.key and one.scope in asked_for.scopes:
                    kept_prompt = replace(asked_for, scopes={one.scope: asked_for.scopes[one.scope]})
                    _add(prompts, kept_prompt, (asked_for.server, asked_for.prompt))
            continue
        for tool in one.tools:
            made = _tool(tool, one, settings)
            warnings += [Fault(one.scope, one.config.name, f"{tool.name}: {note}") for note in made.notes]
            _add(tools, made, (made.server, made.tool))
        for prompt in one.prompts or ():
            _add(prompts, _prompt(prompt, one), (one.config.key, prompt.name))
    style = settings.names
    tool_names = published_names([one.qualified for one in tools.values()], style, taken)
    prompt_names = published_names([one.qualified for one in prompts.values()], style, taken)
    return Lock(
        style,
        tuple(replace(one, name=tool_names[one.qualified]) for one in tools.values()),
        tuple(replace(one, name=prompt_names[one.qualified]) for one in prompts.values()),
    )


def _add[E: (LockedTool, LockedPrompt)](found: dict[tuple[str, str], E], one: E, key: tuple[str, str]) -> None:
    """Takes it in; of one that is there in another scope already, only its scope."""
    known = found.get(key)
    if known is None:
        found[key] = one
        return
    both = replace(known, scopes={**known.scopes, **one.scopes})
    if isinstance(both, LockedTool) and not getattr(one, "disabled", False):
        both = replace(both, disabled=False)  # one scope that has it is enough to publish it
    found[key] = both


def _tool(tool: UpstreamTool, one: _Asked, settings: UpstreamSettings) -> LockedTool:
    config = one.config
    notes: list[str] = []
    given = normalise.input_schema(tool.input_schema, notes)
    output, wraps = normalise.output_schema(tool.output_schema, notes)
    hints = tool.annotations or {}
    title = tool.title or _text(hints.get("title")) or tool.name
    return LockedTool(
        name="",
        server=config.key,
        tool=tool.name,
        title=title,
        description=tool.description or f"The tool '{tool.name}' of the MCP server '{config.name}'.",
        scopes={one.scope: Schemas(hash_of(tool), given, output, wraps)},
        timeout_ms=round(config.call_timeout(settings, None) * 1000),
        disabled=tool.name in config.disabled_tools,
        annotations={key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)},
        icons=tuple(_icon(icon) for icon in tool.icons),
        meta={key: value for key, value in (tool.meta or {}).items() if not key.startswith("toolbox/")},
        notes=tuple(notes),
    )


def _icon(icon: Mapping[str, Any]) -> JsonObject:
    return {key: icon[key] for key in _ICON_KEYS if key in icon}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _prompt(prompt: UpstreamPrompt, one: _Asked) -> LockedPrompt:
    arguments = tuple(dict(argument) for argument in prompt.arguments)
    return LockedPrompt(
        name="",
        server=one.config.key,
        prompt=prompt.name,
        title=prompt.title or prompt.name,
        description=prompt.description or f"The prompt '{prompt.name}' of the MCP server '{one.config.name}'.",
        arguments=arguments,
        scopes={one.scope: digest(prompt.name, prompt.title, prompt.description, arguments)},
    )


def published_names(qualified: Iterable[str], style: str, taken: Collection[str] = ()) -> dict[str, str]:
    """Qualified name -> the name that it is published under: no two are the same, whatever their case.

    `dotted`: the qualified name itself, where it is legal and its function's name is free. `safe`, and where
    that is not possible: the alias. The order of the names decides nothing.
    """
    used = {_function(name) for name in taken}
    names: dict[str, str] = {}
    # Those that need no hash first, so that they keep their names whatever comes along.
    for name in sorted(set(qualified), key=lambda one: (alias(one) != one, one)):
        wanted = [name] if style == "dotted" and _is_legal(name) else []
        salted = (alias(f"{name}#{number}") for number in range(2, 1_000))
        for candidate in (*wanted, alias(name), *salted):
            if _function(candidate) not in used:
                used.add(_function(candidate))
                names[name] = candidate
                break
        else:
            raise ConfigError(name, "no free name can be found for it")
    return names


def _is_legal(name: str) -> bool:
    try:
        return bool(check_name(name))
    except DeclarationError:
        return False


def _function(name: str) -> str:
    """What the host tells names apart by: without case, and a function's name knows no dots."""
    return name.lower().replace(".", "_")


def changes(before: Lock, after: Lock) -> list[Change]:
    """What is different, by qualified name."""
    tools = _compared({one.qualified: one for one in before.tools}, {one.qualified: one for one in after.tools})
    old = {one.qualified: one for one in before.prompts}
    prompts = _compared(old, {one.qualified: one for one in after.prompts})
    return sorted([*tools, *prompts], key=lambda one: one.qualified)


def _compared[E: (LockedTool, LockedPrompt)](old: Mapping[str, E], new: Mapping[str, E]) -> list[Change]:
    found = [Change("added", name) for name in new if name not in old]
    found += [Change("removed", name) for name in old if name not in new]
    for name in old.keys() & new.keys():
        what = _different(old[name], new[name])
        if what:
            found.append(Change("changed", name, tuple(what)))
    return found


def _different(old: Any, new: Any) -> list[str]:
    names = type(old).__dataclass_fields__
    return [name.replace("_", " ") for name in names if getattr(old, name) != getattr(new, name)]


def write(path: Path, made: Lock) -> bool:
    """Writes the lock, whole or not at all. False: the file said the same already."""
    text = made.to_text()
    try:
        if path.read_text("utf-8") == text:
            return False
    except (OSError, UnicodeDecodeError):
        pass
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)
    return True


def read_before(path: Path, faults: list[Fault]) -> Lock:
    """What was locked. A file that cannot be read counts as none, and is a fault."""
    try:
        return lock.read(path)
    except ConfigError as error:
        faults.append(Fault(lock.GLOBAL, lock.LOCK_FILE, error.message))
        return Lock()
