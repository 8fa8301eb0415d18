"""From what the servers of all scopes have said to the lock: one entry for each tool, and a name for each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from shared.errors import ConfigError, DeclarationError
from shared.tool.spec import JsonObject, check_name
from shared.upstream import normalise
from shared.upstream.config.model import ServerConfig
from shared.upstream.findings import Fault
from shared.upstream.hiding import Hiding
from shared.upstream.lock import Lock, LockedPrompt, LockedTool, Schemas, digest, hash_of
from shared.upstream.model import ANY_OBJECT, UpstreamPrompt, UpstreamTool
from shared.upstream.names import alias
from shared.upstream.settings import UpstreamSettings

_ICON_KEYS: Final = ("src", "mimeType", "sizes", "theme")
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(slots=True)
class Asked:
    """One server of one scope, and what it has; None where it could not be asked for that."""

    scope: str
    config: ServerConfig
    tools: tuple[UpstreamTool, ...] | None = None
    prompts: tuple[UpstreamPrompt, ...] | None = None
    #: Why it could not be asked for all of it, or not be closed.
    reason: str = ""


def locked(
    asked: Iterable[Asked],
    settings: UpstreamSettings,
    before: Lock,
    taken: Collection[str],
    warnings: list[Fault],
    broken: Collection[tuple[str, str]] = (),
) -> Lock:
    """`before`: what was locked, for servers that could not be asked. `taken`: names that are not free.

    `broken`: (scope, key) of servers whose configuration is faulty; an empty key: everything in the scope.

    What had to be changed so that a tool can be published is added to `warnings`.
    """
    tools: dict[tuple[str, str], LockedTool] = {}
    prompts: dict[tuple[str, str], LockedPrompt] = {}
    for one in asked:
        for made in _tools(one, settings, before, warnings):
            _add(tools, made, (made.server, made.tool))
        for asked_for in _prompts(one, before, warnings):
            _add(prompts, asked_for, (asked_for.server, asked_for.prompt))
    for scope, key in sorted(broken):
        for known in before.tools:
            if scope in known.scopes and key in (known.server, ""):
                _add(tools, replace(known, scopes={scope: known.scopes[scope]}), (known.server, known.tool))
        for prompt_before in before.prompts:
            if scope in prompt_before.scopes and key in (prompt_before.server, ""):
                kept_prompt = replace(prompt_before, scopes={scope: prompt_before.scopes[scope]})
                _add(prompts, kept_prompt, (prompt_before.server, prompt_before.prompt))
    style = settings.names
    tool_names = published_names([one.qualified for one in tools.values()], style, taken)
    prompt_names = published_names([one.qualified for one in prompts.values()], style, taken)
    return Lock(
        style,
        tuple(replace(one, name=tool_names[one.qualified]) for one in tools.values()),
        tuple(replace(one, name=prompt_names[one.qualified]) for one in prompts.values()),
    )


def _tools(one: Asked, settings: UpstreamSettings, before: Lock, warnings: list[Fault]) -> Iterator[LockedTool]:
    if one.tools is None:
        yield from _kept_tools(one, before)
        return
    for tool in one.tools:
        notes: list[str] = []
        hide = Hiding(one.config, notes)
        shown = hide.name(tool.name, "name")
        yield _tool(tool, one, settings, hide, notes)
        warnings += [Fault(one.scope, one.config.name, f"{shown}: {note}") for note in notes]


def _prompts(one: Asked, before: Lock, warnings: list[Fault]) -> Iterator[LockedPrompt]:
    if one.prompts is None:
        yield from _kept_prompts(one, before)
        return
    for prompt in one.prompts:
        notes: list[str] = []
        hide = Hiding(one.config, notes)
        shown = hide.name(prompt.name, "name")
        yield _prompt(prompt, one, hide)
        warnings += [Fault(one.scope, one.config.name, f"prompt {shown}: {note}") for note in notes]


def _kept_tools(one: Asked, before: Lock) -> list[LockedTool]:
    """What was locked of a server that cannot be asked now, as far as its configuration still wants it."""
    config = one.config
    return [
        replace(
            known, scopes={one.scope: known.scopes[one.scope]}, disabled=known.tool in config.disabled_tools
        )
        for known in before.tools
        if known.server == config.key and one.scope in known.scopes and config.load_tools
    ]


def _kept_prompts(one: Asked, before: Lock) -> list[LockedPrompt]:
    return [
        replace(known, scopes={one.scope: known.scopes[one.scope]})
        for known in before.prompts
        if known.server == one.config.key and one.scope in known.scopes and one.config.load_prompts
    ]


def _add[E: (LockedTool, LockedPrompt)](found: dict[tuple[str, str], E], one: E, key: tuple[str, str]) -> None:
    """Takes it in; of one that is there in another scope already, its scope and what the two must agree on."""
    known = found.get(key)
    if known is None:
        found[key] = one
    elif isinstance(known, LockedTool) and isinstance(one, LockedTool):
        found[key] = _merged(known, one)
    else:
        found[key] = replace(known, scopes={**known.scopes, **one.scopes})


def _merged(first: LockedTool, other: LockedTool) -> LockedTool:
    """A tool of two scopes, published once."""
    return replace(
        first,
        scopes={**first.scopes, **other.scopes},
        # One scope that has it is enough to publish it.
        disabled=first.disabled and other.disabled,
        # A promise counts when both give it: a call that may be repeated must be harmless in either scope.
        annotations={
            key: hint for key, hint in first.annotations.items() if other.annotations.get(key) is hint
        },
        timeout_ms=max(first.timeout_ms, other.timeout_ms),
        notes=tuple(dict.fromkeys((*first.notes, *other.notes))),
    )


def _tool(
    tool: UpstreamTool, one: Asked, settings: UpstreamSettings, hide: Hiding, notes: list[str]
) -> LockedTool:
    """The hash is over what the server said, so that drift is seen whatever had to be hidden of it."""
    config = one.config
    # Hidden first: a note on a schema that cannot be used repeats some of it.
    given = normalise.input_schema(hide.schema(tool.input_schema, "input schema", ANY_OBJECT), notes)
    output, wraps = normalise.output_schema(hide.schema(tool.output_schema, "output schema", None), notes)
    hints = tool.annotations or {}
    title = tool.title or _text(hints.get("title"))
    meta = {key: value for key, value in (tool.meta or {}).items() if not key.startswith("toolbox/")}
    return LockedTool(
        name="",
        server=config.key,
        tool=tool.name,
        title=hide.text(title, "title") or tool.name,
        description=hide.text(tool.description or "", "description")
        or f"The tool '{tool.name}' of the MCP server '{config.name}'.",
        scopes={one.scope: Schemas(hash_of(tool), given, output, wraps)},
        timeout_ms=round(config.call_timeout(settings, None) * 1000),
        disabled=tool.name in config.disabled_tools,
        annotations={key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)},
        icons=hide.icons(tuple(_icon(icon) for icon in tool.icons)),
        meta=hide.meta(meta),
        notes=tuple(notes),
    )


def _icon(icon: Mapping[str, Any]) -> JsonObject:
    return {key: icon[key] for key in _ICON_KEYS if key in icon}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _prompt(prompt: UpstreamPrompt, one: Asked, hide: Hiding) -> LockedPrompt:
    arguments = tuple(dict(argument) for argument in prompt.arguments)
    return LockedPrompt(
        name="",
        server=one.config.key,
        prompt=prompt.name,
        title=hide.text(prompt.title or "", "title") or prompt.name,
        description=hide.text(prompt.description or "", "description")
        or f"The prompt '{prompt.name}' of the MCP server '{one.config.name}'.",
        arguments=hide.arguments(arguments),
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
