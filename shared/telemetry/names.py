"""Every name that leaves the app: spans, attributes, metrics. docs/operations.md lists them; a test compares.

Where OpenTelemetry's semantic conventions have a name, it is theirs (general, HTTP, messaging, MCP); the rest
begins with `toolbox.`. Values of metrics' attributes come from closed sets or from the app's own configuration,
so that the number of series is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

#: What the spans and metrics come from, as OpenTelemetry calls it.
SCOPE: Final = "toolbox"


class SpanName(StrEnum):
    """The name of a span, or what it begins with: `mcp.call csv_profile`."""

    CALL = "mcp.call"
    SUBMIT = "job.submit"
    ATTEMPT = "job.attempt"
    DATAVERSE = "dataverse.request"
    POWER_PLATFORM = "powerplatform.request"
    UPSTREAM = "upstream.call"


class Attribute(StrEnum):
    """An attribute of spans, or of metrics too."""

    TOOL = "gen_ai.tool.name"
    METHOD_NAME = "mcp.method.name"
    #: The class of a failure: a stable word, never a text.
    ERROR = "error.type"
    #: The owner under a key of the app's own: the same owner has the same value, and nobody can tell who it is.
    OWNER = "enduser.pseudo.id"
    MODE = "toolbox.mode"
    EXECUTION_MODE = "toolbox.execution_mode"
    OUTCOME = "toolbox.outcome"
    CORRELATION_ID = "toolbox.correlation_id"
    JOB_ID = "toolbox.job.id"
    ATTEMPT = "toolbox.job.attempt"
    MOST_ATTEMPTS = "toolbox.job.max_attempts"
    #: A repeated call under its idempotency key: no new job was made.
    REUSED = "toolbox.job.reused"
    LOST = "toolbox.job.lost"
    MESSAGING_SYSTEM = "messaging.system"
    MESSAGING_OPERATION = "messaging.operation.type"
    HTTP_METHOD = "http.request.method"
    HTTP_STATUS = "http.response.status_code"
    HTTP_RESENDS = "http.request.resend_count"
    HOST = "server.address"
    #: The path without its query, with `{key}` or `{id}` in the place of all that names a row or a thing.
    ROUTE = "url.template"
    SERVICE = "toolbox.service"
    SERVER = "toolbox.upstream.server"
    TRANSPORT = "toolbox.upstream.transport"
    RECORD = "toolbox.record"


class Shape(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


#: Bounds of durations, in seconds: from an inline call to the longest job.
SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """`unit`: UCUM, as OpenTelemetry writes it."""

    name: str
    shape: Shape
    unit: str
    description: str


CALLS: Final = Metric("toolbox.calls", Shape.COUNTER, "{call}", "Calls of tools, by how they ended.")
CALL_DURATION: Final = Metric(
    "mcp.server.operation.duration", Shape.HISTOGRAM, "s", "From a call's arrival to its answer."
)
JOBS: Final = Metric("toolbox.jobs", Shape.COUNTER, "{job}", "Jobs that have ended.")
JOB_DURATION: Final = Metric("toolbox.job.duration", Shape.HISTOGRAM, "s", "From a job's call to its end.")
ATTEMPTS: Final = Metric("toolbox.job.attempts", Shape.COUNTER, "{attempt}", "Attempts that have ended.")
ATTEMPT_DURATION: Final = Metric(
    "toolbox.job.attempt.duration", Shape.HISTOGRAM, "s", "From an attempt's claim to its end."
)
QUEUE_TIME: Final = Metric(
    "toolbox.job.queue.duration", Shape.HISTOGRAM, "s", "How long a job waited for a worker, told at its claim."
)
QUEUE_AGE: Final = Metric(
    "toolbox.queue.age", Shape.GAUGE, "s", "How long the oldest waiting job waits, told by the timer."
)
WORKERS_LOST: Final = Metric(
    "toolbox.workers.lost", Shape.COUNTER, "{worker}", "Workers that were gone before their attempt's end."
)
DROPPED: Final = Metric(
    "toolbox.log_lines.dropped", Shape.COUNTER, "{line}", "Log lines that were not kept, by what they were of."
)
#: Not `http.client.request.duration`: of that name Application Insights makes a metric without attributes.
REQUEST_DURATION: Final = Metric(
    "toolbox.service.request.duration",
    Shape.HISTOGRAM,
    "s",
    "Requests to Dataverse and the Power Platform API.",
)
UPSTREAM_DURATION: Final = Metric(
    "mcp.client.operation.duration", Shape.HISTOGRAM, "s", "Calls of other servers' tools."
)
METRICS: Final = (
    CALLS,
    CALL_DURATION,
    JOBS,
    JOB_DURATION,
    ATTEMPTS,
    ATTEMPT_DURATION,
    QUEUE_TIME,
    QUEUE_AGE,
    WORKERS_LOST,
    DROPPED,
    REQUEST_DURATION,
    UPSTREAM_DURATION,
)
