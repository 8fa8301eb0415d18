"""Bindings of MCP triggers -> what the lists show, or why the host does not start."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.local.host.errors import HostError
from infra.local.host.mcp_prompts import build_prompts
from infra.local.host.mcp_resources import build_resources
from infra.local.host.mcp_schema import build_tool, build_tools, missing_required, properties_schema
from infra.local.host.values import Binding, Function
from tests.unit.host.helpers import trigger


def tool(**fields: Any) -> tuple[Function, Binding]:
    return trigger("mcpToolTrigger", **{"toolName": "t", **fields})


def test_properties() -> None:
    properties = [
        {"propertyName": "a", "propertyType": "string", "description": "d", "isRequired": True},
        {"PROPERTYNAME": "b", "PropertyType": "float", "description": None},
        {"propertyName": "c", "propertyType": "integer", "isArray": True, "enumValues": [1, 2]},
        {"propertyName": "d", "propertyType": "string", "enumValues": ["x"], "isRequired": True},
        {"propertyName": "e", "propertyType": "array", "enumValues": []},
        {"propertyName": " ", "propertyType": "string", "isRequired": True},
    ]
    assert properties_schema(json.dumps(properties), "here") == {
        "type": "object",
        "properties": {
            "a": {"type": "string", "description": "d"},
            "b": {"type": "float", "description": ""},
            "c": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "description": ""},
            "d": {"type": "string", "enum": ["x"], "description": ""},
            "e": {"type": "array", "description": ""},
        },
        "required": ["a", "d"],
    }


def test_no_properties() -> None:
    assert properties_schema(None, "here") == {"type": "object", "properties": {}, "required": []}


def test_entry_has_only_what_is_there() -> None:
    bare = build_tool(*tool())
    assert list(bare.entry) == ["name", "inputSchema"]
    full = build_tool(*tool(description="", outputSchema='{"type":"object"}', metadata='{"a":1}'))
    assert list(full.entry) == ["name", "description", "inputSchema", "outputSchema", "_meta"]
    assert list(build_tool(*tool(metadata="{}")).entry) == ["name", "inputSchema"]
    assert "resultSchema" not in build_tool(*tool(resultSchema='{"type":"object"}')).entry


def test_schema_of_the_worker() -> None:
    schema = {"type": "object", "required": ["n"], "additionalProperties": False}
    built = build_tool(*tool(useWorkerInputSchema=True, inputSchema=json.dumps(schema), toolProperties="["))
    assert built.entry["inputSchema"] == schema
    assert built.required == ("n",)
    unused = build_tool(*tool(useWorkerInputSchema=False, inputSchema="{"))
    assert unused.required == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"toolName": ""},
        {"toolProperties": ""},
        {"toolProperties": "{}"},
        {"toolProperties": "[1]"},
        {"toolProperties": '[{"propertyName": "a"}]'},
        {"useWorkerInputSchema": True},
        {"useWorkerInputSchema": "true"},
        {"useWorkerInputSchema": True, "inputSchema": "{"},
        {"useWorkerInputSchema": True, "inputSchema": '{"type":"array"}'},
        {"useWorkerInputSchema": True, "inputSchema": {"type": "object"}},
        {"outputSchema": "{}"},
        {"outputSchema": "[]"},
        {"metadata": "[]"},
        {"metadata": "{"},
        {"metadata": '{"a":' * 33 + "1" + "}" * 33},
    ],
)
def test_what_stops_the_start(fields: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        build_tool(*tool(**fields))


def test_order_and_duplicates() -> None:
    triggers = [tool(function=name, toolName=f"tool-{name}") for name in ("b", "_x", "A", "C")]
    assert [item.function.name for item in build_tools(triggers).values()] == ["A", "b", "C", "_x"]
    with pytest.raises(HostError, match=r"Tool with name 'TOOL' is already registered\."):
        build_tools([tool(function="a", toolName="tool"), tool(function="b", toolName="TOOL")])


def test_missing_required() -> None:
    assert missing_required(("a", "b", "c"), {"a": 0, "b": None}) == ["b", "c"]


def resource(**fields: Any) -> tuple[Function, Binding]:
    return trigger("mcpResourceTrigger", **{"resourceName": "r", **fields})


def test_resources() -> None:
    static, template = build_resources(
        [
            resource(function="a", uri="file://x", size=3, title="t"),
            resource(function="b", uri="item://{id}/p", size=3),
        ]
    )
    assert static.entry == {"uri": "file://x", "name": "r", "title": "t", "size": 3}
    assert template.entry == {"uriTemplate": "item://{id}/p", "name": "r"}
    assert template.pattern is not None
    assert template.pattern.fullmatch("item://a.b/p")
    assert not template.pattern.fullmatch("item://a/b/p")


@pytest.mark.parametrize("uris", [["relative"], ["x:{a}{b}"], ["x:a", "x:a"], ["x:{a}/b", "x:{c}/b"]])
def test_resources_that_stop_the_start(uris: list[str]) -> None:
    with pytest.raises(HostError):
        build_resources([resource(function=str(index), uri=uri) for index, uri in enumerate(uris)])


def test_prompts() -> None:
    arguments = [{"name": "a", "required": True}, {"name": "b"}]
    fields = {"promptName": "P", "promptArguments": json.dumps(arguments), "icons": "[]", "title": "t"}
    prompts = build_prompts([trigger("mcpPromptTrigger", **fields)])
    assert prompts["p"].entry == {"name": "P", "title": "t", "arguments": arguments, "icons": []}
    assert prompts["p"].required == ("a",)


@pytest.mark.parametrize("fields", [{}, {"promptArguments": "{}"}, {"icons": "{"}])
def test_prompts_that_stop_the_start(fields: dict[str, Any]) -> None:
    name = {"promptName": "p"} if fields else {}
    with pytest.raises(HostError):
        build_prompts([trigger("mcpPromptTrigger", **name, **fields)])
    with pytest.raises(HostError, match="already registered"):
        build_prompts([trigger("mcpPromptTrigger", function=name, promptName="p") for name in "ab"])
