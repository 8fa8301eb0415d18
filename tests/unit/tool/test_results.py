"""Every return value has one documented result: the table of docs/tools.md, row by row."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import re
from collections import OrderedDict
from types import MappingProxyType
from typing import Any
from uuid import UUID

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from shared.errors import ResultError, ToolError
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
from shared.tool import wire as wire_module
from shared.tool.decorator import declared
from shared.tool.json_form import dumps
from shared.tool.result import envelope, from_value

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "tools.md"
PNG = b"\x89PNG\r\n\x1a\nrest"
TEXT, IMAGE = McpTextContent("hi"), McpImageContent(PNG)
IMAGE_WIRE = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Point(BaseModel):
    x: int
    at: dt.datetime | None = None


@dataclasses.dataclass
class Size:
    width: float
    inner: Point | None = None


def texts(*values: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": value} for value in values]


#: name of the row in docs/tools.md, value, content, structuredContent
ROWS: list[tuple[str, Any, list[Any], Any]] = [
    ("str", "hi", texts("hi"), {"result": "hi"}),
    ("None", None, [], {"result": None}),
    ("bool", True, texts("true"), {"result": True}),
    ("int", 2**70, texts(str(2**70)), {"result": 2**70}),
    ("float", 1.5, texts("1.5"), {"result": 1.5}),
    ("NaN, infinity", float("inf"), texts("null"), {"result": None}),
    ("dict", {"a": (1, {2})}, texts('{"a":[1,[2]]}'), {"a": [1, [2]]}),
    ("dict", {"result": 5}, texts('{"result":5}'), {"result": 5}),
    (
        "dict",
        MappingProxyType({1: Colour.RED, None: b"\xff\xfe"}),
        texts('{"1":"red","null":"//4="}'),
        {"1": "red", "null": "//4="},
    ),
    ("dict", OrderedDict(b=1, a=2), texts('{"b":1,"a":2}'), {"b": 1, "a": 2}),
    ("list", [1, {"b": None}], texts('[1,{"b":null}]'), {"result": [1, {"b": None}]}),
    ("list", [], texts("[]"), {"result": []}),
    ("tuple", (1, "a"), texts('[1,"a"]'), {"result": [1, "a"]}),
    ("set", {3, 1, 2}, texts("[1,2,3]"), {"result": [1, 2, 3]}),
    ("set", frozenset({"a", 1}), texts('["a",1]'), {"result": ["a", 1]}),
    (
        "dataclass",
        Size(2.0, Point(x=1)),
        texts('{"width":2.0,"inner":{"x":1,"at":null}}'),
        {"width": 2.0, "inner": {"x": 1, "at": None}},
    ),
    (
        "pydantic model",
        Point(x=1, at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        texts('{"x":1,"at":"2026-01-02T00:00:00Z"}'),
        {"x": 1, "at": "2026-01-02T00:00:00Z"},
    ),
    ("Enum", Colour.RED, texts('"red"'), {"result": "red"}),
    ("Enum", Level.LOW, texts("1"), {"result": 1}),
    ("datetime, date, time", dt.date(2026, 1, 2), texts('"2026-01-02"'), {"result": "2026-01-02"}),
    ("Decimal, UUID, Path", decimal.Decimal("1.10"), texts('"1.10"'), {"result": "1.10"}),
    (
        "Decimal, UUID, Path",
        UUID(int=1),
        texts('"00000000-0000-0000-0000-000000000001"'),
        {"result": "00000000-0000-0000-0000-000000000001"},
    ),
    ("bytes", b"hi", texts('"aGk="'), {"result": "aGk="}),
    ("one block", TEXT, texts("hi"), None),
    ("one block", IMAGE, [IMAGE_WIRE], None),
    ("list of blocks", [IMAGE, TEXT], [IMAGE_WIRE, *texts("hi")], None),
    ("mixed list", [IMAGE, "caption", {"a": 1}], [IMAGE_WIRE, *texts("caption", '{"a":1}')], None),
    ("McpToolResponse", McpToolResponse([TEXT], {"k": 1}), texts("hi"), {"k": 1}),
    (
        "McpToolResponse",
        McpToolResponse([IMAGE], Point(x=1)),
        [IMAGE_WIRE, *texts('{"x":1,"at":null}')],
        {"x": 1, "at": None},
    ),
    ("McpToolResponse", McpToolResponse(structured_content=[1, 2]), texts("[1,2]"), {"result": [1, 2]}),
    ("McpToolResponse", McpToolResponse(), [], None),
    (
        "CallToolResult",
        mcp_types.CallToolResult(
            content=[mcp_types.TextContent(type="text", text="a")], structured_content={"k": 1}
        ),
        texts("a"),
        {"k": 1},
    ),
    ("lone surrogate", "a\ud800b", texts("a\ufffdb"), {"result": "a\ufffdb"}),
    ("lone surrogate", {"k": "\ud83d\ude00"}, texts('{"k":"\U0001f600"}'), {"k": "\U0001f600"}),
]


def sent(value: Any) -> Any:
    """What the host is given, unpacked: the CallToolResult."""
    outer = json.loads(envelope(from_value(value)).encode("utf-8"))
    assert outer["type"] == "call_tool_result"
    return json.loads(outer["content"])


@pytest.mark.parametrize(("row", "value", "content", "structured"), ROWS)
def test_the_table(row: str, value: Any, content: list[Any], structured: Any) -> None:
    answer = sent(value)
    assert answer["content"] == content
    assert answer.get("structuredContent") == structured
    assert "isError" not in answer


def test_the_table_in_the_docs_has_these_rows() -> None:
    section = DOCS.read_text("utf-8").split("## What may be returned")[1].split("\n## ")[0]
    documented = re.findall(r"^\| ([^|]+?) \|", section.split("###")[0], re.MULTILINE)[1:]
    rows = {row for row, *_ in ROWS} | {"is_error", "generator", "anything else"}
    assert {row.replace("`", "") for row in documented} == rows


def test_an_error_response_says_so() -> None:
    assert sent(McpToolResponse([TEXT], is_error=True)) == {"content": texts("hi"), "isError": True}
    result = mcp_types.CallToolResult(content=[], is_error=True)
    assert sent(result) == {"content": [], "isError": True}


class Circle:
    def __init__(self) -> None:
        self.me = self


def circular() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "cannot be written as JSON"),
        (Circle(), "cannot be written as JSON"),
        (lambda: None, "cannot be written as JSON"),
        (circular(), "refers to itself"),
        ({("a", 1): 2}, "as a key"),
        ({"image": IMAGE}, "McpImageContent stands inside other data"),
        ([[TEXT], TEXT], "McpTextContent stands inside other data"),
        ([TEXT, McpToolResponse([TEXT])], "McpToolResponse stands in a list"),
        ([McpToolResponse([TEXT])], "McpToolResponse stands inside other data"),
    ],
)
def test_what_has_no_form_is_named(value: Any, said: str) -> None:
    with pytest.raises(ResultError) as caught:
        from_value(value)
    assert said in caught.value.message


def test_none_from_a_tool_that_promises_data_is_a_null_result() -> None:
    @tool
    def maybe() -> int | None:
        """Maybe."""
        return None

    found = declared(maybe)
    assert found is not None
    handler = found.load()
    assert handler.finish(None).structured == {"result": None}
    assert handler.finish(3).structured == {"result": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_value_survives(value: Any) -> None:
    answer = sent(value)
    if isinstance(value, dict):
        assert answer["structuredContent"] == value
    else:
        assert answer["structuredContent"] == {"result": value}


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_text_is_sent_as_valid_utf_8(text: str) -> None:
    assert len(dumps(text).encode("utf-8")) > 0


class TestBlocks:
    @pytest.mark.parametrize(
        ("block", "wire"),
        [
            (
                McpTextContent("a", annotations={"priority": 1}),
                {"type": "text", "text": "a", "annotations": {"priority": 1}},
            ),
            (McpImageContent(bytearray(PNG)), IMAGE_WIRE),
            (McpImageContent(memoryview(PNG)), IMAGE_WIRE),
            (McpImageContent(IMAGE_WIRE["data"]), IMAGE_WIRE),
            (McpImageContent(b"", "image/png"), {"type": "image", "data": "", "mimeType": "image/png"}),
            (McpAudioContent(b"OggS...."), {"type": "audio", "data": "T2dnUy4uLi4=", "mimeType": "audio/ogg"}),
            (
                McpResourceLinkContent("file:///dir/a%20b.txt"),
                {"type": "resource_link", "uri": "file:///dir/a%20b.txt", "name": "a b.txt"},
            ),
            (
                McpResourceLinkContent("u:1", "n", title="T", description="D", mime_type="text/plain", size=3),
                {
                    "type": "resource_link",
                    "uri": "u:1",
                    "name": "n",
                    "title": "T",
                    "description": "D",
                    "mimeType": "text/plain",
                    "size": 3,
                },
            ),
            (
                McpResourceContent("file:///a", text=""),
                {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": ""}},
            ),
            (
                McpResourceContent("file:///a", blob=b"\x01"),
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "mimeType": "application/octet-stream", "blob": "AQ=="},
                },
            ),
            (
                McpResourceContent("file:///a", blob=PNG),
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "mimeType": "image/png", "blob": IMAGE_WIRE["data"]},
                },
            ),
        ],
    )
    def test_wire_forms(self, block: McpContentBlock, wire: Any) -> None:
        assert sent(block)["content"] == [wire]

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (
                lambda: McpTextContent(5),  # type: ignore[arg-type]
                "text must be a str, not int",
            ),
            (lambda: McpImageContent(b"no signature"), "mime_type must be like 'image/…'"),
            (lambda: McpImageContent(b"OggS"), "got 'audio/ogg'"),
            (lambda: McpImageContent(b"", "png"), "got 'png'"),
            (lambda: McpImageContent("not base64!", "image/png"), "must be base64"),
            (
                lambda: McpImageContent(5, "image/png"),  # type: ignore[arg-type]
                "must be bytes or a base64 text, not int",
            ),
            (lambda: McpResourceLinkContent("relative/path"), "uri must be absolute"),
            (lambda: McpResourceLinkContent("u:/"), "name is required"),
            (lambda: McpResourceContent("file:///a"), "exactly one of text and blob"),
            (lambda: McpResourceContent("file:///a", text="t", blob=b"b"), "exactly one of text and blob"),
            (lambda: McpTextContent("a", annotations={"priority": 5}), "annotations.priority"),
            (lambda: McpTextContent("a", annotations={"priority": "high"}), "annotations.priority"),
            (lambda: McpImageContent(PNG, annotations={"audience": "user"}), "annotations.audience"),
            (lambda: McpAudioContent(b"OggS", annotations={"audience": ["robot"]}), "annotations.audience"),
            (lambda: McpResourceLinkContent("u:1", "n", size=1.5), "size must be"),  # type: ignore[arg-type]
            (lambda: McpResourceLinkContent("u:1", "n", size=-1), "size must be"),
            (lambda: McpResourceLinkContent("u:1", "n", mime_type=5), "mimeType must"),  # type: ignore[arg-type]
            (lambda: McpResourceContent("u:1", text="t", mime_type="nonsense"), "mime_type must be like"),
            (lambda: McpToolResponse([{"type": "text", "text": "a"}]), "content[0] must be a content block"),
            (
                lambda: McpToolResponse([TEXT, "a"]),
                "content[1] must be a content block such as McpTextContent, not str",
            ),
            (lambda: McpToolResponse([McpToolResponse()]), "not McpToolResponse"),
        ],
    )
    def test_what_the_host_would_refuse_is_refused_when_made(self, make: Any, said: str) -> None:
        with pytest.raises(ToolError) as caught:
            make()
        assert said in caught.value.message

    def test_sdk_blocks_are_understood(self) -> None:
        link = mcp_types.ResourceLink(type="resource_link", uri="file:///a", name="a")
        image = mcp_types.ImageContent(type="image", data="AQID", mime_type="image/png")
        assert [block["type"] for block in sent([link, image, TEXT])["content"]] == [
            "resource_link",
            "image",
            "text",
        ]
        assert sent(McpToolResponse([image]))["content"] == [
            {"type": "image", "data": "AQID", "mimeType": "image/png"}
        ]


class VideoContent(McpContentBlock):
    """The example of the Functions Node library's documentation, in Python."""

    type = "video"

    def __init__(self, data: bytes, mime_type: str, duration_ms: int | None = None) -> None:
        self.data, self.mime_type, self.duration_ms = data, mime_type, duration_ms

    def to_wire(self) -> dict[str, Any]:
        data = base64.b64encode(self.data).decode()
        return {"type": self.type, "data": data, "mimeType": self.mime_type, "durationMs": self.duration_ms}


