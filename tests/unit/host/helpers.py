"""Values for the unit tests of the local host."""

from __future__ import annotations

from typing import Any

from infra.local.host.values import Binding, Direction, Function


def trigger(kind: str, **fields: Any) -> tuple[Function, Binding]:
    """A function with one trigger binding of that type; ``function`` names it."""
    name = fields.pop("function", "f")
    binding = Binding("context", kind, Direction.IN, fields)
    return Function(f"id-{name}", name, (binding,)), binding
