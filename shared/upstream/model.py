"""What an upstream server lists: its tools and prompts, in the form of the wire.

Standard library only: the lock file is read into these at load of the app.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

#: The schema of a tool that lists none, or one that is no object.
ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """One entry of `tools/list`. Schemas, annotations, icons and meta are as the server sent them
    (camelCase)."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Mapping[str, Any] = field(default_factory=lambda: dict(ANY_OBJECT))
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    icons: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] | None = None

    @classmethod
    def from_wire(cls, entry: object) -> Self | None:
        """None for an entry without a usable name; anything else that is malformed counts as absent."""
        if not isinstance(entry, Mapping) or not (name := _text(entry.get("name"))):
            return None
        return cls(
            name=name,
            title=_text(entry.get("title")),
            description=_text(entry.get("description")),
            input_schema=_mapping(entry.get("inputSchema")) or dict(ANY_OBJECT),
            output_schema=_mapping(entry.get("outputSchema")),
            annotations=_mapping(entry.get("annotations")),
            icons=_mappings(entry.get("icons")),
            meta=_mapping(entry.get("_meta")),
        )


@dataclass(frozen=True, slots=True)
class UpstreamPrompt:
    """One entry of `prompts/list`. An argument is `{"name": …, "description"?: …, "required"?: …}`."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_wire(cls, entry: object) -> Self | None:
        """None for an entry without a usable name; anything else that is malformed counts as absent."""
        if not isinstance(entry, Mapping) or not (name := _text(entry.get("name"))):
            return None
        return cls(
            name=name,
            title=_text(entry.get("title")),
            description=_text(entry.get("description")),
            arguments=tuple(item for item in _mappings(entry.get("arguments")) if _text(item.get("name"))),
        )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) else None


def _mappings(value: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()
