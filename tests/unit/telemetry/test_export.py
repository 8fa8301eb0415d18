"""From the settings to the wire: what is switched on, what a collector gets, and what it costs while off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shared.telemetry import names
from shared.telemetry.names import Attribute
from shared.telemetry.pipeline import MOST, Pipeline
from shared.telemetry.setup import Plan, plan_of
from shared.telemetry.spans import Kind, Measured, Recorded
from tests.support.otlp import Collector, collecting

ROOT = Path(__file__).resolve().parents[3]
ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
AZURE = {"APPLICATIONINSIGHTS_CONNECTION_STRING": "InstrumentationKey=x"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": " "},
        {**AZURE, **ENDPOINT, "OTEL_SDK_DISABLED": "True"},
        {**AZURE, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_it_is_off_unless_there_is_somewhere_to_export_to(settings: dict[str, str]) -> None:
    assert plan_of(settings)[0] is None


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        (ENDPOINT, {"otlp_traces", "otlp_metrics"}),
        (AZURE, {"azure_traces", "azure_metrics"}),
        ({**AZURE, **ENDPOINT}, {"otlp_traces", "otlp_metrics", "azure_traces", "azure_metrics"}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, {"otlp_traces"}),
        ({**ENDPOINT, "OTEL_METRICS_EXPORTER": "none"}, {"otlp_traces"}),
    ],
)
def test_what_is_exported_where(settings: dict[str, str], on: set[str]) -> None:
    plan, faults = plan_of(settings)
    assert plan is not None
    assert faults == []
    signals = ("otlp_traces", "otlp_metrics", "azure_traces", "azure_metrics")
    assert {signal for signal in signals if getattr(plan, signal)} == on


def test_wrong_settings_are_named_and_do_not_stop_it() -> None:
    more = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_SAMPLER": "some", "OTEL_PROPAGATORS": "b3"}
    plan, faults = plan_of({**ENDPOINT, **more})
    assert plan is not None
    assert not plan.propagates
    assert sorted(fault.split()[0].strip(":") for fault in faults) == [
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_TRACES_SAMPLER",
    ]


def plan_to(collector: Collector, monkeypatch: pytest.MonkeyPatch, **more: str) -> Plan:
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "50", **more}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    plan, _ = plan_of(os.environ)
    assert plan is not None
    return plan


def test_a_span_and_a_metric_arrive_as_they_were_put(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        resource = "deployment.environment.name=test,service.instance.id=i1"
        plan = plan_to(collector, monkeypatch, OTEL_RESOURCE_ATTRIBUTES=resource, WEBSITE_SITE_NAME="site")
        pipeline = Pipeline(plan, b"", quiet=0)
        before = threading.active_count()
        with (
            Recorded(pipeline, "outer", Kind.SERVER) as outer,
            Recorded(pipeline, "inner", Kind.CLIENT) as inner,
        ):
            inner.parent = outer.place
            inner.set(Attribute.ERROR, "timeout")
            inner.set(Attribute.TOOL, "x" * 1000)
        pipeline.put(Measured(names.CALLS, 2, {Attribute.TOOL: "t"}))
        pipeline.put(Measured(names.CALL_DURATION, 0.3, {Attribute.TOOL: "t"}))
        pipeline.put(Measured(names.QUEUE_AGE, 9.5, {}))
        pipeline.flush(5)
        pipeline.close(5)
        assert threading.active_count() <= before + 1, threading.enumerate()
        found = {span.name: span for span in collector.spans()}
        assert found["inner"].attributes["error.type"] == "timeout"
        assert len(found["inner"].attributes["gen_ai.tool.name"]) == 200
        assert (found["inner"].failed, found["outer"].failed) == (True, False)
        assert (found["outer"].kind, found["inner"].kind) == ("SERVER", "CLIENT")
        assert found["outer"].resource["service.name"] == "site"
        assert found["outer"].resource["service.instance.id"] == "i1"
        assert found["outer"].resource["deployment.environment.name"] == "test"
        assert [point.value for point in collector.points("toolbox.calls")] == [2]
        (duration,) = collector.points("mcp.server.operation.duration")
        assert duration.count == 1
        assert duration.value == pytest.approx(0.3)
        assert [point.value for point in collector.points("toolbox.queue.age")] == [9.5]
        assert collector.units()["toolbox.calls"] == "{call}"


def test_putting_never_waits_and_what_is_too_much_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent meanwhile: the thread still leaves the first call in peace."""
    with collecting() as collector:
        pipeline = Pipeline(plan_to(collector, monkeypatch), b"", quiet=600)
        monkeypatch.setattr(pipeline, "_start", lambda: None)
        item = Measured(names.CALLS, 1, {Attribute.TOOL: "t"})
        started = time.perf_counter()
        for _ in range(MOST + 500):
            pipeline.put(item)
        assert time.perf_counter() - started < 2
        pipeline.flush(10)
        pipeline.close(5)
        assert [point.value for point in collector.points("toolbox.calls")] == [MOST]


