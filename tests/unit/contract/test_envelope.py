"""`__pptb`: strict, complete, and taken out before the tool sees its input."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract.envelope import CallPlan, Envelope, parse, plan, split
from shared.errors import EnvelopeError, UnsupportedModeError
from shared.tool.spec import ExecutionMode, Mode, RunRules, ToolSpec

OBJECT = {"type": "object", "properties": {}}
DATA = {"type": "object", "properties": {"a": {}}}


def spec(result: dict[str, Any] | None = None, **rules: Any) -> ToolSpec:
    return ToolSpec("t", "t", "T", "D", OBJECT, result, RunRules(**rules))


def planned(tool: ToolSpec, raw: Any = None) -> CallPlan:
    return plan(tool, parse(raw), max_timeout_ms=1_800_000, inline_timeout_ms=210_000)


BOTH: dict[str, Any] = {
    "modes": (Mode.ONE_WAY, Mode.TWO_WAY),
    "execution_modes": (ExecutionMode.INLINE, ExecutionMode.HEADLESS),
}


def test_the_envelope_is_taken_out() -> None:
    own, asked = split({"a": 1, "__pptb": {"mode": "one-way", "timeoutMs": 5}})
    assert own == {"a": 1}
    assert asked == Envelope(mode=Mode.ONE_WAY, timeout_ms=5)
    assert split({"a": 1}) == ({"a": 1}, Envelope())


@pytest.mark.parametrize(
    "raw", [None, {}, {"mode": None, "executionMode": None, "timeoutMs": None, "authToken": None}]
)
def test_null_means_absent(raw: Any) -> None:
    assert parse(raw) == Envelope()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("two-way", "__pptb: expected object, got string"),
        ([], "__pptb: expected object, got array"),
        (0, "__pptb: expected object, got integer"),
        (False, "__pptb: expected object, got boolean"),
        ({"mode": "bogus"}, "__pptb.mode: must be one of one-way, two-way, got 'bogus'"),
        ({"mode": "ONE-WAY"}, "must be one of one-way, two-way"),
        ({"mode": 1}, "got integer"),
        ({"executionMode": "HEADLESS"}, "must be one of inline, headless, windowed, got 'HEADLESS'"),
        ({"timeoutMs": 0}, "positive number of milliseconds, got 0"),
        ({"timeoutMs": -5}, "got -5"),
        ({"timeoutMs": "5"}, "got string"),
        ({"timeoutMs": True}, "got boolean"),
        ({"timeoutMs": math.nan}, "not finite"),
        ({"timeoutMs": math.inf}, "not finite"),
        ({"timeoutMs": []}, "got array"),
        ({"authToken": ""}, "1 to 16384 characters"),
        ({"authToken": "  "}, "1 to 16384 characters"),
        ({"authToken": 5}, "expected string, got integer"),
        ({"authToken": "x" * 16_385}, "1 to 16384 characters"),
        ({"connectionName": 5}, "connectionName: expected string, got integer"),
        ({"connectionNames": []}, "connectionNames must be an array of non-empty saved connection names."),
        ({"connectionNames": ["Prod", " "]}, "must be an array of non-empty saved connection names."),
        (
            {"connectionName": "Test", "connectionNames": ["Prod"]},
            "connectionName must match connectionNames[0] when both are supplied.",
        ),
        ({"project": "../p"}, "project: must be 1 to 64 of the characters"),
        ({"project": "_p"}, "with a letter or digit first"),
        ({"project": 5}, "project: expected string, got integer"),
        ({"idempotencyKey": 5}, "idempotencyKey: expected string, got integer"),
        ({"idempotencyKey": " "}, "idempotencyKey: must have 1 to 200 characters"),
        ({"idempotencyKey": "k" * 201}, "idempotencyKey: must have 1 to 200 characters"),
        ({"Mode": "one-way"}, "unknown field 'Mode'; known are mode, executionMode, timeoutMs, authToken"),
    ],
)
def test_what_is_illegal_is_named(raw: Any, said: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        parse(raw)
    assert said in caught.value.message


def test_all_faults_come_at_once() -> None:
    with pytest.raises(EnvelopeError) as caught:
        parse({"mode": "x", "executionMode": "y", "timeoutMs": -1, "authToken": 5, "other": 1})
    for name in ("mode", "executionMode", "timeoutMs", "authToken", "other"):
        assert name in caught.value.message


def test_the_token_shows_in_no_message_or_repr() -> None:
    assert "sesame" not in repr(parse({"authToken": "sesame"}))
    assert parse({"authToken": " sesame "}).auth_token == "sesame"


@given(st.floats(min_value=1e-9, allow_infinity=False, allow_nan=False) | st.integers(min_value=1))
def test_any_positive_number_is_a_timeout(value: float) -> None:
    found = parse({"timeoutMs": value}).timeout_ms
    assert found is not None
    assert found == max(int(value), 1)


@pytest.mark.parametrize(("asked", "got"), [(None, 120_000), (1500.9, 1500), (0.5, 1), (10**12, 1_800_000)])
def test_a_job_timeout_is_capped_and_echoed(asked: float | None, got: int) -> None:
    raw = {"executionMode": "headless", "timeoutMs": asked}
    assert planned(spec(**BOTH), raw).timeout_ms == got


def test_a_call_that_is_waited_for_has_the_front_ends_limit() -> None:
    assert planned(spec(timeout_ms=900_000)).timeout_ms == 210_000
    assert planned(spec(timeout_ms=900_000, **BOTH), {"mode": "one-way"}).timeout_ms == 900_000


def test_unsupported_modes_are_refused_with_the_originals_texts() -> None:
    with pytest.raises(UnsupportedModeError) as caught:
        planned(spec(), {"executionMode": "headless", "mode": "one-way"})
    assert caught.value.message == (
        "Requested execution mode 'headless' is not supported. Supported execution modes: inline"
    )
    with pytest.raises(UnsupportedModeError) as caught:
        planned(spec(), {"mode": "one-way"})
    assert caught.value.message == "Requested mode 'one-way' is not supported. Supported modes: two-way"


@pytest.mark.parametrize(
    ("result", "rules", "mode"),
    [
        (DATA, {}, Mode.TWO_WAY),
        (None, {}, Mode.TWO_WAY),
        (None, BOTH, Mode.ONE_WAY),
        (DATA, BOTH, Mode.TWO_WAY),
        (None, {**BOTH, "default_mode": Mode.TWO_WAY}, Mode.TWO_WAY),
        (DATA, {**BOTH, "default_mode": Mode.ONE_WAY}, Mode.ONE_WAY),
        (DATA, {"modes": (Mode.ONE_WAY,)}, Mode.ONE_WAY),
    ],
)
def test_the_mode_of_a_call_that_names_none(
    result: dict[str, Any] | None, rules: dict[str, Any], mode: Mode
) -> None:
    assert planned(spec(result, **rules)).mode is mode
