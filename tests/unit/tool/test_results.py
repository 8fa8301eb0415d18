"""Every return value has one documented result: the table of docs/tools.md, row by row."""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
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

from shared.tool import (
    McpToolResponse,
)
from shared.tool.json_form import dumps
from tests.unit.tool.result_values import (
    IMAGE,
    IMAGE_WIRE,
    TEXT,
    Colour,
    Level,
    Parcel,
    Point,
    Size,
    sent,
    texts,
)

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "tools.md"

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