class Odd(McpContentBlock):
    type = "text"

    def __init__(self, wire: Any, kind: str = "text") -> None:
        self.wire = wire
        self.type = kind  # type: ignore[misc]

    def to_wire(self) -> Any:
        if isinstance(self.wire, Exception):
            raise self.wire
        return self.wire


class TestCustomBlocks:
    def test_an_unknown_type_with_data_travels_as_a_resource(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level("INFO"):
            (block,) = sent(VideoContent(b"\x01\x02\x03", "video/mp4", 5))["content"]
        assert block == {
            "type": "resource",
            "resource": {"uri": "toolbox://content/video", "mimeType": "video/mp4", "blob": "AQID"},
        }
        assert "'video'" in caplog.text

    def test_any_other_unknown_type_travels_as_json(self) -> None:
        (block,) = sent(Odd({"type": "poll", "options": ["a"]}, "poll"))["content"]
        assert json.loads(block["text"]) == {"type": "poll", "options": ["a"]}

    def test_a_newer_hosts_types_pass_untouched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOOLBOX_CONTENT_TYPES", "poll, video")
        wire_module._more_types.cache_clear()
        try:
            (block,) = sent(VideoContent(b"\x01", "video/mp4"))["content"]
            assert block == {"type": "video", "data": "AQ==", "mimeType": "video/mp4", "durationMs": None}
        finally:
            monkeypatch.undo()
            wire_module._more_types.cache_clear()

    @pytest.mark.parametrize(
        ("block", "wire"),
        [
            (Odd({"text": "c"}), {"type": "text", "text": "c"}),
            (
                Odd({"type": "resource", "resource": {"uri": "u:1", "text": "t"}}),
                {"type": "resource", "resource": {"uri": "u:1", "text": "t", "mimeType": "text/plain"}},
            ),
            (Odd({"type": "text", "text": "c", "extra": {"a": 1}}), {"type": "text", "text": "c"}),
            (
                Odd({"type": "text", "text": "c", "_meta": {"a": 1}}),
                {"type": "text", "text": "c", "_meta": {"a": 1}},
            ),
        ],
    )
    def test_known_types_are_made_fit(self, block: Any, wire: Any) -> None:
        assert sent(block)["content"] == [wire]

    @pytest.mark.parametrize(
        ("block", "said"),
        [
            (Odd(ValueError("bad block")), "Odd has no wire form: ValueError: bad block"),
            (Odd("text"), "must give a dict, not str"),
            (Odd({"type": 5}), "its type must be a text"),
            (Odd({"type": "call_tool_result", "content": [], "isError": True}), "its type must be a text"),
            (Odd({"type": "image", "data": "AQ=="}), "a 'image' block needs 'mimeType'"),
            (Odd({"type": "resource_link", "uri": "u:1"}), "needs 'name'"),
            (Odd({"type": "text", "text": "t", "annotations": {"priority": 2}}), "annotations.priority"),
            (Odd({"type": "resource", "resource": {"uri": "u:1"}}), "exactly one of text and blob"),
            (Odd({"type": "resource", "resource": {"text": "t"}}), "its resource needs a uri"),
        ],
    )
    def test_what_cannot_be_sent_is_named(self, block: Any, said: str) -> None:
        with pytest.raises(ResultError) as caught:
            from_value(block)
        assert said in caught.value.message
