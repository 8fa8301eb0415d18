"""Places in traces: how they are written, who samples, and what of a path may be told."""

from __future__ import annotations

import pytest

from shared.telemetry.routes import dataverse_route, power_platform_route
from shared.telemetry.sampling import Sampler, sampler_of
from shared.telemetry.trace import Place, attempt_span_id, parsed

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_traceparent_is_read_and_written() -> None:
    text = f"00-{TRACE}-{SPAN}-01"
    place = parsed(text)
    assert place == Place(int(TRACE, 16), int(SPAN, 16), sampled=True)
    assert place.traceparent == text
    off = parsed(f"00-{TRACE}-{SPAN}-00")
    assert off is not None
    assert not off.sampled
    # A later version may say more, and other flags are nobody's here.
    assert parsed(f"01-{TRACE}-{SPAN}-03-more") == place


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-1",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"01-{TRACE}-{SPAN}-01-{'x' * 600}",
    ],
)
def test_what_is_no_traceparent_is_none(text: object) -> None:
    assert parsed(text) is None


def test_an_attempts_span_is_known_beforehand_and_its_own() -> None:
    assert attempt_span_id("job", 1) == attempt_span_id("job", 1)
    assert len({attempt_span_id(job, number) for job in ("a", "b") for number in range(1, 50)}) == 98


PARENT = Place(1, 2, sampled=True)
UNSAMPLED = Place(1, 2, sampled=False)
LOW, HIGH = 1, (1 << 64) - 1


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, Sampler(1.0, by_parent=True)),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, Sampler(0.0, by_parent=False)),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, Sampler(0.0, by_parent=True)),
        (
            {"OTEL_TRACES_SAMPLER": "TraceIdRatio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
            Sampler(0.25, by_parent=False),
        ),
        (
            {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": " 0.5 "},
            Sampler(0.5, by_parent=True),
        ),
    ],
)
def test_the_sampler_is_the_one_that_is_set(settings: dict[str, str], wanted: Sampler) -> None:
    assert sampler_of(settings) == (wanted, "")


@pytest.mark.parametrize(
    "settings",
    [
        {"OTEL_TRACES_SAMPLER": "some"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "two"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
        {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "nan"},
    ],
)
def test_a_wrong_sampler_is_named_and_the_default_taken(settings: dict[str, str]) -> None:
    sampler, fault = sampler_of(settings)
    assert sampler == Sampler()
    assert "OTEL_TRACES_SAMPLER" in fault


def test_sampling_goes_by_the_parent_or_by_the_traces_id() -> None:
    half = Sampler(0.5, by_parent=True)
    assert half.samples(LOW, None)
    assert not half.samples(HIGH, None)
    assert half.samples(HIGH, PARENT)
    assert not half.samples(LOW, UNSAMPLED)
    alone = Sampler(0.5, by_parent=False)
    assert not alone.samples(HIGH, PARENT)
    assert Sampler(1.0).of_root(HIGH)
    assert not Sampler(0.0).of_root(0)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/api/data/v9.2/accounts", "accounts"),
        ("/api/data/v9.2/accounts(7d1c-secret)", "accounts({key})"),
        (
            "/api/data/v9.2/accounts(name='it''s (secret)/x')/contacts(b)/$ref",
            "accounts({key})/contacts({key})/$ref",
        ),
        ("/api/data/v9.2/$batch", "$batch"),
        ("/api/data/v9.2/WhoAmI()", "WhoAmI({key})"),
        ("/api/data/v9.2/accounts(a)/Microsoft.Dynamics.CRM.Do", "accounts({key})/Microsoft.Dynamics.CRM.Do"),
        ("/api/data/v9.2/some%20secret/x", "{id}/x"),
        ("/api/data/v9.2/accounts(never closed secret", "accounts({key})"),
    ],
)
def test_a_route_of_dataverse_keeps_the_schemas_names_only(path: str, route: str) -> None:
    assert dataverse_route(path) == route


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/powerapps/environments/Default-1f2e/apps/9b", "powerapps/environments/{id}/apps/{id}"),
        ("/usermanagement/users/jane", "usermanagement/users/{id}"),
        ("/EnvironmentManagement/environments", "environmentmanagement/environments"),
        ("/licensing/bad-word", "licensing/{id}"),
        ("/licensing", "licensing"),
    ],
)
def test_a_route_of_the_power_platform_keeps_kinds_only(path: str, route: str) -> None:
    assert power_platform_route(path) == route
