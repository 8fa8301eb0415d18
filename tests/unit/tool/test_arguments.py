"""Arguments mean what the JSON says: nothing is converted silently, dropped, or told in two rounds."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from pydantic import (
    Base64Bytes,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    WithJsonSchema,
    field_validator,
)

from shared.errors import InputError
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.handler import Handler
from shared.tool.spec import JsonObject


class Level(enum.Enum):
    LOW = 1
    HIGH = 5


class Part(BaseModel):
    count: int = 1
    exact: StrictInt = 0
    at: dt.time | None = None
    raw: bytes = b"\xff"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    count: int
    when: dt.datetime
    level: Level = Level.LOW
    tags: set[str] = set()


class Row(TypedDict):
    name: str
    note: NotRequired[str]


@dataclasses.dataclass
class Size:
    width: float = 1.0
    row: Row | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    part: Part | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    born: dt.date


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]
    born: dt.date = dt.date(2020, 1, 1)


class Node(BaseModel):
    value: int
    day: dt.date | None = None
    children: list[Node] = []


class Checked(BaseModel):
    even: int = 0

    @field_validator("even")
    @classmethod
    def is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


def words(text: Any) -> Any:
    return text.split(",")


def handler_of(annotation: Any) -> Handler:
    """A tool that gives back its argument `v`."""

    def sample(v):  # type: ignore[no-untyped-def]
        """Sample."""
        return v

    sample.__annotations__ = {"v": annotation, "return": Any}
    entry = declared(tool(sample))
    assert entry is not None
    return entry.load()


def arrives(annotation: Any, given: Any) -> Any:
    handler = handler_of(annotation)
    return handler.run(handler.check_input({"v": given}), None)


def faults(annotation: Any, given: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        arrives(annotation, given)
    return list(caught.value.faults)


def published(annotation: Any) -> JsonObject:
    found: JsonObject = handler_of(annotation).spec.input_schema
    return found


DATE = "expected a date (ISO 8601, like 2026-01-31), got another string"
MOMENT = "expected a date and time (ISO 8601, like 2026-01-31T08:15:00Z), got another string"
TIME = "expected a time (ISO 8601, like 08:15:00Z), got another string"


class TestMoments:
    @pytest.mark.parametrize(
        ("annotation", "given", "said"),
        [
            (dt.datetime, "5", f"$.v: {MOMENT}"),
            (dt.datetime, "2026-01-31", f"$.v: {MOMENT}"),
            (dt.datetime, 5, "$.v: expected string, got integer"),
            (dt.date, "0", f"$.v: {DATE}"),
            (dt.date, "2026-02-30", f"$.v: {DATE}"),
            (dt.date, "2026-01-31T00:00:00", f"$.v: {DATE}"),
            (dt.time, "5", f"$.v: {TIME}"),
            (dt.timedelta, "5", "$.v: expected a duration (ISO 8601, like PT1H30M), got another string"),
            (dt.timedelta, "01:30:00", "$.v: expected a duration (ISO 8601, like PT1H30M), got another string"),
            (list[dt.date], ["2026-01-31", "0"], f"$.v[1]: {DATE}"),
            (dict[str, dt.date], {"a b": "0"}, f"$.v['a b']: {DATE}"),
            (dict[dt.date, int], {"0": 1}, f"$.v['0']: field name: {DATE}"),
            (Part, {"at": "5"}, f"$.v.at: {TIME}"),
            (int | dt.date, "5", f"$.v: {DATE}"),
        ],
    )
    def test_only_iso_8601_passes(self, annotation: Any, given: Any, said: str) -> None:
        assert faults(annotation, given) == [said]

    @pytest.mark.parametrize(
        ("annotation", "given", "value"),
        [
            (dt.datetime, "2026-01-31T08:15:00Z", dt.datetime(2026, 1, 31, 8, 15, tzinfo=dt.UTC)),
            (dt.datetime, "2026-01-31 08:15", dt.datetime(2026, 1, 31, 8, 15)),
            (dt.date, "2026-01-31", dt.date(2026, 1, 31)),
            (dt.time, "08:15:30.5", dt.time(8, 15, 30, 500000)),
            (dt.timedelta, "P1DT2H", dt.timedelta(days=1, hours=2)),
            (dt.timedelta, "-PT1.5S", dt.timedelta(seconds=-1.5)),
            (dt.date | dt.datetime, "2026-01-31T00:00:00", dt.datetime(2026, 1, 31)),
        ],
    )
    def test_they_arrive_as_such(self, annotation: Any, given: Any, value: Any) -> None:
        found = arrives(annotation, given)
        assert found == value
        assert type(found) is type(value)


class TestNumbers:
    @pytest.mark.parametrize(
        ("annotation", "given", "value"),
        [
            (int, 5.0, 5),
            (int, 1e25, int(1e25)),
            (StrictInt, 5.0, 5),
            (list[int], [1, 2.0, 1e25], [1, 2, int(1e25)]),
            (Part, {"exact": 5.0}, Part(exact=5)),
            (float, 5, 5.0),
            (int | str, "5", "5"),
            (bool | int, 1, 1),
            (bool | int, True, True),
            (dict[int, int], {"1": 2.0}, {1: 2}),
            (decimal.Decimal, 1.1, decimal.Decimal("1.1")),
            (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
            (decimal.Decimal, 10**30, decimal.Decimal(10**30)),
            (Literal["a", 1, True], 1.0, 1),
            (Literal["a", 1, True], True, True),
            (Literal[True, 1], 1, 1),
            (Level, 5.0, Level.HIGH),
            (list[Level], [1, 5.0], [Level.LOW, Level.HIGH]),
        ],
    )
    def test_an_integral_number_is_the_integer(self, annotation: Any, given: Any, value: Any) -> None:
        found = arrives(annotation, given)
        assert found == value
        assert type(found) is type(value)

    @pytest.mark.parametrize(
        ("annotation", "given", "said"),
        [
            (Level, True, "$.v: value must be one of [1, 5], got boolean"),
            (enum.IntEnum("Small", "A B"), True, "$.v: value must be one of [1, 2], got boolean"),
            (Literal[1, 2], True, "$.v: value must be one of [1, 2], got boolean"),
            (decimal.Decimal, True, "$.v: expected number or string, got boolean"),
            (decimal.Decimal, "x", "$.v: expected a decimal number (like 12.50), got another string"),
            (dict[int, int], {"x": 2}, "$.v.x: field name: expected an integer, got another string"),
            (float, 10**400, "$.v: must be a finite number"),
        ],
    )
    def test_another_kind_is_one_fault(self, annotation: Any, given: Any, said: str) -> None:
        assert faults(annotation, given) == [said]

    @pytest.mark.parametrize(
        ("annotation", "text", "path"),
        [
            (float, "1e400", "$.v"),
            (list[float], "[1.5, -1e400]", "$.v[1]"),
            (Size, '{"width": 1e400}', "$.v.width"),
        ],
    )
    def test_a_number_too_large_for_json_is_refused(self, annotation: Any, text: str, path: str) -> None:
        assert faults(annotation, json.loads(text)) == [f"{path}: must be a finite number"]

    def test_a_strict_model_takes_what_its_schema_says(self) -> None:
        given = {"count": 5.0, "when": "2026-01-31T08:15:00Z", "level": 5, "tags": ["a"]}
        assert arrives(Strict, given) == Strict(
            count=5, when=dt.datetime(2026, 1, 31, 8, 15, tzinfo=dt.UTC), level=Level.HIGH, tags={"a"}
        )

    def test_what_an_authors_validator_hands_on_is_not_json(self) -> None:
        annotation = Annotated[list[int], BeforeValidator(words), WithJsonSchema({"type": "string"})]
        assert arrives(annotation, "1,2") == [1, 2]


class TestFields:
    @pytest.mark.parametrize(
        ("annotation", "given", "said"),
        [
            (Part, {"cuont": 1}, "$.v: unknown field 'cuont'; did you mean 'count'?"),
            (Row, {"name": "n", "nota": 1}, "$.v: unknown field 'nota'; did you mean 'note'?"),
            (Size, {"row": {"name": "n", "x": 1}}, "$.v.row: unknown field 'x'; known are name, note"),
            (
                Open,
                {"any": 1, "part": {"z": 1}},
                "$.v.part: unknown field 'z'; known are at, count, exact, raw",
            ),
            (list[Part], [{}, {"z": 1}], "$.v[1]: unknown field 'z'; known are at, count, exact, raw"),
            (
                Cat | Dog,
                {"kind": "dog", "tricks": [], "brn": 1},
                "$.v: unknown field 'brn'; did you mean 'born'?",
            ),
            (Node, {"value": 1, "children": [{"value": 2, "dya": 1}]}, "$.v.children[0]: unknown field 'dya'"),
        ],
    )
    def test_an_undeclared_one_is_refused_at_any_depth(self, annotation: Any, given: Any, said: str) -> None:
        (found,) = faults(annotation, given)
        assert found.startswith(said)

    def test_it_is_published_that_they_are_refused(self) -> None:
        definitions = published(Size)["$defs"]
        assert definitions["Size"]["additionalProperties"] is False
        assert definitions["Row"]["additionalProperties"] is False
        assert published(Open)["$defs"]["Open"]["additionalProperties"] is True

    def test_a_model_that_takes_others_keeps_them(self) -> None:
        assert arrives(Open, {"any": 1}).any == 1

    @pytest.mark.parametrize(
        ("annotation", "given", "value"),
        [
            (Part, {"count": None, "at": None}, Part()),
            (list[Part], [{"exact": None}], [Part()]),
            (Row, {"name": "n", "note": None}, {"name": "n"}),
            (Size, {"width": None, "row": None}, Size()),
            (Cat | Dog, {"kind": "dog", "tricks": [], "born": None}, Dog(kind="dog", tricks=[])),
            (Node, {"value": 1, "children": None}, Node(value=1)),
            (dict[str, Any], {"x": None}, {"x": None}),
        ],
    )
    def test_null_for_an_optional_one_is_absent(self, annotation: Any, given: Any, value: Any) -> None:
        assert arrives(annotation, given) == value

    def test_null_for_a_required_one_is_a_fault(self) -> None:
        assert faults(Row, {"name": None}) == ["$.v.name: expected string, got null"]

    def test_a_number_for_an_authors_validator_may_be_large(self) -> None:
        assert arrives(Annotated[int, BeforeValidator(abs)], -1e25) == int(1e25)


class TestBytes:
    def test_they_travel_as_base64_text(self) -> None:
        assert published(bytes)["properties"]["v"] == {"type": "string", "contentEncoding": "base64"}
        assert arrives(bytes, "/wA=") == b"\xff\x00"
        assert arrives(list[Part], [{"raw": "/wA="}]) == [Part(raw=b"\xff\x00")]
        assert arrives(Base64Bytes, "/wA=") == b"\xff\x00"

    def test_a_default_is_published_as_base64(self) -> None:
        assert published(Part)["$defs"]["Part"]["properties"]["raw"]["default"] == "/w=="

    @pytest.mark.parametrize("text", ["é", "a", "a b=", "%%%%"])
    def test_other_text_is_refused(self, text: str) -> None:
        assert faults(list[Part], [{"raw": text}]) == ["$.v[0].raw: expected base64 text, got another string"]

    def test_lengths_are_those_of_the_bytes(self) -> None:
        annotation = Annotated[bytes, Field(min_length=3)]
        assert arrives(annotation, "YWJj") == b"abc"
        assert faults(annotation, "YWI=") == ["$.v: data should have at least 3 bytes"]


class TestFaults:
    def test_those_of_the_annotations_come_with_those_of_the_schema(self) -> None:
        @tool
        def sample(n: int, day: dt.date, node: Node, checked: Checked) -> str:
            """Sample."""
            return ""

        entry = declared(sample)
        assert entry is not None
        with pytest.raises(InputError) as caught:
            entry.load().check_input(
                {
                    "n": "5",
                    "day": "0",
                    "node": {"value": "1", "day": "x", "children": [{"value": 1, "day": "y"}]},
                    "checked": {"even": 3},
                    "dya": 1,
                }
            )
        assert sorted(caught.value.faults) == [
            "$.checked.even: must be even",
            f"$.day: {DATE}",
            "$.n: expected integer, got string",
            f"$.node.children[0].day: {DATE}",
            f"$.node.day: {DATE}",
            "$.node.value: expected integer, got string",
            "$: unknown field 'dya'; did you mean 'day'?",
        ]

    def test_a_validator_that_stumbles_does_not_hide_them(self) -> None:
        annotation = Annotated[str, BeforeValidator(words)]
        assert faults(annotation, 5) == ["$.v: expected string, got integer"]

    @pytest.mark.parametrize(
        ("annotation", "given", "said"),
        [
            (Cat | Dog, {"kind": "cat", "born": "x"}, f"$.v.born: {DATE}"),
            (Cat | Dog, {"kind": "dog", "tricks": [1]}, "$.v.tricks[0]: expected string, got integer"),
            (Cat | Dog, {"kind": "cow"}, "$.v.kind: value must be one of [cat, dog], got string"),
            (Cat | Dog, 5, "$.v: expected object, got integer"),
            (list[dict[str, Cat | int]], [{"a": {"kind": "cat", "born": "x"}}], f"$.v[0].a.born: {DATE}"),
            (
                dt.date | dt.time,
                "x",
                f"$.v: {DATE.partition(', got')[0]} or a time (ISO 8601, like 08:15:00Z), got another string",
            ),
        ],
    )
    def test_a_union_has_one_fault_with_a_real_path(self, annotation: Any, given: Any, said: str) -> None:
        assert faults(annotation, given) == [said]

    def test_a_discriminated_union_too(self) -> None:
        annotation = Annotated[Cat | Dog, Field(discriminator="kind")]
        assert faults(annotation, {"kind": "cat", "born": "x"}) == [f"$.v.born: {DATE}"]
        assert faults(annotation, {"kind": "cow"}) == ["$.v.kind: value must be one of [cat, dog], got string"]

    def test_values_that_look_alike_are_told_apart(self) -> None:
        said = '$.v: value must be one of ["1", 1, "x"], got string'
        assert faults(Literal["1", 1, "x"], "2") == [said]
        assert faults(Literal["x", "y"], "z") == ["$.v: value must be one of [x, y], got string"]
