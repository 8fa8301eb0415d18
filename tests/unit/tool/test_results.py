"""Every return value has one documented result: the table of docs/tools.md, row by row."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import json
import pathlib
import re
from collections import OrderedDict
from collections.abc import Iterable
from types import MappingProxyType
from typing import Annotated, Any, TypedDict
from uuid import UUID

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    Base64Bytes,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    computed_field,
    field_serializer,
    model_serializer,
)

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


@dataclasses.dataclass
class Parcel:
    weight: Annotated[int, Field(serialization_alias="weightKg")]
    seal: bytes = b"hi"


class Everything(BaseModel):
    """What a model can hold, and what its author can say of it."""

    model_config = ConfigDict(extra="allow")
    raw: bytes = b"\xfb\xff"
    readable: bytes = b"hi"
    tags: set[str] = {"c", "a", "b"}
    big: int = 2**70
    price: Annotated[decimal.Decimal, PlainSerializer(float, return_type=float)] = decimal.Decimal("1.5")
    parcel: Parcel = Field(default=Parcel(1), serialization_alias="theParcel")
    anything: Any = None

    @field_serializer("big")
    def _hexadecimal(self, value: int) -> str:
        return hex(value)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def digest(self) -> bytes:
        return b"\xff"


class Branch(BaseModel):
    leaf: bytes
    branches: list[Branch] = []


class Waited(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float", ser_json_bytes="hex")
    took: list[dt.timedelta]


class Handed(BaseModel):
    """Bytes and sets that pass through serializers of the author's."""

    first: bytes = b"a"
    second: bytes = b"\xff"
    third: Base64Bytes = b"hi"

    @field_serializer("second", mode="wrap")
    def _listed(self, value: bytes, write: Any) -> list[Any]:
        return [write(value), value]

    @model_serializer(mode="wrap")
    def _more(self, write: Any) -> dict[str, Any]:
        return {**write(self), "more": {2, 1}, "raw": b"hi"}


class Labelled(TypedDict):
    label: Annotated[str, Field(serialization_alias="theLabel")]
    raw: bytes


