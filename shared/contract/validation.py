"""Checks a whole `pptb.config.json`: every fault at once, each with its place, what is legal and what to do.

Which values the original drops or coerces in silence, and what happens to them here, stands in
`differences.DIFFERENCES`. What needs the tool's folder (its entry, its page) is checked in `entry` and
`execution`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from shared.apis import methods
from shared.contract import schemas
from shared.contract.config import Agents, Contract, Invocation, WindowRules
from shared.contract.findings import Findings, listed, nearest, shown, step
from shared.tool.spec import MAX_ATTEMPTS_LIMIT, ExecutionMode, Isolation, JsonObject, Mode

#: A day: what an app may allow at most, see `shared.settings`.
LONGEST_TIMEOUT_MS: Final = 86_400_000
KNOWN_TAGS: Final = (
    "fetchxml", "entity-picker", "record-selector", "solution-selector", "webresource-editor",
    "plugin-inspector", "pcf-control-builder",
)  # fmt: skip
_APP_LIMIT: Final = "the app's TOOLBOX_MAX_TIMEOUT_MS and functionTimeout set the limit"
_ROOT: Final = ("invocation", "agents")
_INVOCATION: Final = ("version", "capabilities", "prefill", "returnTopic")
_AGENTS: Final = (
    "version", "invokable", "modes", "defaultMode", "timeoutMS", "headless", "executionModes",
    "defaultExecutionMode", "headlessEntry", "maxAttempts", "isolation", "idempotent", "window",
)  # fmt: skip
_WINDOW: Final = ("timeoutMS", "apiMethods")
#: Names of older contracts and of other versions.
_RENAMED: Final = {"agentInvokable": "agents.invokable took its place"}
# Looser than semver 2.0 on purpose, as in the original: leading zeros pass.
_IDENTIFIERS = r"[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*"
_SEMVER = re.compile(rf"[0-9]+\.[0-9]+\.[0-9]+(-{_IDENTIFIERS})?(\+{_IDENTIFIERS})?")


def check_document(document: Any, found: Findings, *, max_timeout_ms: int = LONGEST_TIMEOUT_MS) -> Contract:
    """The contract in a JSON document. Where something is illegal, an error says so and a default stands.

    `max_timeout_ms`: the longest timeout that the app allows.
    """
    root = _Table(document, "$", found)
    if not root.is_object:
        return Contract()
    root.check_keys(_ROOT)
    invocation = _invocation(root.table("invocation"))
    agents = _agents(root.table("agents"), max_timeout_ms)
    if "agents" not in root.given:
        found.note("$.agents", "is absent: the tool is not exposed to agents")
    elif agents is not None and is_hidden(root.given):
        what = "is false" if "invokable" in root.given["agents"] else "is absent"
        found.note("$.agents.invokable", f"{what}: the tool is not exposed to agents", "set it to true")
    return Contract(invocation, agents)


def is_hidden(document: JsonObject) -> bool:
    """Whether the contract exposes nothing. A value that is no boolean is an error of its own."""
    agents = document.get("agents")
    return not isinstance(agents, dict) or agents.get("invokable", False) is False


def _invocation(table: _Table | None) -> Invocation | None:
    if table is None:
        return None
    table.check_keys(_INVOCATION)
    prefill = _schema(table, "prefill")
    if prefill is not None:
        schemas.check_reserved(prefill, step(table.path, "prefill"), table.found)
    return Invocation(
        version=_version(table),
        capabilities=_capabilities(table),
        prefill=prefill,
        return_topic=_schema(table, "returnTopic"),
    )


def _agents(table: _Table | None, max_timeout_ms: int) -> Agents | None:
    if table is None:
        return None
    table.check_keys(_AGENTS)
    modes = _choices(table, "modes", Mode)
    default_mode = _choice(table, "defaultMode", Mode)
    has_list = isinstance(table.given.get("modes", []), list)
    if default_mode is not None and has_list and default_mode not in (modes or _assumed_modes(table)):
        hint = "" if "modes" in table.given else f'add "modes": ["{default_mode}"]; without it only two-way'
        table.error("defaultMode", f"must be included in agents.modes, got string '{default_mode}'", hint)
        default_mode = None
    executions = _choices(table, "executionModes", ExecutionMode)
    attempts = _whole(table, "maxAttempts", MAX_ATTEMPTS_LIMIT)
    isolation = _choice(table, "isolation", Isolation) or Isolation.THREAD
    return Agents(
        version=_version(table),
        invokable=table.boolean("invokable") or False,
        modes=modes or (Mode.TWO_WAY,),
        default_mode=default_mode,
        timeout_ms=_timeout(table, max_timeout_ms),
        headless=table.boolean("headless"),
        execution_modes=() if "executionModes" in table.given and executions is None else executions,
        default_execution_mode=_choice(table, "defaultExecutionMode", ExecutionMode),
        headless_entry=_entry(table),
        max_attempts=attempts,
        isolation=isolation,
        idempotent=table.boolean("idempotent"),
        window=_window(table.table("window")),
    )


def _window(table: _Table | None) -> WindowRules | None:
    if table is None:
        return None
    table.check_keys(_WINDOW)
    return WindowRules(_timeout(table, LONGEST_TIMEOUT_MS, "a day is the longest"), _api_methods(table))


def _api_methods(table: _Table) -> tuple[str, ...]:
    value = table.given.get("apiMethods", [])
    example = "'dataverseAPI.update'"
    if not isinstance(value, list):
        table.error("apiMethods", f"must be an array of API methods like {example}, got {shown(value)}")
        return ()
    chosen: list[str] = []
    for index, name in enumerate(value):
        place = step(step(table.path, "apiMethods"), index)
        if not isinstance(name, str) or name not in methods.OFFERED:
            hint = nearest(name, methods.OFFERED) if isinstance(name, str) else ""
            table.found.error(place, f"must be an API method like {example}, got {shown(name)}", hint)
        elif name in methods.READING:
            table.found.warn(place, f"'{name}' only reads: every window may call it")
        elif name in chosen:
            table.found.warn(place, f"names '{name}' again")
        else:
            chosen.append(name)
    return tuple(chosen)


def _assumed_modes(table: _Table) -> tuple[Mode, ...]:
    return () if "modes" in table.given else (Mode.TWO_WAY,)


class _Table:
    """One object of the document. Its readers return None for what is absent or illegal."""

    def __init__(self, value: Any, path: str, found: Findings) -> None:
        self.is_object = isinstance(value, dict)
        self.given: JsonObject = value if isinstance(value, dict) else {}
        self.path = path
        self.found = found
        if not self.is_object:
            found.error(path, f"must be a JSON object, got {shown(value)}")

    def error(self, key: str, text: str, hint: str = "") -> None:
        self.found.error(step(self.path, key), text, hint)

    def check_keys(self, known: tuple[str, ...]) -> None:
        for key in self.given:
            if key not in known:
                hint = _RENAMED.get(key) or nearest(key, known) or f"known are {', '.join(known)}"
                self.found.warn(step(self.path, key), f"'{key[:80]}' is not known and has no effect", hint)

    def table(self, key: str) -> _Table | None:
        if key not in self.given:
            return None
        table = _Table(self.given[key], step(self.path, key), self.found)
        return table if table.is_object else None

    def boolean(self, key: str) -> bool | None:
        value = self.given.get(key)
        if key not in self.given or isinstance(value, bool):
            return value
        self.error(key, f"must be true or false, got {shown(value)}")
        return None


def _version(table: _Table) -> str:
    hint = 'write a version such as "1.0.0"'
    if "version" not in table.given:
        table.error("version", "is required", hint)
        return ""
    value = table.given["version"]
    if not isinstance(value, str):
        table.error("version", f"must be a string, got {shown(value)}", hint)
    elif not _SEMVER.fullmatch(value):
        table.error("version", f"must be a semantic version, got {shown(value)}", hint)
    else:
        return value
    return ""


def _capabilities(table: _Table) -> tuple[str, ...]:
    value = table.given.get("capabilities", [])
    if not isinstance(value, list):
        table.error("capabilities", f"must be an array of tags, got {shown(value)}")
        return ()
    tags: list[str] = []
    for index, tag in enumerate(value):
        place = step(step(table.path, "capabilities"), index)
        if not isinstance(tag, str) or not tag.strip():
            table.found.error(place, f"must be a string that is not empty, got {shown(tag)}")
            continue
        tags.append(tag)
        if tag not in KNOWN_TAGS:
            hint = nearest(tag, KNOWN_TAGS) or f"known are {', '.join(KNOWN_TAGS)}"
            table.found.warn(place, f"'{tag[:80]}' is no capability tag that others look for", hint)
    return tuple(dict.fromkeys(tags))


def _schema(table: _Table, key: str) -> JsonObject | None:
    if key not in table.given:
        return None
    return schemas.to_schema(table.given[key], step(table.path, key), table.found)


def _choice[E: StrEnum](table: _Table, key: str, kind: type[E]) -> E | None:
    if key not in table.given:
        return None
    return _member(table.given[key], step(table.path, key), kind, table.found)


def _choices[E: StrEnum](table: _Table, key: str, kind: type[E]) -> tuple[E, ...] | None:
    """None: absent, or nothing in it is legal."""
    if key not in table.given:
        return None
    value = table.given[key]
    legal = listed(kind)
    if not isinstance(value, list):
        table.error(key, f"must be an array of {legal}, got {shown(value)}")
        return None
    if not value:
        table.error(key, "must not be empty", f"name one or more of {legal}")
        return None
    path = step(table.path, key)
    members = [_member(item, step(path, index), kind, table.found) for index, item in enumerate(value)]
    chosen: list[E] = []
    for index, member in enumerate(members):
        if member is not None and member in chosen:
            table.found.warn(step(path, index), f"names '{member}' again")
        elif member is not None:
            chosen.append(member)
    return tuple(chosen) or None


def _member[E: StrEnum](value: Any, path: str, kind: type[E], found: Findings) -> E | None:
    legal: Iterable[str] = [str(member) for member in kind]
    if isinstance(value, str) and value in legal:
        return kind(value)
    hint = nearest(value, legal) if isinstance(value, str) else ""
    found.error(path, f"must be one of {listed(legal)}, got {shown(value)}", hint)
    return None


def _timeout(table: _Table, limit: int, above: str = _APP_LIMIT) -> int | None:
    """Whole milliseconds; a fraction is cut off, as in the original. `above`: what is said of longer ones."""
    if "timeoutMS" not in table.given:
        return None
    value = table.given["timeoutMS"]
    legal = f"must be a number of milliseconds from 1 to {limit}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        table.error("timeoutMS", f"{legal}, got {shown(value)}")
    elif not 1 <= value <= limit:
        table.error("timeoutMS", f"{legal}, got {shown(value)}", above if value > limit else "")
    else:
        if value != int(value):
            place = step(table.path, "timeoutMS")
            table.found.warn(place, f"counts as {int(value)}: milliseconds are whole")
        return int(value)
    return None


def _whole(table: _Table, key: str, limit: int) -> int | None:
    if key not in table.given:
        return None
    value = table.given[key]
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if not isinstance(value, bool) and whole and 1 <= value <= limit:
        return int(value)
    table.error(key, f"must be a whole number from 1 to {limit}, got {shown(value)}")
    return None


def _entry(table: _Table) -> str | None:
    if "headlessEntry" not in table.given:
        return None
    value = table.given["headlessEntry"]
    if isinstance(value, str):
        return value
    table.error("headlessEntry", f"must be a string, a .py file inside the tool's folder, got {shown(value)}")
    return None
