"""OpenTelemetry's own objects: made of what the pipeline hands on, and sent by its exporters.

Application Insights: `azure-monitor-opentelemetry-exporter`, which is the exporters alone. The distribution
`azure-monitor-opentelemetry` brings eleven instrumentations besides, which would patch libraries, record URLs
with their queries, and count the host's logs a second time. OTLP: http/protobuf, without gRPC's binary.

No global provider is set: what libraries measure of themselves is not exported. (Loads the SDK.)
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from shared.telemetry.names import METRICS, SCOPE, SECONDS, Attribute, Metric, Shape
from shared.telemetry.setup import CONNECTION_STRING, Plan
from shared.telemetry.spans import Ended, Measured, Value
from shared.telemetry.trace import Place

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger(__name__)

#: What the exporter does besides unless told not to: it measures itself for Microsoft, and asks for settings.
_BESIDES: Final = {
    "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true",
    "APPLICATIONINSIGHTS_CONTROLPLANE_DISABLED": "true",
}
#: They tell of every try that fails, with addresses; `_tell` says it once a minute instead.
_TALKATIVE: Final = (
    "opentelemetry",
    "azure.monitor.opentelemetry.exporter",
    "azure.core.pipeline.policies.http_logging_policy",
)
TELL_EVERY: Final = 60.0
#: How Application Insights learns of how many spans one stands for, in percent.
_SAMPLE_RATE: Final = "_MS.sampleRate"
#: It keeps no attribute whose name begins like one of the conventions' groups.
_AZURE_NAMES: Final = {
    Attribute.ERROR: "toolbox.error_type",
    Attribute.ROUTE: "toolbox.route",
    Attribute.HTTP_RESENDS: "toolbox.resends",
}


class Exporter:
    """Not thread-safe, but for `flush` and `close`, which may be called from anywhere."""

    def __init__(self, plan: Plan) -> None:
        _quiet()
        for name, value in _BESIDES.items():
            os.environ.setdefault(name, value)
        self._resource = _resource(plan)
        self._scope = InstrumentationScope(SCOPE)
        self._rate = plan.sampler.ratio * 100
        self._processors = [
            (BatchSpanProcessor(_ToldSpans(made)), is_azure) for made, is_azure in _span_exporters(plan)
        ]
        readers: list[MetricReader] = [
            PeriodicExportingMetricReader(_ToldMetrics(made)) for made in _metric_exporters(plan)
        ]
        self._meters = None
        self._record: dict[str, Callable[..., None]] = {}
        if readers:
            self._meters = MeterProvider(readers, self._resource, shutdown_on_exit=False, views=_views())
            meter = self._meters.get_meter(SCOPE)
            self._record = {metric.name: _instrument(meter, metric) for metric in METRICS}

    def take(self, item: Ended | Measured) -> None:
        """Hands one on. Blocks for no network."""
        if isinstance(item, Measured):
            record = self._record.get(item.metric.name)
            if record is not None:
                record(item.value, attributes=_attributes(item))
            return
        for processor, is_azure in self._processors:
            processor.on_end(self._span(item, is_azure))

    def flush(self, seconds: float) -> None:
        """Sends all that was taken; tries for about that long."""
        for processor, _ in self._processors:
            processor.force_flush(int(seconds * 1000))
        if self._meters is not None:
            self._meters.force_flush(int(seconds * 1000))

    def close(self, seconds: float) -> None:
        """The same, and ends."""
        if self._meters is not None:
            self._meters.shutdown(timeout_millis=seconds * 1000)
        for processor, _ in self._processors:
            processor.shutdown()  # type: ignore[no-untyped-call]

    def _span(self, ended: Ended, is_azure: bool) -> ReadableSpan:
        attributes = _attributes(ended)
        if is_azure:
            attributes |= _for_azure(ended.attributes)
            attributes.pop(Attribute.HOST, None)  # it is in the address, where it needs no port
            if self._rate < 100:
                attributes[_SAMPLE_RATE] = self._rate
        failed = Attribute.ERROR in ended.attributes
        return ReadableSpan(
            name=ended.name,
            context=_context(ended.place, is_remote=False),
            parent=None if ended.parent is None else _context(ended.parent, is_remote=True),
            resource=self._resource,
            attributes=attributes,
            links=tuple(Link(_context(place, is_remote=True)) for place in ended.links),
            kind=SpanKind[ended.kind],
            status=Status(StatusCode.ERROR) if failed else Status(StatusCode.UNSET),
            start_time=ended.start,
            end_time=ended.end,
            instrumentation_scope=self._scope,
        )


class _Told:
    """Says that an export has failed, once in a while."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._last = float("-inf")

    def failed(self) -> None:
        now = time.monotonic()
        if now - self._last > TELL_EVERY:
            self._last = now
            _LOG.warning("telemetry: %s could not be exported, and are lost", self._what)


