"""What cannot be written as JSON is told by its type and its place."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any

import pytest

from shared.errors import ResultError
from shared.tool import (
    McpToolResponse,
)
from shared.tool.result import envelope, from_value
from tests.unit.tool.result_values import (
    IMAGE,
    TEXT,
    Everything,
    Point,
)


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
