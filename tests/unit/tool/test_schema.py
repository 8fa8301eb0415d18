"""What `@tool` publishes: the schema that a person would write by hand."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

from shared.errors import DeclarationError
from shared.tool import Context, McpImageContent, McpTextContent, McpToolResponse, tool
from shared.tool.decorator import declared
from shared.tool.spec import JsonObject, ToolSpec


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: Annotated[int, Field(description="upwards")] = 0


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@dataclasses.dataclass
class Size:
    width: float


class Row(TypedDict):
    name: str


def spec_of(function: Any) -> ToolSpec:
    found = declared(function)
    assert found is not None
    return found.spec


def properties_of(function: Any) -> JsonObject:
    found: JsonObject = spec_of(function).input_schema["properties"]
    return found


def test_annotations_become_the_schema() -> None:
    @tool
    def sample(
        text: Annotated[str, Field(description="what", min_length=1)],
        count: int,
        ratio: float = 0.5,
        *,
        exact: bool = False,
        words: list[str],
        grid: list[list[int]],
        table: dict[str, int],
        maybe: int | None = None,
        choice: Literal["a", "b"] = "a",
        colour: Colour = Colour.RED,
        place: Point,
        context: Context,
    ) -> str:
        """A sample.

        With a second paragraph.
        """
        return text

    found = spec_of(sample)
    assert found.name == "sample"
    assert found.title == "Sample"
    assert found.description == "A sample.\n\nWith a second paragraph."
    assert found.input_schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "what", "minLength": 1},
            "count": {"type": "integer"},
            "ratio": {"type": "number", "default": 0.5},
            "exact": {"type": "boolean", "default": False},
            "words": {"type": "array", "items": {"type": "string"}},
            "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            "maybe": {"type": "integer"},
            "choice": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "colour": {"$ref": "#/$defs/Colour", "default": "red"},
            "place": {"$ref": "#/$defs/Point"},
        },
        "required": ["text", "count", "words", "grid", "table", "place"],
        "additionalProperties": False,
        "$defs": {
            "Colour": {"type": "string", "enum": ["red", "blue"]},
            "Point": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": "integer", "default": 0, "description": "upwards"},
                },
                "required": ["x"],
                "additionalProperties": False,
            },
        },
    }


def test_none_makes_a_parameter_optional_even_without_a_default() -> None:
    @tool
    def sample(a: int | None, b: Annotated[str | None, Field(description="d")]) -> str:
        """Sample."""
        return f"{a} {b}"

    found = declared(sample)
    assert found is not None
    assert "required" not in found.spec.input_schema
    assert properties_of(sample) == {"a": {"type": "integer"}, "b": {"type": "string", "description": "d"}}
    assert found.load().run({}, None) == "None None"


def test_the_decorated_function_stays_a_plain_function() -> None:
    @tool
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    assert double(4) == 8


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}),
        (
            list[int],
            {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
                "required": ["result"],
            },
        ),
        (
            Point,
            {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": "integer", "default": 0, "description": "upwards"},
                },
                "required": ["x"],
            },
        ),
        (Size, {"type": "object", "properties": {"width": {"type": "number"}}, "required": ["width"]}),
        (Row, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (None, None),
        (Any, None),
        (McpToolResponse, None),
        (McpTextContent, None),
        (list[McpImageContent], None),
    ],
)
def test_the_return_annotation_becomes_the_result_schema(annotation: Any, schema: JsonObject | None) -> None:
    def sample():  # type: ignore[no-untyped-def]
        """Sample."""

    sample.__annotations__["return"] = annotation
    assert spec_of(tool(sample)).result_schema == schema


def test_a_recursive_result_keeps_an_object_at_its_root() -> None:
    @tool
    def grow() -> Tree:
        """Grows."""
        return Tree(value=1)

    schema = spec_of(grow).result_schema
    assert schema is not None
    assert schema["type"] == "object"
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in schema["$defs"]


@pytest.mark.parametrize("given", ['{"properties": {"a": {}}, "type": "object"}', {"type": "object"}, Point])
def test_an_explicit_result_schema_wins(given: Any) -> None:
    @tool(result_schema=given)
    def sample() -> McpToolResponse:
        """Sample."""
        return McpToolResponse()

    schema = spec_of(sample).result_schema
    assert schema is not None
    assert schema["type"] == "object"


class TestFaults:
    """A bad declaration fails at once and names the tool and the parameter or option."""

    def fails(self, function: Any, *said: str, **options: Any) -> None:
        with pytest.raises(DeclarationError) as caught:
            tool(**options)(function) if options else tool(function)
        for text in ("sample" if "name" not in options else str(options["name"])[:20], *said):
            assert text in caught.value.message

    def test_parameters(self) -> None:
        def sample(*values: int) -> None:
            """S."""

        self.fails(sample, "'values'")

        def sample(**values: int) -> None:  # type: ignore[no-redef]
            """S."""

        self.fails(sample, "'values'")

        def sample(a, b: int) -> None:  # type: ignore[no-redef,no-untyped-def]
            """S."""

        self.fails(sample, "'a'", "no annotation")

        def sample(a: int, b: threading.Lock) -> None:  # type: ignore[no-redef,name-defined]  # noqa: F821
            """S."""

        self.fails(sample, "threading")

        class Odd:
            pass

        def sample(a: int, b: Any) -> None:  # type: ignore[no-redef]
            """S."""

        sample.__annotations__["b"] = Odd
        self.fails(sample, "'b'")

    def test_function(self) -> None:
        def sample(a: int) -> None:
            pass

        self.fails(sample, "docstring")

        def sample(a: int) -> Any:  # type: ignore[no-redef]
            """S."""
            yield a

        self.fails(sample, "generator")

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"name": "has space"}, "1 to 64"),
            ({"name": ""}, "1 to 64"),
            ({"name": "x" * 65}, "1 to 64"),
            ({"name": "newline\n"}, "1 to 64"),
            ({"modes": ()}, "modes"),
            ({"modes": ("both",)}, "'one-way'"),
            ({"modes": ("one-way",), "default_mode": "two-way"}, "default_mode"),
            ({"execution_modes": ("background",)}, "'headless'"),
            ({"default_execution_mode": "headless"}, "default_execution_mode"),
            ({"timeout_ms": 0}, "timeout_ms"),
            ({"timeout_ms": True}, "timeout_ms"),
            ({"timeout_ms": 1.5}, "timeout_ms"),
            ({"max_attempts": 11}, "max_attempts"),
            ({"isolation": "container"}, "'process'"),
            ({"isolation": "process"}, "add 'headless' to execution_modes"),
            ({"execution_modes": ("inline", "windowed")}, "'windowed'"),
            ({"colour": "red"}, "unknown option 'colour'"),
            ({"result_schema": "{"}, "result_schema"),
            ({"result_schema": "[]"}, "result_schema"),
        ],
    )
    def test_options(self, options: dict[str, Any], said: str) -> None:
        def sample() -> None:
            """S."""

        self.fails(sample, said, **options)
