"""An OTLP collector in the test's process: takes http/protobuf, and keeps what came, parsed and as bytes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from tests.support.loopback import QuietHandler, serving


@dataclass(frozen=True)
class Link:
    trace_id: str
    span_id: str


@dataclass(frozen=True)
class Span:
    """An exported span; ids as hex digits, `parent` empty for none."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: str
    failed: bool
    start: int
    end: int
    attributes: dict[str, Any]
    links: tuple[Link, ...]
    resource: dict[str, Any]


@dataclass(frozen=True)
class Point:
    """A point of a metric: `value` of a counter or gauge, `count` and `value` (the sum) of a histogram."""

    value: float
    count: int
    attributes: dict[str, Any]


class Collector:
    """What has come so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bodies: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        #: The answer to every request.
        self.status = 200

    def add(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        with self._lock:
            self._bodies.append((path, body))
            self.headers.append(headers)

    @property
    def everything(self) -> bytes:
        with self._lock:
            return b"\0".join(body for _, body in self._bodies)

    @property
    def requests(self) -> int:
        with self._lock:
            return len(self._bodies)

    def spans(self) -> list[Span]:
        found: list[Span] = []
        for body in self._of("/v1/traces"):
            for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                resource = _attributes(group.resource.attributes)
                found += [_span(one, resource) for scope in group.scope_spans for one in scope.spans]
        return found

    def points(self, name: str) -> list[Point]:
        """The newest points of a metric: each set of attributes of each process once."""
        newest: dict[Any, Point] = {}
        for body in self._of("/v1/metrics"):
            for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                process = str(_attributes(group.resource.attributes).get("service.instance.id"))
                for scope in group.scope_metrics:
                    for metric in scope.metrics:
                        if metric.name == name:
                            for point in _points(metric):
                                newest[process, tuple(sorted(point.attributes.items()))] = point
        return list(newest.values())

    def units(self) -> dict[str, str]:
        return {
            metric.name: metric.unit
            for body in self._of("/v1/metrics")
            for group in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in group.scope_metrics
            for metric in scope.metrics
        }

    def _of(self, path: str) -> list[bytes]:
        with self._lock:
            return [body for one, body in self._bodies if one == path]


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens at `url`."""
    collector = Collector()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.add(self.path, body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(collector.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

    with serving(Handler) as collector.url:
        yield collector


def _span(one: Any, resource: dict[str, Any]) -> Span:
    return Span(
        name=one.name,
        trace_id=one.trace_id.hex(),
        span_id=one.span_id.hex(),
        parent=one.parent_span_id.hex(),
        kind=WireSpan.SpanKind.Name(one.kind).removeprefix("SPAN_KIND_"),
        failed=one.status.code == 2,
        start=one.start_time_unix_nano,
        end=one.end_time_unix_nano,
        attributes=_attributes(one.attributes),
        links=tuple(Link(link.trace_id.hex(), link.span_id.hex()) for link in one.links),
        resource=resource,
    )


def _points(metric: Any) -> list[Point]:
    kind = metric.WhichOneof("data")
    data = getattr(metric, kind).data_points
    if kind == "histogram":
        return [Point(one.sum, one.count, _attributes(one.attributes)) for one in data]
    return [Point(one.as_double or one.as_int, 0, _attributes(one.attributes)) for one in data]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
