"""What an operator sees of the app from outside: one trace for each call, and metrics.

    mcp.call ── job.submit ── job.attempt ── dataverse.request / powerplatform.request / upstream.call

Off unless `APPLICATIONINSIGHTS_CONNECTION_STRING` or an OTLP endpoint is set (see `setup`). While it is off, a
hook costs one look at an attribute: there is no thread, no socket, and nothing of OpenTelemetry is imported.

While it is on, a call pays for putting what it measured into a list. A thread turns that into OpenTelemetry's
own objects and hands it to its exporters; it loads them after the first call is over. A collector that is slow
or dead costs the telemetry, never a call. A tool's own process tells its worker (`apart`).

The rest of the app uses what is named here and nothing else. No hook raises, and none takes arguments, results,
texts of errors, tokens or names of owners: `names` lists all that is ever told.
"""

from shared.telemetry.apart import Taker
from shared.telemetry.calls import adopt, call, end_call
from shared.telemetry.jobs import (
    attempt,
    end_attempt,
    job_ended,
    queue_looked_at,
    submission,
    submitted,
    worker_lost,
)
from shared.telemetry.logs import records_dropped
from shared.telemetry.outgoing import answered, headers, into_message, request, upstream, upstream_answered
from shared.telemetry.setup import start
from shared.telemetry.spans import NO_SPAN, Span

__all__ = [
    "NO_SPAN",
    "Span",
    "Taker",
    "adopt",
    "answered",
    "attempt",
    "call",
    "end_attempt",
    "end_call",
    "headers",
    "into_message",
    "job_ended",
    "queue_looked_at",
    "records_dropped",
    "request",
    "start",
    "submission",
    "submitted",
    "upstream",
    "upstream_answered",
    "worker_lost",
]