def test_exporters_that_cannot_be_made_switch_it_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection string without a key: its exporter refuses it."""
    secret = "Nonsense=sentinel-of-a-key"
    monkeypatch.setenv("APPLICATIONINSIGHTS_CONNECTION_STRING", secret)
    plan, _ = plan_of({"APPLICATIONINSIGHTS_CONNECTION_STRING": secret})
    assert plan is not None
    pipeline = Pipeline(plan, b"", quiet=0)
    monkeypatch.setattr(pipeline, "_start", lambda: None)
    pipeline.put(Measured(names.CALLS, 1, {}))
    pipeline.flush(1)
    pipeline.put(Measured(names.CALLS, 1, {}))
    pipeline.flush(1)
    pipeline.close(1)
    assert [record.levelname for record in caplog.records if "telemetry is off" in record.message] == ["ERROR"]
    assert "sentinel-of-a-key" not in caplog.text


#: Runs a call through the real triggers and says what that has loaded and started.
SCRIPT = """
import asyncio, json, socket, sys, threading
sockets = []
connect = socket.socket.connect
socket.socket.connect = lambda self, address: sockets.append(str(address)) or connect(self, address)
from pathlib import Path
from shared.toolbox import Toolbox
toolbox = Toolbox(Path("tools"))
(tool,) = [tool for tool in toolbox.tools if tool.name == "csv_profile"]
told = asyncio.run(toolbox.tool_trigger(tool)(json.dumps({"arguments": {"csv": "a\\n1\\n"}}), None))
assert not json.loads(json.loads(told)["content"]).get("isError"), told
threading.Event().wait(0.3)  # what a first call could still wait for would be loading by now
threads = [thread.name for thread in threading.enumerate()]
print(json.dumps([sorted(sys.modules), threads, sockets]))
"""


def test_while_off_a_call_loads_starts_and_opens_nothing() -> None:
    modules, threads, sockets = called()
    assert not [name for name in modules if name.split(".")[0] == "opentelemetry"]
    assert "shared.telemetry.pipeline" not in modules
    assert not [name for name in threads if "telemetry" in name or "Otel" in name]
    assert sockets == []


def test_while_on_the_first_call_waits_for_no_exporter() -> None:
    modules, threads, _ = called(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert not [name for name in modules if name.split(".")[0] == "opentelemetry"]
    assert "telemetry" in threads


def called(**settings: str) -> tuple[list[str], list[str], list[str]]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "APPLICATIONINS"))
    }
    clean |= {
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "TOOLBOX_SEAL_KEY": "cGxhY2Vob2xkZXItc2VhbC1rZXktZW11bGF0b3ItMzI=",
        "MCP_AUTH_TOKEN": "a-token-of-the-test",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=clean, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    modules, threads, sockets = json.loads(done.stdout)
    return modules, threads, sockets


def test_application_insights_gets_what_an_operator_asks_for() -> None:
    """Its exporter drops attributes by their names, and makes a request's name of its address."""
    from azure.monitor.opentelemetry.exporter.export.trace._exporter import _convert_span_to_envelope

    from shared.telemetry.exporting import Exporter
    from shared.telemetry.spans import Attributes, Ended
    from shared.telemetry.trace import Place

    half = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}
    plan, _ = plan_of({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", **half})
    assert plan is not None
    exporter = Exporter(plan)
    told: Attributes = {
        Attribute.SERVICE: "dataverse",
        Attribute.HTTP_METHOD: "GET",
        Attribute.HOST: "o.crm.dynamics.com",
        Attribute.ROUTE: "accounts({key})",
        Attribute.HTTP_STATUS: 503,
        Attribute.HTTP_RESENDS: 2,
        Attribute.ERROR: "503",
        Attribute.OWNER: "0123456789abcdef",
    }
    ended = Ended(
        "dataverse.request GET", Kind.CLIENT, Place(1, 2), Place(1, 3), (), 10**18, 10**18 + 10**9, told
    )
    envelope = _convert_span_to_envelope(exporter._span(ended, is_azure=True))
    exporter.close(1)
    data = envelope.data.base_data
    assert (data.name, data.target, data.result_code) == ("GET /accounts({key})", "o.crm.dynamics.com", "503")
    assert envelope.sample_rate == 50
    assert envelope.tags["ai.user.id"] == "0123456789abcdef"
    wanted = {"toolbox.service": "dataverse", "toolbox.error_type": "503", "toolbox.route": "accounts({key})"}
    assert {name: data.properties.get(name) for name in wanted} == wanted
    assert data.properties["toolbox.resends"] == "2"
