"""What tools declare, as clients see it, and what they learn of a call, through the real worker library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import ROOT, TOKEN, App, start_app

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def surface(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("surface")
    # A storage of its own: workers of another app must not take its jobs.
    running = start_app(
        folder,
        new_storage(),
        app_dir=ROOT / "tests" / "apps" / "surface",
        WHO_NAME="who_is_it",
        TOOLBOX_TOOL_HEADERS="X-Tenant",
    )
    yield running
    running.stop()


ARGUMENTS: dict[str, Any] = {
    "grid": [[1, 2], []],
    "choice": "b",
    "colour": "blue",
    "animal": {"kind": "cat", "lives": 9},
    "tree": {"value": 1, "children": [{"value": 2}]},
    "day": "2026-01-31",
}


def test_the_published_schema_is_what_a_person_would_write(surface: App) -> None:
    (entry,) = [tool for tool in surface.rpc("tools/list")["result"]["tools"] if tool["name"] == "shapes"]
    schema = entry["inputSchema"]
    properties = {name: prop for name, prop in schema["properties"].items() if name != "__pptb"}
    assert properties == {
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "maybe": {"type": "integer"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "colour": {"$ref": "#/$defs/Colour"},
        "animal": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        "tree": {"$ref": "#/$defs/Tree"},
        "day": {"type": "string", "format": "date"},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$", "description": "Three letters.", "default": "ABC"},
    }
    assert schema["required"] == ["grid", "choice", "colour", "animal", "tree", "day"]
    assert schema["$defs"]["Colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Cat"]["properties"]["lives"] == {"type": "integer", "minimum": 1, "maximum": 9}


def test_values_arrive_as_annotated(surface: App) -> None:
    result = surface.call("shapes", ARGUMENTS)
    assert result["structuredContent"]["result"] == [
        "[[1, 2], []]",
        "None",
        "'b'",
        "<Colour.BLUE: 'blue'>",
        "Cat(kind='cat', lives=9)",
        "Tree(value=1, children=[Tree(value=2, children=[])])",
        "datetime.date(2026, 1, 31)",
        "'ABC'",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grid": [[1], ["2"]]}, "$.grid[1][0]: expected integer, got string"),
        ({"animal": {"kind": "cat", "lives": 10}}, "$.animal"),
        ({"animal": {"kind": "cow"}}, "$.animal"),
        ({"tree": {"value": 1, "children": [{}]}}, "$.tree.children[0].value: required field is missing"),
        ({"day": "31 January"}, "$.day: expected a date (ISO 8601, like 2026-01-31), got another string"),
        ({"code": "abc"}, "$.code: must match the pattern"),
        ({"colours": 1}, "unknown field 'colours'; did you mean 'colour'?"),
    ],
)
def test_every_kind_of_fault_is_told_with_its_path(surface: App, change: dict[str, Any], said: str) -> None:
    result = surface.call("shapes", {**ARGUMENTS, **change})
    assert result["isError"] is True
    assert said in result["content"][0]["text"]


@pytest.mark.parametrize("envelope", [None, {"executionMode": "headless", "mode": "two-way"}])
def test_a_tool_learns_the_calls_facts_and_no_key(surface: App, envelope: Any) -> None:
    headers = {"X-Tenant": "acme", "X-MCP-Auth-Token": TOKEN, "Authorization": "Bearer sentinel-token"}
    session = f"{'a' * 16}|{'b' * 16}"
    result = surface.call("WHO_IS_IT", {}, envelope, {**headers, "Mcp-Session-Id": session})
    told = result["structuredContent"]
    assert (told["tool_name"], told["tool"], told["owner"]) == ("WHO_IS_IT", "who_is_it", "default")
    assert (told["session_id"], told["transport"]) == (session, "http-streamable")
    assert told["headers"]["x-tenant"] == "acme"
    assert "user-agent" in told["headers"]
    assert told["function_name"] == "tool_who_is_it"
    assert len(told["invocation_id"]) == 36
    assert told["job"] is (envelope is not None)
    assert "sentinel" not in str(told)
    assert TOKEN not in str(told)
