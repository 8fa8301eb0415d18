"""What the Functions Node library sends for the same values and declarations: ours gives at least as much.

The cases are its recorded answers (tests/vectors/node). A case without `defect` is met in meaning; for one with
`defect` a test below says what is sent instead.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from infra.local.host.mcp_result import tool_result
from infra.local.host.values import Kind, Value
from shared.errors import DeclarationError, ResultError, ToolError
from shared.tool import (
    McpAudioContent,
    McpContentBlock,
    McpImageContent,
    McpResourceContent,
    McpResourceLinkContent,
    McpTextContent,
    McpToolResponse,
    tool,
)
from shared.tool.binding import flat_properties, trigger_fields
from shared.tool.decorator import declared
from shared.tool.result import envelope, from_value

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "node"


def cases(name: str) -> list[Any]:
    return [
        pytest.param(case, id=case["id"]) for case in json.loads((FOLDER / name).read_text("utf-8"))["cases"]
    ]


class Custom(McpContentBlock):
    def __init__(self, kind: str, wire: Any, error: str | None) -> None:
        self.type = kind  # type: ignore[misc]
        self.wire, self.error = wire, error

    def to_wire(self) -> Any:
        if self.error is not None:
            raise ValueError(self.error)
        return self.wire


def binary(given: Any, name: str = "data") -> Any:
    """A block's bytes or text, as the case gives it."""
    encoded = given.get(f"{name}_base64")
    return base64.b64decode(encoded) if encoded is not None else given.get(name)


def python_value(given: Any) -> Any:
    """The Python counterpart of a value in the vectors' notation."""
    kind = given["kind"]
    makers: dict[str, Any] = {
        "undefined": lambda: None,
        "value": lambda: given["value"],
        "number": lambda: float("nan") if given["number"] == "NaN" else int(given["number"]),
        "bigint": lambda: int(given["digits"]),
        "date": lambda: dt.datetime.fromisoformat(given["iso"]),
        "map": lambda: dict(given["entries"]),
        "set": lambda: set(given["items"]),
        "bytes": lambda: binary(given),
        "has_toJSON": lambda: given["returns"],
        "object": lambda: {name: python_value(item) for name, item in given["fields"].items()},
        "instance": lambda: {name: python_value(item) for name, item in given["fields"].items()},
        "array": lambda: [python_value(item) for item in given["items"]],
        "circular": circular,
        "text": lambda: McpTextContent(given["text"]),
        "image": lambda: McpImageContent(binary(given), given.get("mimeType")),
        "audio": lambda: McpAudioContent(binary(given), given.get("mimeType")),
        "resource_link": lambda: McpResourceLinkContent(
            given["uri"],
            given.get("name"),
            title=given.get("title"),
            description=given.get("description"),
            mime_type=given.get("mimeType"),
            size=given.get("size"),
        ),
        "resource": lambda: McpResourceContent(
            given["uri"], given.get("text"), binary(given, "blob"), given.get("mimeType")
        ),
        "custom": lambda: Custom(given["type"], given.get("wire"), given.get("toJSON_throws")),
        "McpToolResponse": lambda: response(given),
    }
    return makers[kind]()


def circular() -> Any:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    return loop


def response(given: Any) -> McpToolResponse:
    structured = given.get("structuredContent")
    if "structuredContent_node" in given:
        structured = python_value(given["structuredContent_node"])
    content = [python_value(item) for item in given.get("content", ())]
    return McpToolResponse(content, structured, given.get("isError", False))


def sent(given: Any) -> Any:
    outer = json.loads(envelope(from_value(python_value(given))).encode())
    return json.loads(outer["content"])


def blocks_of(output: Any) -> list[Any]:
    """The blocks in the Node library's envelope."""
    if output["envelope"] is None:
        return []
    content = output["content_parsed"]
    return content if isinstance(content, list) else [content]


