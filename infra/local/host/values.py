"""The values that cross the boundary between host and worker, and the functions as the worker indexed them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Direction(StrEnum):
    """Direction of a binding, as the decorators write it."""

    IN = "IN"
    OUT = "OUT"
    INOUT = "INOUT"


class Kind(StrEnum):
    """What a value is, in the terms of the Functions wire (TypedData)."""

    STRING = "string"
    JSON = "json"  # the value is JSON text
    BYTES = "bytes"
    HTTP = "http"
    INT = "int"
    DOUBLE = "double"


@dataclass(frozen=True, slots=True)
class Value:
    """A value that crosses the boundary between host and worker."""

    kind: Kind
    data: Any


@dataclass(frozen=True, slots=True)
class HttpCall:
    """An HTTP request as the worker gets it: lower-case header names, full url, decoded route parameters."""

    method: str
    url: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    route: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie that an HTTP answer sets. ``expires`` is in seconds since the epoch."""

    name: str
    value: str
    domain: str | None = None
    path: str | None = None
    expires: int | None = None
    max_age: float | None = None
    secure: bool = False
    http_only: bool = False
    same_site: str | None = None


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP answer as the worker gave it (``data`` of a Value of kind http)."""

    status: int
    headers: tuple[tuple[str, str], ...]
    cookies: tuple[Cookie, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding of a function; ``fields`` is its JSON object with camelCase keys."""

    name: str
    type: str
    direction: Direction
    fields: Mapping[str, Any] = field(hash=False)

    def text(self, key: str, default: str = "") -> str:
        """A string field, or the default when it is absent or null."""
        value = self.fields.get(key)
        return default if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Function:
    """A function as indexed by the worker."""

    id: str
    name: str
    bindings: tuple[Binding, ...]

    @property
    def trigger(self) -> Binding | None:
        """The trigger binding; None only for an app that the decorators should have refused."""
        return next((b for b in self.bindings if b.type.lower().endswith("trigger")), None)

    @property
    def inputs(self) -> tuple[Binding, ...]:
        """Input bindings beside the trigger."""
        return tuple(b for b in self.bindings if b.direction is Direction.IN and b is not self.trigger)

    @property
    def outputs(self) -> tuple[Binding, ...]:
        """Output bindings, ``$return`` included."""
        return tuple(b for b in self.bindings if b.direction is Direction.OUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an invocation gave. ``error`` is the exception's repr or message, for the log only."""

    ok: bool
    returned: Value | None = None
    outputs: tuple[tuple[str, Value], ...] = ()
    error: str | None = None