class _ToldSpans(SpanExporter):
    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._told = _Told("spans")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:
            if result is not SpanExportResult.SUCCESS:
                self._told.failed()
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


class _ToldMetrics(MetricExporter):
    def __init__(self, inner: MetricExporter) -> None:
        super().__init__(inner._preferred_temporality, inner._preferred_aggregation)
        self._inner = inner
        self._told = _Told("metrics")

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        result = MetricExportResult.FAILURE
        try:
            result = self._inner.export(metrics_data, timeout_millis=timeout_millis, **kwargs)
        finally:
            if result is not MetricExportResult.SUCCESS:
                self._told.failed()
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._inner.shutdown(timeout_millis=timeout_millis, **kwargs)


def _span_exporters(plan: Plan) -> list[tuple[SpanExporter, bool]]:
    """(exporter, whether it is that of Application Insights)."""
    made: list[tuple[SpanExporter, bool]] = []
    if plan.otlp_traces:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        made.append((OTLPSpanExporter(), False))
    if plan.azure_traces:
        from azure.monitor.opentelemetry.exporter import AzureMonitorTraceExporter

        made.append((AzureMonitorTraceExporter(**_azure()), True))
    return made


def _metric_exporters(plan: Plan) -> list[MetricExporter]:
    made: list[MetricExporter] = []
    if plan.otlp_metrics:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        made.append(OTLPMetricExporter())
    if plan.azure_metrics:
        from azure.monitor.opentelemetry.exporter import AzureMonitorMetricExporter

        made.append(AzureMonitorMetricExporter(**_azure()))
    return made


def _azure() -> dict[str, Any]:
    """Identity comes from `APPLICATIONINSIGHTS_AUTHENTICATION_STRING`, which the exporter reads by itself.

    Nothing is kept on disk: an instance of the plan loses its disk anyway, and others may read it.
    """
    return {"connection_string": os.environ[CONNECTION_STRING], "disable_offline_storage": True}


def _resource(plan: Plan) -> Resource:
    """`OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over what the platform says."""
    instance = f"{plan.instance}-{os.getpid()}" if plan.instance else str(uuid.uuid4())
    told = dict(Resource.create().attributes)
    if str(told.get("service.name", "")).startswith("unknown_service"):
        told["service.name"] = plan.service
    if not _says_instance():
        told["service.instance.id"] = instance
    return Resource(told)


def _says_instance() -> bool:
    """OpenTelemetry makes an id up where the operator gives none: the platform's tells more."""
    pairs = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(",")
    return any(pair.partition("=")[0].strip() == "service.instance.id" for pair in pairs)


def _views() -> list[View]:
    durations = [metric.name for metric in METRICS if metric.shape is Shape.HISTOGRAM]
    return [
        View(instrument_name=name, aggregation=ExplicitBucketHistogramAggregation(SECONDS))
        for name in durations
    ]


def _instrument(meter: Any, metric: Metric) -> Callable[..., None]:
    """What records one value."""
    about = {"name": metric.name, "unit": metric.unit, "description": metric.description}
    record: Callable[..., None]
    match metric.shape:
        case Shape.COUNTER:
            record = meter.create_counter(**about).add
        case Shape.HISTOGRAM:
            record = meter.create_histogram(**about).record
        case Shape.GAUGE:
            record = meter.create_gauge(**about).set
    return record


def _attributes(item: Ended | Measured) -> dict[str, Value]:
    return {str(name): value for name, value in item.attributes.items()}


def _for_azure(told: Mapping[Attribute, Value]) -> dict[str, Value]:
    """What its exporter needs besides, or leaves out of the properties under the name of the conventions.

    It makes a request's name and data of the whole address: here, of the host and the route.
    """
    more: dict[str, Value] = {_AZURE_NAMES[name]: told[name] for name in _AZURE_NAMES if name in told}
    host, route = told.get(Attribute.HOST), told.get(Attribute.ROUTE, "")
    if host is not None:
        more["url.full"] = f"https://{host}/{route}"
    return more


def _context(place: Place, *, is_remote: bool) -> SpanContext:
    return SpanContext(place.trace_id, place.span_id, is_remote, TraceFlags(int(place.sampled)))


def _quiet() -> None:
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
