"""Arguments in, results out: what is accepted, what is said of the rest, what is sent."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from shared.errors import InputError, ResultError
from shared.tool import McpImageContent, McpTextContent, McpToolResponse, tool
from shared.tool.decorator import declared
from shared.tool.handler import Handler
from shared.tool.result import envelope, failure, from_value


class Colour(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: list[int] = []


def handler_of(function: Any) -> Handler:
    found = declared(function)
    assert found is not None
    return found.load()


@tool
def sample(
    text: str,
    count: int = 1,
    ratio: float = 1.0,
    *,
    exact: bool = False,
    choice: Literal["a", "b"] = "a",
    colour: Colour = Colour.RED,
    when: dt.datetime | None = None,
    place: Point | None = None,
    short: Annotated[str, Field(max_length=3, pattern="^[a-z]*$")] = "",
) -> list[str]:
    """Says what it was given."""
    return [repr(value) for value in (text, count, ratio, exact, choice, colour, when, place, short)]


def test_values_arrive_as_annotated() -> None:
    handler = handler_of(sample)
    arguments = handler.check_input(
        {
            "text": "t",
            "count": 5.0,
            "ratio": 2,
            "exact": True,
            "colour": "red",
            "when": "2026-01-02T03:04:05Z",
            "place": {"x": 1},
        }
    )
    told: Any = handler.run(arguments, None)
    assert told[1:4] == ["5", "2.0", "True"]
    assert told[5] == "<Colour.RED: 'red'>"
    assert told[6].startswith("datetime.datetime(2026, 1, 2")
    assert told[7] == "Point(x=1, y=[])"


def test_null_for_an_optional_is_absent() -> None:
    handler = handler_of(sample)
    assert handler.check_input({"text": "t", "count": None, "place": None}) == {"text": "t"}


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ({}, ["$.text: required field is missing"]),
        ({"text": None}, ["$.text: expected string, got null"]),
        ({"text": 5}, ["$.text: expected string, got integer"]),
        ({"text": "t", "count": "5"}, ["$.count: expected integer, got string"]),
        ({"text": "t", "count": True}, ["$.count: expected integer, got boolean"]),
        ({"text": "t", "count": 1.5}, ["$.count: expected integer, got number"]),
        ({"text": "t", "ratio": "1"}, ["$.ratio: expected number, got string"]),
        ({"text": "t", "exact": 1}, ["$.exact: expected boolean, got integer"]),
        ({"text": "t", "choice": "c"}, ["$.choice: value must be one of [a, b]"]),
        ({"text": "t", "short": "Long"}, ["at most 3 characters, has 4", "must match the pattern"]),
        ({"text": "t", "place": {"x": "1", "y": [0, "1"]}}, ["$.place.x: expected", "$.place.y[1]: expected"]),
        ({"text": "t", "place": {}}, ["$.place.x: required field is missing"]),
        ({"text": "t", "coutn": 1}, ["unknown field 'coutn'; did you mean 'count'?"]),
        ({"text": "t", "zzz": 1}, ["unknown field 'zzz'; known are choice, colour"]),
        (
            {"count": "x", "choice": 1},
            ["$.text: required", "$.count: expected integer", "$.choice: value must"],
        ),
    ],
)
def test_every_fault_is_named_at_once(arguments: dict[str, Any], faults: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        handler_of(sample).check_input(arguments)
    for fault in faults:
        assert fault in caught.value.message


def test_a_fault_does_not_repeat_the_value() -> None:
    with pytest.raises(InputError) as caught:
        handler_of(sample).check_input({"text": {"password": "hunter22"}, "short": "hunter22"})
    assert "hunter22" not in caught.value.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


# Data is made slowly beside a second run of the tests.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from(["text", "count", "ratio", "choice", "place", "when", "other"]), JSON))
def test_any_json_is_accepted_or_refused_in_words(arguments: dict[str, Any]) -> None:
    handler = handler_of(sample)
    try:
        checked = handler.check_input(arguments)
    except InputError:
        return
    # A text that is no date passes the schema, since `format` only annotates; so does an unpaired surrogate.
    with contextlib.suppress(InputError):
        handler.run(checked, None)


def unwrap(text: str) -> Any:
    outer = json.loads(text)
    assert outer["type"] == "call_tool_result"
    return json.loads(outer["content"])


def test_structured_data_without_text_gets_a_json_text() -> None:
    answer = unwrap(envelope(from_value({"a": "é"})))
    assert answer == {"content": [{"type": "text", "text": '{"a":"é"}'}], "structuredContent": {"a": "é"}}


def test_an_image_beside_structured_data_gets_a_json_text_too() -> None:
    value = McpToolResponse(content=[McpImageContent(b"\x01", "image/png")], structured_content={"a": 1})
    assert [block["type"] for block in unwrap(envelope(from_value(value)))["content"]] == ["image", "text"]


def test_an_error_says_so() -> None:
    answer = unwrap(envelope(failure("no", errorCode="tool_error")))
    assert answer == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
        "_meta": {"toolbox/errorCode": "tool_error"},
    }


def test_results_are_checked_against_the_published_schema() -> None:
    @tool
    def liar() -> Point:
        """Lies."""
        return Point(x=1)

    handler = handler_of(liar)
    assert handler.finish(Point(x=1)).structured == {"x": 1, "y": []}
    with pytest.raises(ResultError, match=r"Output validation failed: \$\.x: expected integer, got string"):
        handler.finish({"x": "1", "y": []})
    with pytest.raises(
        ResultError, match="promises structured data and returned content blocks only; annotate"
    ):
        handler.finish(McpTextContent("nothing structured"))
    assert handler.finish(McpToolResponse(is_error=True)).is_error


@given(JSON)
def test_any_json_value_survives(value: Any) -> None:
    result = from_value({"v": value})
    assert unwrap(envelope(result))["structuredContent"] == {"v": value}
