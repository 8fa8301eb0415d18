"""Whether and how telemetry is exported: read from the environment once, when the app starts.

    APPLICATIONINSIGHTS_CONNECTION_STRING   exports to Application Insights
    OTEL_EXPORTER_OTLP_ENDPOINT             exports by OTLP (http/protobuf); or for one signal alone:
                                            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, …_METRICS_ENDPOINT
    OTEL_SDK_DISABLED=true                  neither, whatever else is set
    OTEL_TRACES_EXPORTER=none               no traces
    OTEL_METRICS_EXPORTER=none              no metrics
    OTEL_TRACES_SAMPLER, …_ARG              see `sampling`
    OTEL_PROPAGATORS                        without `tracecontext`: no trace is taken over, and none handed on

All other `OTEL_*` variables are read by OpenTelemetry's own code. A wrong value is logged and the default is
taken: telemetry must not keep an app from starting.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.telemetry.sampling import Sampler, sampler_of
from shared.telemetry.spans import switch

_LOG = logging.getLogger(__name__)

CONNECTION_STRING: Final = "APPLICATIONINSIGHTS_CONNECTION_STRING"
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS_ENDPOINT: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
_PROTOCOLS: Final = (
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
)
PROTOCOL: Final = "http/protobuf"
#: Hex digits of an owner's pseudonym.
_PSEUDONYM: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is exported where. The exporters read their own settings."""

    otlp_traces: bool
    otlp_metrics: bool
    azure_traces: bool
    azure_metrics: bool
    sampler: Sampler
    propagates: bool
    #: What the app is called: `service.name`.
    service: str
    #: Which process of it this is: `service.instance.id`; "" when the platform does not say.
    instance: str

    @property
    def traces(self) -> bool:
        return self.otlp_traces or self.azure_traces

    @property
    def metrics(self) -> bool:
        return self.otlp_metrics or self.azure_metrics


def plan_of(environ: Mapping[str, str]) -> tuple[Plan | None, list[str]]:
    """(the plan, or None when nothing is to be exported; what is wrong with the settings)."""

    def has(*settings: str) -> bool:
        return any(environ.get(setting, "").strip() for setting in settings)

    def wanted(signal: str) -> bool:
        return environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() != "none"

    azure = has(CONNECTION_STRING)
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None, []
    if not azure and not has(ENDPOINT, TRACES_ENDPOINT, METRICS_ENDPOINT):
        return None, []
    sampler, fault = sampler_of(environ)
    faults = [fault] if fault else []
    wrong = [name for name in _PROTOCOLS if environ.get(name, PROTOCOL).strip() not in ("", PROTOCOL)]
    faults += [f"{name}: this app speaks {PROTOCOL} only, and does so" for name in wrong]
    propagators = environ.get("OTEL_PROPAGATORS", "").lower().replace(",", " ").split()
    plan = Plan(
        otlp_traces=has(ENDPOINT, TRACES_ENDPOINT) and wanted("TRACES"),
        otlp_metrics=has(ENDPOINT, METRICS_ENDPOINT) and wanted("METRICS"),
        azure_traces=azure and wanted("TRACES"),
        azure_metrics=azure and wanted("METRICS"),
        sampler=sampler,
        propagates=not propagators or "tracecontext" in propagators,
        service=environ.get("WEBSITE_SITE_NAME", "").strip() or "toolbox",
        instance=environ.get("WEBSITE_INSTANCE_ID", "").strip()[:32],
    )
    return (plan if plan.traces or plan.metrics else None), faults


def start(seal_keys: tuple[bytes, ...] = (), environ: Mapping[str, str] = os.environ) -> None:
    """Switches telemetry on, if the settings say so. Starts no thread and imports nothing: the first call does.

    `seal_keys`: the app's own keys; the first one hides the owners' names.
    """
    if switch.out is not None:
        return
    plan, faults = plan_of(environ)
    for fault in faults:
        _LOG.warning("telemetry: %s", fault)
    if plan is None:
        return
    from shared.telemetry.pipeline import Pipeline

    key = hashlib.sha256(b"toolbox telemetry owner" + seal_keys[0]).digest() if seal_keys else b""
    switch.out = Pipeline(plan, key)


def pseudonym(key: bytes, owner: str) -> str:
    """The same for the same owner and key; tells nobody without the key who it is. "" without a key."""
    if not key or not owner:
        return ""
    return hmac.new(key, owner.encode(), hashlib.sha256).hexdigest()[:_PSEUDONYM]
