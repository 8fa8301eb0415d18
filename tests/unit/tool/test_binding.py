from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel

from shared.tool import ToolAnnotations, tool
from shared.tool.binding import flat_properties, trigger_fields
from shared.tool.decorator import declared
from shared.tool.spec import ToolSpec


class Point(BaseModel):
    x: int


def spec_of(function: object) -> ToolSpec:
    found = declared(function)
    assert found is not None
    return found.spec


@tool
def plain(a: str, b: list[int] | None = None, c: Literal["x", "y"] = "x", p: Point | None = None) -> Point:
    """Plain."""
    return Point(x=1)


@tool(
    title="Both ways",
    modes=("one-way", "two-way"),
    execution_modes=("inline", "headless"),
    capabilities=("fetchxml",),
    annotations=ToolAnnotations(read_only=True, destructive=False),
    timeout_ms=5_000,
)
def both() -> Point:
    """Both."""
    return Point(x=1)


def test_every_form_of_the_schema_is_sent() -> None:
    fields = trigger_fields(spec_of(plain))
    assert fields["tool_name"] == "plain"
    assert fields["use_result_schema"] is True
    assert fields["use_worker_input_schema"] is True
    assert fields["output_schema"] == fields["result_schema"]
    assert json.loads(fields["input_schema"])["type"] == "object"
    assert json.loads(fields["output_schema"])["properties"] == {"x": {"type": "integer"}}


def test_the_flat_list_says_the_same_as_far_as_it_can() -> None:
    flat = {entry["propertyName"]: entry for entry in flat_properties(spec_of(plain).input_schema)}
    assert flat["a"]["isRequired"] is True
    assert (flat["b"]["propertyType"], flat["b"]["isArray"], flat["b"]["isRequired"]) == (
        "integer",
        True,
        False,
    )
    assert flat["c"]["enumValues"] == ["x", "y"]
    assert flat["p"]["propertyType"] == "object"


def test_the_envelope_offers_only_what_the_tool_has() -> None:
    envelope = json.loads(trigger_fields(spec_of(plain))["input_schema"])["properties"]["__pptb"]
    assert envelope["properties"]["mode"]["enum"] == ["two-way"]
    assert envelope["properties"]["executionMode"]["enum"] == ["inline"]
    assert envelope["additionalProperties"] is False
    published = json.loads(trigger_fields(spec_of(both))["input_schema"])
    envelope = published["properties"]["__pptb"]
    assert envelope["properties"]["mode"]["enum"] == ["one-way", "two-way"]
    assert envelope["properties"]["executionMode"]["enum"] == ["inline", "headless"]
    assert envelope["properties"]["timeoutMs"]["default"] == 5_000
    assert "__pptb" not in published.get("required", [])


def test_a_tool_that_may_be_accepted_publishes_both_answers() -> None:
    published = json.loads(trigger_fields(spec_of(both))["output_schema"])
    assert published["type"] == "object"
    own, acceptance = published["anyOf"]
    assert own["required"] == ["x"]
    assert "jobId" in acceptance["required"]
    assert "anyOf" not in json.loads(trigger_fields(spec_of(plain))["output_schema"])


def test_what_the_host_has_no_field_for_goes_into_meta() -> None:
    assert json.loads(trigger_fields(spec_of(both))["metadata"]) == {
        "toolbox/title": "Both ways",
        "toolbox/annotations": {"readOnlyHint": True, "destructiveHint": False},
        "toolbox/capabilities": ["fetchxml"],
    }


def test_function_names_are_legal() -> None:
    @tool(name="server.search-2")
    def other() -> str:
        """Other."""
        return ""

    assert spec_of(other).function_name == "tool_server_search-2"
