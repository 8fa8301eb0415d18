"""What a tool's return annotation publishes, and what it makes of a value."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Iterable
from typing import Annotated, Any

import pytest
from pydantic import (
    Base64Bytes,
    PlainSerializer,
)

from shared.errors import ResultError
from shared.tool import (
    tool,
)
from shared.tool.decorator import declared
from shared.tool.json_form import dumps
from shared.tool.result import envelope
from tests.unit.tool.result_values import (
    Branch,
    Everything,
    Handed,
    Labelled,
    Parcel,
    Point,
    Secretive,
    Waited,
)


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