#: Case -> what ours gives instead: the whole CallToolResult, or the text of the error.
RESULTS: dict[str, Any] = {
    "int-2^53+1": {
        "content": [{"type": "text", "text": "9007199254740993"}],
        "structuredContent": {"result": 9007199254740993},
    },
    "bigint": {
        "content": [{"type": "text", "text": "9007199254740993"}],
        "structuredContent": {"result": 9007199254740993},
    },
    "object-nested": "structured",
    "object-bytes-field": {
        "content": [{"type": "text", "text": '{"a":"AQID"}'}],
        "structuredContent": {"a": "AQID"},
    },
    "map": {"content": [{"type": "text", "text": '{"k":1}'}], "structuredContent": {"k": 1}},
    "set": {"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": {"result": [1, 2]}},
    "bytes": {"content": [{"type": "text", "text": '"aGk="'}], "structuredContent": {"result": "aGk="}},
    "has-toJSON": "structured",
    "instance-unmarked": "structured",
    "image-string-not-base64": "must be base64",
    "image-no-mime": "mime_type must be like",
    "image-no-data": "data must be bytes or a base64 text, not NoneType",
    "link-no-name": {"content": [{"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"}]},
    "link-size-title": {
        "content": [{"type": "resource_link", "uri": "file:///a.txt", "name": "a", "title": "A", "size": 3}]
    },
    "resource-text-no-mime": {
        "content": [
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "t"}}
        ]
    },
    "resource-both": "exactly one of text and blob",
    "custom-unknown-type": {
        "content": [
            {
                "type": "resource",
                "resource": {"uri": "toolbox://content/video", "mimeType": "video/mp4", "blob": "AQID"},
            }
        ]
    },
    "custom-wire-without-type": {"content": [{"type": "text", "text": "c"}]},
    "custom-call-tool-result": "its type must be a text that names a kind of content",
    "custom-nested-extra-field": {"content": [{"type": "text", "text": "c"}]},
    "custom-toJSON-throws": "Custom has no wire form: ValueError: bad block",
    "mixed-block-and-string": {
        "content": [
            {"type": "image", "data": "AQID", "mimeType": "image/png"},
            {"type": "text", "text": "caption"},
        ]
    },
    "blocks-nested-array": "McpTextContent stands inside other data",
    "array-of-response": "McpToolResponse stands inside other data",
    "response-empty": {"content": []},
    "response-error": {"content": [{"type": "text", "text": "bad input"}], "isError": True},
    "response-error-empty": {"content": [], "isError": True},
    "response-structured-array": {
        "content": [{"type": "text", "text": "[1,2]"}],
        "structuredContent": {"result": [1, 2]},
    },
    "response-structured-false": {
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"result": False},
    },
    "response-structured-plain-string": {
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"result": "hello"},
    },
    "response-structured-empty-string": {
        "content": [{"type": "text", "text": '""'}],
        "structuredContent": {"result": ""},
    },
    "response-structured-string-null": {
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"result": "null"},
    },
    "response-structured-nan": {
        "content": [{"type": "text", "text": "a"}],
        "structuredContent": {"result": None},
    },
    "response-structured-circular": "refers to itself",
    "response-content-missing": {
        "content": [{"type": "text", "text": '{"k":1}'}],
        "structuredContent": {"k": 1},
    },
    "response-plain-object-in-content": "content[0] must be a content block",
    "response-string-in-content": "content[0] must be a content block",
    "response-nested": "content[0] must be a content block",
    "sdk-call-tool-result-structured": "structured",
    "own-envelope-object": "structured",
}
#: The handler itself raises: tested where calls are (tests/unit/test_invoke.py).
ELSEWHERE = {"throws"}


@pytest.mark.parametrize("case", cases("node-results.json"))
def test_results(case: Any) -> None:
    given, output = case["input"], case["output"]
    if case["id"] in ELSEWHERE:
        return
    if "defect" not in case:
        answer = sent(given)
        assert [_meaning(block) for block in answer["content"]] == [
            _meaning(block) for block in blocks_of(output)
        ]
        if "structuredContent_parsed" in output:
            assert _meaning(answer["structuredContent"]) == _meaning(output["structuredContent_parsed"])
        return
    expected = RESULTS[case["id"]]
    if expected == "structured":
        answer = sent(given)
        assert answer["structuredContent"] == python_value(given)
        assert json.loads(answer["content"][0]["text"]) == python_value(given)
    elif isinstance(expected, str):
        with pytest.raises((ResultError, ToolError)) as caught:
            sent(given)
        assert expected in caught.value.message
    else:
        assert sent(given) == expected


@pytest.mark.parametrize(
    "case", [param for param in cases("node-results.json") if "defect" not in param.values[0]]
)
def test_through_the_host_both_envelope_forms_give_a_client_the_same(case: Any) -> None:
    """Theirs has a form of its own for one block and for several; ours is always `call_tool_result`."""
    theirs = case["output"]["envelope"]
    given = None if theirs is None else Value(Kind.STRING, json.dumps(theirs))
    ours = Value(Kind.STRING, envelope(from_value(python_value(case["input"]))))
    expected = tool_result(given, use_result_schema=True)
    answer = tool_result(ours, use_result_schema=True)
    assert _meaning(answer["content"]) == _meaning(expected["content"])
    if "structuredContent" in expected:
        assert _meaning(answer["structuredContent"]) == _meaning(expected["structuredContent"])


def _meaning(data: Any) -> Any:
    """The data with one spelling of times: `…04.678000Z` is `…04.678Z`, `…05.000Z` is `…05Z`."""
    text = json.dumps(data)
    return json.loads(text.replace(".678000Z", ".678Z").replace(".000Z", "Z"))


def properties_option(raw: Any) -> Any:
    """tool_properties in Python; a builder chain is written out as the mapping that it stands for."""
    if isinstance(raw, dict) and "builder" not in raw:
        return {
            name: properties_option(item) if isinstance(item, dict) and "builder" in item else item
            for name, item in raw.items()
        }
    if not isinstance(raw, dict):
        return raw
    built: dict[str, Any] = {"isRequired": True, "isArray": False}
    for step in raw["builder"]:
        name, argument = step if isinstance(step, list) else (step, None)
        if name == "describe":
            built["description"] = argument
        elif name == "optional":
            built["isRequired"] = False
        elif name == "asArray":
            built["isArray"] = True
        else:
            built["propertyType"] = name
    return built


