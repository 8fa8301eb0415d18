"""Spans as the app makes them: without OpenTelemetry, which is loaded later and elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextvars import Token
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Final, Protocol, Self

from shared.telemetry.names import Attribute, Metric
from shared.telemetry.sampling import Sampler
from shared.telemetry.trace import Place, current, new_span_id, new_trace_id

type Value = str | int | float | bool
type Attributes = dict[Attribute, Value]

#: Characters of one attribute's text.
TEXT_LIMIT: Final = 200


class Kind(StrEnum):
    """Names as OpenTelemetry's `SpanKind` has them."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    CLIENT = "CLIENT"
    PRODUCER = "PRODUCER"
    CONSUMER = "CONSUMER"


@dataclass(frozen=True, slots=True)
class Ended:
    """A span that is over. Times: nanoseconds since 1970."""

    name: str
    kind: Kind
    place: Place
    parent: Place | None
    links: tuple[Place, ...]
    start: int
    end: int
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Measured:
    """One value of a metric."""

    metric: Metric
    value: float
    attributes: Attributes


class Output(Protocol):
    """Where spans and measurements go. Takes anything at once, and never raises."""

    sampler: Sampler
    #: Whether `traceparent` is taken from callers and given to the servers that are called.
    propagates: bool

    def put(self, item: Ended | Measured) -> None: ...

    def pseudonym(self, owner: str) -> str:
        """An owner as it may be exported; "" when there is no key to hide it with."""


class Switch:
    """Whether telemetry is on: what a hook looks at first."""

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out: Output | None = None


switch: Final = Switch()


class NoSpan:
    """Stands in the place of a span while telemetry is off."""

    __slots__ = ()

    @property
    def traceparent(self) -> str:
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Recorded:
    """A span: entered, told of, left. What runs within it is under it, on whatever thread or loop it runs.

    An exception that leaves it gives it an error, unless it was given one before.
    """

    __slots__ = (
        "_ended",
        "_kind",
        "_links",
        "_name",
        "_out",
        "_token",
        "attributes",
        "parent",
        "place",
        "start",
    )

    def __init__(
        self,
        out: Output,
        name: str,
        kind: Kind,
        *,
        parent: Place | None = None,
        trace_id: int = 0,
        span_id: int = 0,
        sampled: bool | None = None,
        links: Sequence[Place] = (),
    ) -> None:
        """`parent`: its place; the ids are made when they are 0, and `sampled` is decided when it is None."""
        self._out = out
        self._name = name
        self._kind = kind
        self._links = tuple(links)
        self.parent = parent
        trace_id = parent.trace_id if parent is not None else trace_id or new_trace_id()
        if sampled is None:
            sampled = out.sampler.samples(trace_id, parent)
        self.place = Place(trace_id, span_id or new_span_id(), sampled)
        self.attributes: Attributes = {}
        self.start = time.time_ns()
        self._token: Token[Place | None] | None = None
        self._ended = False

    @property
    def out(self) -> Output:
        return self._out

    @property
    def traceparent(self) -> str:
        return self.place.traceparent

    @property
    def seconds(self) -> float:
        return max(time.time_ns() - self.start, 0) / 1e9

    def move_under(self, parent: Place, kind: Kind) -> None:
        """Another parent, which became known after the start. Only before anything is under this span."""
        self.parent, self._kind = parent, kind
        sampled = self._out.sampler.samples(parent.trace_id, parent)
        self.place = Place(parent.trace_id, self.place.span_id, sampled)
        if self._token is not None:
            current.set(self.place)

    def link(self, place: Place) -> None:
        self._links = (*self._links, place)

    def set(self, attribute: Attribute, value: Value | None) -> None:
        """None and "" are left out: what is not known is not told."""
        if value is not None and value != "":
            self.attributes[attribute] = value[:TEXT_LIMIT] if isinstance(value, str) else value

    def __enter__(self) -> Self:
        self._token = current.set(self.place)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            current.reset(self._token)
        if error is not None and Attribute.ERROR not in self.attributes:
            self.set(Attribute.ERROR, error_type(error))
        if self.place.sampled and not self._ended:
            self._ended = True
            self._out.put(
                Ended(
                    self._name,
                    self._kind,
                    self.place,
                    self.parent,
                    self._links,
                    self.start,
                    max(time.time_ns(), self.start),
                    self.attributes,
                )
            )


type Span = Recorded | NoSpan

NO_SPAN: Final = NoSpan()


def error_type(error: BaseException) -> str:
    """An error's stable word: the code of one of the app's own errors, else its class."""
    code = getattr(type(error), "code", None)
    return code if isinstance(code, str) else type(error).__name__


def count(out: Output, metric: Metric, value: float, **attributes: Value | None) -> None:
    """`attributes`: by the names of `Attribute`'s members; what is None or "" is left out."""
    told = {Attribute[name]: value for name, value in attributes.items() if value is not None and value != ""}
    out.put(Measured(metric, value, told))