class Secretive(TypedDict):
    label: Any
    key: Annotated[str, Field(exclude=True)]


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
    ("dataclass", Parcel(5), texts('{"weightKg":5,"seal":"aGk="}'), {"weightKg": 5, "seal": "aGk="}),
    (
        "pydantic model",
        Point(x=1, at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        texts('{"x":1,"at":"2026-01-02T00:00:00Z"}'),
        {"x": 1, "at": "2026-01-02T00:00:00Z"},
    ),
    ("Enum", Colour.RED, texts('"red"'), {"result": "red"}),
    ("Enum", Level.LOW, texts("1"), {"result": 1}),
    ("datetime, date, time", dt.date(2026, 1, 2), texts('"2026-01-02"'), {"result": "2026-01-02"}),
    ("timedelta", dt.timedelta(hours=1, seconds=5), texts('"PT1H5S"'), {"result": "PT1H5S"}),
    ("Decimal", decimal.Decimal("1.10"), texts('"1.10"'), {"result": "1.10"}),
    ("Decimal", decimal.Decimal("1E+2"), texts('"1E+2"'), {"result": "1E+2"}),
    ("Decimal", decimal.Decimal("NaN"), texts('"NaN"'), {"result": "NaN"}),
    (
        "UUID, Path, URL, IP address",
        UUID(int=1),
        texts('"00000000-0000-0000-0000-000000000001"'),
        {"result": "00000000-0000-0000-0000-000000000001"},
    ),
    ("UUID, Path, URL, IP address", pathlib.PurePosixPath("a/b"), texts('"a/b"'), {"result": "a/b"}),
    ("UUID, Path, URL, IP address", ipaddress.ip_address("::1"), texts('"::1"'), {"result": "::1"}),
    ("bytes", b"hi", texts('"aGk="'), {"result": "aGk="}),
    ("bytes", memoryview(b"\xfb\xff"), texts('"+/8="'), {"result": "+/8="}),
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


def finished(annotation: Any, value: Any) -> tuple[Any, Any]:
    """What a tool with this return annotation sends (checked against its schema), and publishes."""

    def sample() -> Any:
        """Sample."""

    if annotation is not None:
        sample.__annotations__["return"] = annotation
    entry = declared(tool(sample))
    assert entry is not None
    result = entry.load().finish(value)
    envelope(result).encode()
    return result.structured, entry.spec.result_schema


EVERYTHING = {
    "raw": "+/8=",
    "readable": "aGk=",
    "tags": ["a", "b", "c"],
    "big": hex(2**70),
    "price": 1.5,
    "theParcel": {"weightKg": 1, "seal": "aGk="},
    "anything": None,
    "digest": "/w==",
}


class TestAnnotated:
    """The published schema is kept, and the forms are those of a tool without annotation."""

    @pytest.mark.parametrize(
        ("annotation", "value", "structured"),
        [
            (Parcel, Parcel(5), {"weightKg": 5, "seal": "aGk="}),
            (list[Parcel], [Parcel(5)], {"result": [{"weightKg": 5, "seal": "aGk="}]}),
            (dict[str, Parcel | int], {"a": Parcel(5), "b": 1}, {"a": {"weightKg": 5, "seal": "aGk="}, "b": 1}),
            (Everything, Everything(), EVERYTHING),
            (
                Everything,
                Everything(more={2, 1}, anything={"b": b"\xff", "s": {2, 1}}),
                {**EVERYTHING, "more": [1, 2], "anything": {"b": "/w==", "s": [1, 2]}},
            ),
            (
                Branch,
                Branch(leaf=b"a", branches=[Branch(leaf=b"\xff")]),
                {"leaf": "YQ==", "branches": [{"leaf": "/w==", "branches": []}]},
            ),
            (Base64Bytes, b"hi", {"result": "aGk="}),
            (bytes, b"hi", {"result": "aGk="}),
            (set[bytes], {b"b", b"a"}, {"result": ["YQ==", "Yg=="]}),
            (Iterable[int], [1, 2], {"result": [1, 2]}),
            (
                Handed,
                Handed(),
                {"first": "YQ==", "second": ["/w==", "/w=="], "third": "aGk=", "more": [1, 2], "raw": "aGk="},
            ),
            (Waited, Waited(took=[dt.timedelta(seconds=90)]), {"took": [90.0]}),
            (Everything, Everything(anything="\ud800"), {**EVERYTHING, "anything": "\ud800"}),
        ],
    )
    def test_types_of_ones_own(self, annotation: Any, value: Any, structured: Any) -> None:
        sent, told = finished(annotation, value)
        assert sent == structured
        assert json.loads(dumps(told))["type"] == "object"
        if annotation is not Base64Bytes:  # that one is a form of the annotation's only
            alone, _ = finished(None, value)
            assert alone == structured

    @pytest.mark.parametrize(
        ("annotation", "value", "structured"),
        [
            (Labelled, {"label": "a", "raw": b"hi"}, {"theLabel": "a", "raw": "aGk="}),
            (list[Labelled], [{"label": "a", "raw": b"hi"}], {"result": [{"theLabel": "a", "raw": "aGk="}]}),
            (
                set[Annotated[decimal.Decimal, PlainSerializer(float, return_type=float)]],
                {decimal.Decimal(3), decimal.Decimal("1.5")},
                {"result": [1.5, 3.0]},
            ),
            (Annotated[str, PlainSerializer(str.upper, return_type=str)], "a", {"result": "A"}),
            # What is left out stays out, also where the value is not all that was said.
            (Secretive, {"label": 5, "key": "k", "unknown": 1}, {"label": 5}),
        ],
    )
    def test_what_only_the_annotation_says(self, annotation: Any, value: Any, structured: Any) -> None:
        assert finished(annotation, value)[0] == structured

    def test_a_subclass_keeps_its_own_fields(self) -> None:
        class Longer(Point):
            z: int = 3

        assert finished(Point, Longer(x=1))[0] == {"x": 1, "at": None, "z": 3}

    @pytest.mark.parametrize(
        ("annotation", "value", "said"),
        [
            (Parcel, {"weight": 5}, "$.weightKg: required field is missing"),
            (Labelled, {"label": 5, "raw": b""}, "$.theLabel: expected string, got integer"),
            (list[Parcel], Parcel(5), "$.result: expected array, got object"),
            (float, float("nan"), "$.result: expected number, got null"),
            (list[Labelled], {"label": "a", "raw": b""}, "$.result: expected array, got object"),
        ],
    )
    def test_a_value_that_breaks_the_promise_is_told_by_its_path(
        self, annotation: Any, value: Any, said: str
    ) -> None:
        with pytest.raises(ResultError, match="Output validation failed") as caught:
            finished(annotation, value)
        assert said in caught.value.message

    def test_bytes_are_published_as_the_base64_that_they_are_sent_as(self) -> None:
        _, told = finished(Everything, Everything())
        assert told["properties"]["raw"] == {
            "type": "string",
            "contentEncoding": "base64",
            "default": "+/8=",
        }
        assert told["properties"]["digest"]["contentEncoding"] == "base64"
        assert finished(bytes, b"")[1]["properties"]["result"] == {
            "type": "string",
            "contentEncoding": "base64",
        }


class Circle:
    def __init__(self) -> None:
        self.me = self


def selfish() -> Any:
    found = Everything()
    found.anything = [found]
    return found


async def arriving() -> Any:
    yield 1


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
        (selfish(), "refers to itself"),
        ((number for number in (1,)), "an iterator (generator), which can be read only once: return a list"),
        (map(str, [1]), "an iterator (map)"),
        ({"a": [zip([1], strict=True)]}, "an iterator (zip)"),
        (Everything(anything=iter([1])), "an iterator (list_iterator)"),
        (arriving(), "an iterator (async_generator)"),
        (1j, "a value of type complex has no JSON form"),
        (re.compile("a"), "a value of type re.Pattern has no JSON form"),
        (json, "a value of type module has no JSON form"),
        (Point, "has no JSON form"),
        (range(3), "a value of type range has no JSON form"),
        ({"a": object()}, "a value of type object has no JSON form"),
        (Everything(anything=object()), "a value of type object has no JSON form"),
        (Everything(anything=TEXT), "McpTextContent stands inside other data"),
        ({1: "a", "1": "b"}, "two keys of the result are both '1' once written"),
        ([{None: 1, "null": 2}], "two keys of the result are both 'null' once written"),
        (MappingProxyType({True: 1, "true": 2}), "two keys of the result are both 'true' once written"),
        (Everything(anything={1: "a", "1": "b"}), "two keys of the result are both '1' once written"),
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


def test_keys_that_only_differ_in_what_cannot_be_written_are_an_error() -> None:
    with pytest.raises(ResultError, match="two keys of the result differ only in characters that cannot be"):
        envelope(from_value([dict.fromkeys(("\ud800", "\ud801"))]))


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
            (lambda: McpToolResponse(5), "content must be a list of blocks"),  # type: ignore[arg-type]
            (lambda: McpToolResponse(iter([TEXT])), "content must be a list of blocks"),  # type: ignore[arg-type]
            (lambda: McpToolResponse(is_error="no"), "is_error True or False"),  # type: ignore[arg-type]
            (lambda: McpResourceContent("u:1", text=5), "text must be a str, not int"),  # type: ignore[arg-type]
            (lambda: McpTextContent("a", annotations={"audience": 5}), "annotations.audience"),
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
        assert sent(McpToolResponse(image))["content"] == sent(image)["content"]  # type: ignore[arg-type]
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


class Untyped(McpContentBlock):
    """States no type."""

    def to_wire(self) -> Any:
        return {"text": "t"}


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
            (Untyped(), "content block Untyped: its type must be a text"),
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
