"""Edges: unions of objects and others, odd options, odd exceptions, decorators above @tool."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from shared.errors import DeclarationError, ResultError
from shared.jobs.unforeseen import describe
from shared.tool import McpToolResponse, prompt, prompts, resource, resources, tool
from shared.tool.decorator import declared
from shared.tool.discovery import find_tools
from shared.tool.result import envelope, from_value, text_of


class Cat(BaseModel):
    lives: int


class Word(str, enum.Enum):  # noqa: UP042 - the form that was sent as its repr
    A = "aa"


class Measure(BaseModel):
    value: float
    raw: bytes = b""


def finished(annotation: Any, value: Any) -> Any:
    """What a tool with this return annotation sends for the value, checked against its own schema."""

    def sample() -> Any:
        """Sample."""
        return value

    sample.__annotations__["return"] = annotation
    entry = declared(tool(sample))
    assert entry is not None
    result = entry.load().finish(value)
    envelope(result).encode()
    return result.structured


@pytest.mark.parametrize(
    ("annotation", "value", "structured"),
    [
        (Cat | None, Cat(lives=9), {"result": {"lives": 9}}),
        (Cat | None, None, {"result": None}),
        (dict[str, int] | None, {"a": 1}, {"result": {"a": 1}}),
        (dict[str, int] | list[int], {"a": 1}, {"result": {"a": 1}}),
        (dict[str, int] | list[int], [1], {"result": [1]}),
        (Cat | str, Cat(lives=9), {"result": {"lives": 9}}),
        (Cat, Cat(lives=9), {"lives": 9}),
        (Word, Word.A, {"result": "aa"}),
        (Cat | None, McpToolResponse(structured_content=Cat(lives=1)), {"result": {"lives": 1}}),
    ],
)
def test_what_is_published_is_what_is_sent(annotation: Any, value: Any, structured: Any) -> None:
    assert finished(annotation, value) == structured


def test_a_text_enum_is_its_value_not_its_repr() -> None:
    assert text_of(from_value(Word.A)) == '"aa"'


def test_numbers_that_json_has_not_become_null_inside_models_too() -> None:
    result = from_value(Measure(value=math.nan, raw=b"\xff\x00"))
    assert result.structured is not None
    assert result.structured["value"] is None
    envelope(result).encode()


def test_a_number_with_too_many_digits_is_an_invalid_result() -> None:
    with pytest.raises(ResultError, match="cannot be written as JSON"):
        envelope(from_value(10**5000))


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_without_words_is_told_by_its_kind() -> None:
    assert describe("work", Mute()) == "Tool 'work' failed: Mute"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"metadata": {"at": dt.date(2026, 1, 1)}}, "metadata has"),
        ({"metadata": {"n": math.nan}}, "metadata has"),
        ({"icons": [{"src": "https://example.com", "sizes": {1, 2}}]}, "icons have"),
        ({"result_schema": {"type": "object", "required": {"a"}}}, "its schemas have"),
    ],
)
def test_an_option_that_cannot_be_published_is_a_fault_of_its_tool_only(options: Any, what: str) -> None:
    def sample() -> None:
        """Sample."""

    with pytest.raises(DeclarationError, match=f"tool 'sample': {what} no JSON form"):
        tool(**options)(sample)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": 5}, "name must be a text, not int"),
        ({"title": 5}, "title must be a text, not int"),
        ({"description": 5}, "description must be a text"),
        ({"modes": 5}, "modes must be a list of texts"),
        ({"annotations": {"readOnlyHint": True}}, "annotations must be a ToolAnnotations, not dict"),
        ({"icons": "x"}, "icons must be a list of objects"),
    ],
)
def test_an_option_of_another_kind_is_named(options: Any, said: str) -> None:
    def sample() -> None:
        """Sample."""

    with pytest.raises(DeclarationError) as caught:
        tool(**options)(sample)
    assert said in caught.value.message


def test_parameters_may_have_the_names_of_a_models_methods() -> None:
    @tool
    def sample(json: str, copy: int, schema: bool, dict: float) -> list[Any]:  # noqa: A002
        """Sample."""
        return [json, copy, schema, dict]

    entry = declared(sample)
    assert entry is not None
    handler = entry.load()
    arguments = {"json": "j", "copy": 1, "schema": True, "dict": 1.5}
    assert handler.run(handler.check_input(arguments), None) == ["j", 1, True, 1.5]


def test_a_parameter_that_pydantic_would_swallow_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'model_config' has a name that pydantic keeps for itself"):

        @tool
        def sample(model_config: str, model_name: str) -> None:
            """Sample."""


def test_a_default_that_cannot_be_published_too() -> None:
    with pytest.raises(DeclarationError, match="tool 'sample'"):

        @tool
        def sample(x: float = math.inf) -> None:
            """Sample."""


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def test_a_decorator_above_a_resource_or_prompt_is_never_bypassed() -> None:
    @guarded
    @resource(uri="docs://one")
    def one() -> str:
        """One."""
        return ""

    with pytest.raises(DeclarationError, match="put @resource on top"):
        resources.declared(one)

    @guarded
    @prompt
    def two() -> str:
        """Two."""
        return ""

    with pytest.raises(DeclarationError, match="put @prompt on top"):
        prompts.declared(two)


@pytest.mark.parametrize("option", ["title", "description", "mime_type"])
def test_a_resources_texts_are_texts(option: str) -> None:
    options: Any = {"uri": "docs://one", option: 5}
    with pytest.raises(DeclarationError, match=f"{option} must be a text, not int"):

        @resource(**options)
        def one() -> str:
            """One."""
            return ""


def test_a_decorator_above_is_never_bypassed() -> None:
    @guarded
    @tool
    def below() -> str:
        """Below."""
        return ""

    with pytest.raises(DeclarationError, match="put @tool on top"):
        declared(below)

    @tool
    @guarded
    def above() -> str:
        """Above."""
        return ""

    assert declared(above) is not None


GOOD = (
    'from shared.tool import tool\n@tool(name="{name}")\n'
    'def {function}() -> str:\n    """Hi."""\n    return "hi"\n'
)


def test_names_that_make_one_function_name_are_a_fault_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"edges_{tmp_path.name.replace('-', '_')}"
    for home, name in (("one", "a.b"), ("two", "a_b")):
        (folder / home).mkdir(parents=True)
        (folder / home / "__init__.py").write_text(GOOD.format(name=name, function="f"))
    (folder / "three").mkdir()
    (folder / "three" / "__init__.py").write_text(
        f"from {folder.name}.one import f\n" + GOOD.format(name="own", function="g")
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_tools(folder)
    assert sorted(found.tools) == ["a.b", "own"]
    assert [fault.folder for fault in found.faults] == ["two"]
    assert found.homes == {"a.b": "one", "a_b": "two", "own": "three"}
