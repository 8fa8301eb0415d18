"""Sorting the app's functions by what triggers them, and refusing what this host cannot run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from infra.local.host.settings import is_disabled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from infra.local.host.values import Binding, Function

logger = logging.getLogger("host.start")


class Trigger(StrEnum):
    """The kinds of trigger that can be switched on and off on the command line."""

    HTTP = "http"
    MCP = "mcp"
    QUEUE = "queue"
    TIMER = "timer"


_KINDS = {
    "httptrigger": Trigger.HTTP,
    "mcptooltrigger": Trigger.MCP,
    "mcpresourcetrigger": Trigger.MCP,
    "mcpprompttrigger": Trigger.MCP,
    "queuetrigger": Trigger.QUEUE,
    "timertrigger": Trigger.TIMER,
}
_INPUTS = frozenset({"mcptoolproperty"})
_OUTPUTS = frozenset({"http", "queue"})


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The functions that run, each with its trigger binding, keyed by lower-case trigger type."""

    functions: tuple[Function, ...]
    disabled: frozenset[str] = frozenset()
    by_type: Mapping[str, list[tuple[Function, Binding]]] = field(default_factory=dict)

    def of(self, trigger_type: str) -> list[tuple[Function, Binding]]:
        """Functions with that trigger type, in the order they were indexed."""
        return self.by_type.get(trigger_type.lower(), [])

    def active(self) -> list[tuple[Function, Binding]]:
        """Every function that runs."""
        return [item for items in self.by_type.values() for item in items]

    def has(self, kind: Trigger) -> bool:
        """Whether any function has a trigger of that kind."""
        return any(_KINDS[name] is kind for name in self.by_type)


def build(
    functions: Iterable[Function], kinds: Collection[Trigger], environment: Mapping[str, str]
) -> Catalogue:
    """Keep the functions whose trigger kind is wanted, that are not disabled and that this host can run.

    One that it cannot run is logged as an error and left out, like a function "in error" of the real host.
    """
    functions = tuple(functions)
    by_type: dict[str, list[tuple[Function, Binding]]] = {}
    disabled = set()
    for function in functions:
        trigger = function.trigger
        problem = _unsupported(function)
        if trigger is None or problem:
            logger.error(
                "The '%s' function is in error: %s", function.name, problem or "it has no trigger binding."
            )
        elif is_disabled(function.name, environment):
            disabled.add(function.name)
        elif _KINDS[trigger.type.lower()] in kinds:
            by_type.setdefault(trigger.type.lower(), []).append((function, trigger))
    return Catalogue(functions, frozenset(disabled), by_type)


def _unsupported(function: Function) -> str | None:
    trigger = function.trigger
    if trigger is not None and trigger.type.lower() not in _KINDS:
        return f"this host has no {trigger.type}."
    for binding in function.inputs:
        if binding.type.lower() not in _INPUTS:
            return f"this host has no {binding.type} input binding."
    for binding in function.outputs:
        if binding.type.lower() not in _OUTPUTS:
            return f"this host has no {binding.type} output binding."
    return None
