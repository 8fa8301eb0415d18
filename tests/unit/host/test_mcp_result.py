"""The return table of the MCP extension, row by row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.host import wire
from infra.local.host.mcp_prompts import prompt_result
from infra.local.host.mcp_resources import resource_result
from infra.local.host.mcp_result import ResultError, content_block, error_result, tool_result
from infra.local.host.values import HttpReply, Kind, Value

TEXT = {"type": "text", "text": "t"}
IMAGE = {"type": "image", "data": "AQID", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "a:b", "name": "n"}


def string(value: Any) -> Value:
    """What a Python tool returns: a string, here of JSON."""
    return Value(Kind.STRING, value if isinstance(value, str) else json.dumps(value))


def envelope(kind: Any, content: Any, structured: Any = ...) -> Value:
    """An envelope whose parts are JSON texts."""
    data = {"type": kind, "content": json.dumps(content)}
    if structured is not ...:
        data["structuredContent"] = json.dumps(structured)
    return string(data)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, []),
        (string("s"), [{"type": "text", "text": "s"}]),
        (string(""), [{"type": "text", "text": ""}]),
        (Value(Kind.JSON, '{"a":[1]}'), [{"type": "text", "text": '{\n  "a": [\n    1\n  ]\n}'}]),
        (Value(Kind.JSON, "true"), [{"type": "text", "text": "True"}]),
        (Value(Kind.BYTES, b"ab"), [{"type": "text", "text": "System.Byte[]"}]),
        (Value(Kind.INT, 5), [{"type": "text", "text": "5"}]),
    ],
)
def test_without_result_schema(value: Value | None, content: list[Any]) -> None:
    assert tool_result(value, use_result_schema=False) == {"content": content}


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, {"content": []}),
        (envelope("text", TEXT), {"content": [TEXT]}),
        (envelope("text", TEXT, {"a": 1}), {"content": [TEXT], "structuredContent": {"a": 1}}),
        (envelope("text", TEXT, [1]), {"content": [TEXT], "structuredContent": [1]}),
        (envelope("text", TEXT, 5), {"content": [TEXT], "structuredContent": 5}),
        (envelope("whatever", IMAGE), {"content": [IMAGE]}),  # the block's own type counts
        (envelope("multi_content_result", [TEXT, IMAGE, LINK]), {"content": [TEXT, IMAGE, LINK]}),
        (
            envelope("multi_content_result", [TEXT], {"a": 1}),
            {"content": [TEXT], "structuredContent": {"a": 1}},
        ),
        (envelope("call_tool_result", {"content": []}), {"content": []}),
        (envelope("call_tool_result", {}), {"content": []}),
        (
            envelope("call_tool_result", {"content": [TEXT], "isError": True, "resultType": "complete"}),
            {"content": [TEXT], "isError": True},
        ),
        (
            envelope(
                "call_tool_result",
                {"_meta": {"m": 1}, "isError": False, "structuredContent": {"a": 1}, "content": [TEXT]},
                {"ignored": True},
            ),
            {"content": [TEXT], "structuredContent": {"a": 1}, "isError": False, "_meta": {"m": 1}},
        ),
        (
            string({"TYPE": "text", "Content": json.dumps(TEXT), "STRUCTUREDCONTENT": "{}", "more": [1]}),
            {"content": [TEXT], "structuredContent": {}},
        ),
        (
            string({"type": "text", "content": json.dumps(TEXT), "structuredContent": None}),
            {"content": [TEXT]},
        ),
        (Value(Kind.JSON, envelope("text", TEXT).data), {"content": [TEXT]}),
    ],
)
def test_with_result_schema(value: Value | None, result: dict[str, Any]) -> None:
    made = tool_result(value, use_result_schema=True)
    assert made == result
    assert list(made) == list(result)  # the order is the real host's


@pytest.mark.parametrize(
    "value",
    [
        string(""),
        string("hello"),
        string("null"),
        string([]),
        string({"content": json.dumps(TEXT)}),
        string({"type": "text"}),
        string({"type": 5, "content": "{}"}),
        string({"type": "text", "content": TEXT}),
        string({"type": "text", "content": "{"}),
        string({"type": "text", "content": json.dumps(TEXT), "structuredContent": "hello"}),
        string({"type": "text", "content": json.dumps(TEXT), "structuredContent": "NaN"}),
        string({"type": "text", "content": json.dumps(TEXT), "structuredContent": "[1e999]"}),
        string({"type": "text", "content": json.dumps(TEXT), "structuredContent": {}}),
        envelope("text", TEXT, None),
        envelope("multi_content_result", []),
        envelope("multi_content_result", TEXT),
        envelope("call_tool_result", []),
        envelope("call_tool_result", {"content": None}),
        envelope("call_tool_result", {"content": [TEXT], "isError": "yes"}),
        envelope("call_tool_result", {"content": [TEXT], "_meta": 1}),
        Value(Kind.BYTES, b"{}"),
        Value(Kind.INT, 5),
        Value(Kind.HTTP, HttpReply(200, (), (), b"")),
    ],
)
def test_what_the_real_host_cannot_read(value: Value) -> None:
    with pytest.raises(ResultError):
        tool_result(value, use_result_schema=True)


@pytest.mark.parametrize(
    ("given_block", "sent"),
    [
        ({**TEXT, "extra": 1}, TEXT),
        ({**TEXT, "data": "unused"}, TEXT),
        ({**TEXT, "annotations": {"priority": 1, "audience": ["user"], "x": 1}, "_meta": {"m": 1}}, None),
        ({"mimeType": "a/b", "data": "", "type": "audio"}, {"type": "audio", "data": "", "mimeType": "a/b"}),
        (
            {**LINK, "title": "lost", "size": 3, "description": "d", "mimeType": "a/b", "_meta": {"lost": 1}},
            {**LINK, "description": "d", "mimeType": "a/b", "size": 3},
        ),
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "t", "unknown": {}}},
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": None, "text": "t"}},
        ),
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "t", "blob": "AQ==", "mimeType": "m"}},
            {"type": "resource", "resource": {"uri": "a:b", "mimeType": "m", "blob": "AQ=="}},
        ),
    ],
)
def test_blocks(given_block: dict[str, Any], sent: dict[str, Any] | None) -> None:
    block = content_block(given_block)
    if sent is None:
        assert list(block) == ["type", "text", "_meta", "annotations"]
        assert block["annotations"] == {"audience": ["user"], "priority": 1}
    else:
        assert block == sent
        assert list(block) == list(sent)


@pytest.mark.parametrize(
    "block",
    [
        None,
        [],
        {},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "text", "text": "t", "unknown": {}},
        {"type": "text", "text": "t", "annotations": {"audience": ["robot"]}},
        {"type": "text", "text": "t", "annotations": {"priority": "high"}},
        {"type": "text", "text": "t", "annotations": {"lastModified": 5}},
        {"type": "image", "data": "AQID"},
        {"type": "audio", "mimeType": "a/b"},
        {"type": "resource_link", "uri": "a:b"},
        {"type": "resource_link", "uri": "a:b", "name": "n", "size": True},
        {"type": "resource"},
        {"type": "resource", "resource": {"text": "t"}},
        {"type": "resource", "resource": {"uri": "a:b"}},
        {"type": "resource", "resource": {"uri": "a:b", "text": "t", "mimeType": 5}},
        {"type": "video"},
    ],
)
def test_blocks_that_fail(block: Any) -> None:
    with pytest.raises(ResultError):
        content_block(block)


def test_error_result_names_the_tool_only() -> None:
    assert error_result("My-Tool") == {
        "content": [{"type": "text", "text": "An error occurred invoking 'My-Tool'."}],
        "isError": True,
    }


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["type", "text", "data"]), inner)
    ),
    max_leaves=8,
)


@given(st.one_of(st.text(), JSONS.map(json.dumps)), st.booleans())
def test_any_string_gives_a_result_that_can_be_sent_or_a_result_error(text: str, use: bool) -> None:
    try:
        result = tool_result(string(text), use_result_schema=use)
    except ResultError:
        assert use
        return
    assert json.loads(wire.dumps(result)) == result


@given(JSONS, st.sampled_from(["call_tool_result", "multi_content_result", "text", "x"]), JSONS)
def test_any_envelope_gives_a_result_that_can_be_sent_or_a_result_error(
    content: Any, kind: str, structured: Any
) -> None:
    try:
        result = tool_result(envelope(kind, content, structured), use_result_schema=True)
    except ResultError:
        return
    assert json.loads(wire.dumps(result)) == result


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        (None, []),
        (string("hi"), [{"uri": "u:1", "mimeType": "m", "text": "hi"}]),
        (string('{"a": 1}'), [{"uri": "u:1", "mimeType": "m", "text": '{"a": 1}'}]),
        (Value(Kind.BYTES, b"\x01"), [{"uri": "u:1", "mimeType": "m", "blob": "AQ=="}]),
        (
            string({"content": '{"text": "t", "uri": ""}'}),
            [{"uri": "u:1", "mimeType": "m", "text": "t"}],
        ),
        (
            string({"content": '{"blob": "AQ==", "uri": "u:2", "mimeType": "n"}'}),
            [{"uri": "u:2", "mimeType": "n", "blob": "AQ=="}],
        ),
    ],
)
def test_resource_contents(value: Value | None, contents: list[Any]) -> None:
    assert resource_result(value, "u:1", "m") == contents


@pytest.mark.parametrize("value", [Value(Kind.INT, 1), string({"content": "{"}), string({"content": "{}"})])
def test_resource_contents_that_fail(value: Value) -> None:
    with pytest.raises(ResultError):
        resource_result(value, "u:1", None)


MESSAGE = {"role": "assistant", "content": TEXT}


@pytest.mark.parametrize(
    ("value", "use", "result"),
    [
        (None, False, {"messages": []}),
        (string("hi"), False, {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}),
        (envelope("prompt_messages", [MESSAGE]), True, {"messages": [MESSAGE]}),
        (
            envelope("get_prompt_result", {"description": "d", "messages": [MESSAGE]}),
            True,
            {"description": "d", "messages": [MESSAGE]},
        ),
    ],
)
def test_prompt_result(value: Value | None, use: bool, result: dict[str, Any]) -> None:
    assert prompt_result(value, use_result_schema=use) == result


@pytest.mark.parametrize(
    "value",
    [string("hi"), envelope("other", []), envelope("prompt_messages", [{"role": "x"}]), Value(Kind.BYTES, b"")],
)
def test_prompt_results_that_fail(value: Value) -> None:
    with pytest.raises(ResultError):
        prompt_result(value, use_result_schema=True)