def declare(options: Any) -> Any:
    def handler(arguments: dict[str, Any]) -> None:
        return None

    given: dict[str, Any] = {"name": options["toolName"], "description": options.get("description", "d")}
    given["tool_properties"] = properties_option(options.get("toolProperties"))
    for theirs, ours in (("metadata", "metadata"), ("resultSchema", "result_schema")):
        if theirs in options:
            given[ours] = options[theirs]
    found = declared(tool(**given)(handler))
    assert found is not None
    return found.spec


#: Case -> the texts of the fault, or None where the declaration is accepted and checked by the general test.
BINDINGS: dict[str, list[str] | None] = {
    "array-required-unset": None,
    "array-no-name": ["tool_properties[0]: propertyName"],
    "array-duplicate-name": ["'a' stands there twice"],
    "array-type-array": ["isArray for an array"],
    "array-type-unknown": ["propertyType must be one of string, integer"],
    "array-of-null": ["tool_properties[0] must be a mapping"],
    "array-of-builders": ["tool_properties[0]"],
    "mapping-plain-empty-type": ["tool_properties['a']: propertyType"],
    "mapping-one-bad": ["tool_properties['b'] must be a mapping"],
    "properties-missing": None,
    "properties-null": None,
    "properties-json-string": None,
    "properties-json-schema": ["is a JSON Schema"],
    "metadata-array": ["'t': metadata must be a JSON object, not list"],
    "metadata-null-text": ["'t': metadata must be a JSON object, not NoneType"],
    "metadata-not-string": None,
    "resultSchema-object": None,
    "resultSchema-number": ["result_schema must be a JSON object, not int"],
    "resultSchema-no-schema": None,
    "metadata-and-resultSchema": None,
    "metadata-bad-and-resultSchema-bad": ["metadata is no JSON", "result_schema is no JSON"],
    "bad-metadata-and-bad-properties": ["metadata is no JSON"],
    "tool-name-empty": ["a name must be 1 to 64"],
    "tool-name-odd": ["a name must be 1 to 64"],
}


@pytest.mark.parametrize("case", cases("node-binding.json"))
def test_bindings(case: Any) -> None:
    options, output = case["input"]["options"], case["output"]
    said = BINDINGS[case["id"]] if "defect" in case else None
    if said is not None or ("defect" not in case and "error" in output):
        with pytest.raises(DeclarationError) as caught:
            declare(options)
        for text in said or ["propertyType"]:
            assert text in caught.value.message
        return
    spec = declare(options)
    flat = flat_properties(spec.input_schema)
    theirs = output.get("toolProperties_parsed")
    if theirs is not None:
        for ours, other in zip(flat, theirs, strict=True):
            assert {key: ours[key] for key in other} == {**other, "description": other.get("description") or ""}
    if "metadata_parsed" in output:
        published = json.loads(trigger_fields(spec)["metadata"])
        assert published.items() >= output["metadata_parsed"].items()
    if "resultSchema_parsed" in output and case["id"] != "resultSchema-no-schema":
        fields = trigger_fields(spec)
        assert json.loads(fields["output_schema"]) == output["resultSchema_parsed"]
        assert fields["result_schema"] == fields["output_schema"]


def test_metadata_may_be_an_object() -> None:
    assert declare({"toolName": "t", "metadata": {"a": 1}, "toolProperties": []}).metadata == {"a": 1}


def test_left_out_means_not_required_in_both_forms() -> None:
    entry = {"propertyType": "string"}
    for given in ([{"propertyName": "a", **entry}], {"a": entry}):
        spec = declare({"toolName": "t", "toolProperties": given})
        assert "required" not in spec.input_schema


def test_the_wires_own_form_is_accepted() -> None:
    text = json.dumps([{"propertyName": "a", "propertyType": "integer", "isRequired": True}])
    spec = declare({"toolName": "t", "toolProperties": text})
    assert spec.input_schema["required"] == ["a"]


def test_every_case_with_a_defect_has_its_better_behaviour() -> None:
    for name, known in (("node-results.json", set(RESULTS) | ELSEWHERE), ("node-binding.json", set(BINDINGS))):
        found = {
            case["id"] for case in json.loads((FOLDER / name).read_text("utf-8"))["cases"] if "defect" in case
        }
        assert found == known


def test_the_copies_are_the_vectors() -> None:
    """A clone without the folder that they come from still has these copies."""
    origin = FOLDER.parents[3] / "shared" / "vectors" / "node"
    if not origin.is_dir():
        return
    for path in FOLDER.glob("*.json"):
        assert path.read_bytes() == (origin / path.name).read_bytes()
