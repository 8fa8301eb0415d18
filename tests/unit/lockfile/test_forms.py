"""A ToolSpec comes back from its form as it was, whatever fields it has."""

from __future__ import annotations

import dataclasses

from shared.lockfile.forms import spec_json, spec_of
from shared.tool.spec import ExecutionMode, Isolation, Mode, RunRules, ToolAnnotations, ToolSpec

FULL = ToolSpec(
    name="full",
    tool_id="@acme/full",
    title="Full",
    description="Everything … set.",
    input_schema={"type": "object", "properties": {"a": {"enum": [1, None, "x"]}}},
    result_schema={"type": "object"},
    rules=RunRules(
        modes=(Mode.ONE_WAY, Mode.TWO_WAY),
        default_mode=Mode.ONE_WAY,
        execution_modes=(ExecutionMode.HEADLESS, ExecutionMode.WINDOWED),
        default_execution_mode=ExecutionMode.WINDOWED,
        timeout_ms=5,
        max_attempts=2,
        isolation=Isolation.PROCESS,
        window_timeout_ms=7,
        window_methods=("dataverseAPI.update",),
    ),
    annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    capabilities=("csv",),
    icons=({"src": "a.png"},),
    metadata={"k": {"deep": [1]}},
    wraps_result=True,
)


def test_a_spec_with_every_field_set() -> None:
    for part in (FULL, FULL.rules, FULL.annotations):
        for field in dataclasses.fields(part):
            default = field.default
            assert default is dataclasses.MISSING or getattr(part, field.name) != default, field.name
    assert spec_of(spec_json(FULL)) == FULL


def test_a_spec_with_defaults() -> None:
    plain = ToolSpec("a", "a", "A", "Does a.", {"type": "object"}, None)
    assert spec_of(spec_json(plain)) == plain
