"""What the Functions library for Python makes of a function, and what is made of the same function here.

`docs/compatibility.md` tells these differences. A version of the library that has mended one fails here.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import azure.functions as func
import pytest
from pydantic import BaseModel

from shared.errors import InputError
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.execution import run_inline
from shared.tool.handler import Handler
from shared.tool.result import envelope


class Visit(BaseModel):
    when: datetime


class Library:
    """A function under `@app.mcp_tool`."""

    def __init__(self, function: Callable[..., Any], *, structured: bool = False, **of_n: Any) -> None:
        app = func.FunctionApp()
        described = app.mcp_tool_property(arg_name="n", **of_n)(function) if of_n else function
        app.mcp_tool(use_result_schema=structured)(described)
        (made,) = app.get_functions()
        (self._binding,) = made.get_dict_repr()["bindings"]
        self._call: Callable[..., Any] = made.get_user_function()

    @property
    def properties(self) -> dict[str, Any]:
        return {one["propertyName"]: one for one in json.loads(self._binding["toolProperties"])}

    def types(self) -> list[tuple[str, bool]]:
        return [(one["propertyType"], one["isRequired"]) for one in self.properties.values()]

    async def call(self, **arguments: Any) -> Any:
        return await self._call(context=json.dumps({"arguments": arguments}))


def here(function: Callable[..., Any]) -> Handler:
    found = declared(tool(function))
    assert found is not None
    return found.load()


async def called(handler: Handler, **arguments: Any) -> Any:
    """The result that the host sends."""
    value = await run_inline(handler, handler.check_input(arguments), None, 10_000)
    return json.loads(json.loads(envelope(handler.finish(value)))["content"])


def test_todays_annotations() -> None:
    def find(size: int | None, table: dict[str, int], kind: Literal["a", "b"] = "a") -> str:
        """Finds."""
        return f"{size} {table} {kind}"

    # Annotations of this module are texts, as `from __future__ import annotations` makes them.
    assert Library(find).types() == [("string", True), ("string", True), ("string", False)]
    today = {"size": int | None, "table": dict[str, int], "kind": Literal["a", "b"], "return": str}
    find.__annotations__ = today
    assert Library(find).types() == [("string", True), ("string", True), ("string", False)]
    schema = here(find).spec.input_schema
    size, table, kind = schema["properties"].values()
    assert (size["type"], table["type"], kind["enum"]) == ("integer", "object", ["a", "b"])
    assert (table["additionalProperties"], kind["default"]) == ({"type": "integer"}, "a")
    assert schema["required"] == ["table"]


def test_a_description_of_a_parameter_changes_nothing_else() -> None:
    def count(n: int = 3) -> int:
        """Counts."""
        return n

    assert Library(count).properties["n"]["isRequired"] is False
    assert Library(count, description="How many.").properties["n"]["isRequired"] is True
    made = declared(tool(tool_properties={"n": {"propertyType": "integer", "description": "How many."}})(count))
    assert made is not None
    assert made.spec.input_schema["properties"]["n"]["description"] == "How many."
    assert "required" not in made.spec.input_schema


def test_arguments_are_checked() -> None:
    def count(n: int) -> str:
        """Counts."""
        return repr(n)

    assert asyncio.run(Library(count).call(n="many", more=1)) == "'many'"
    with pytest.raises(InputError, match="expected integer, got string"):
        asyncio.run(called(here(count), n="many"))
    with pytest.raises(InputError, match="unknown field 'more'"):
        asyncio.run(called(here(count), n=1, more=1))


def test_data_is_json() -> None:
    def state() -> dict[str, bool | None]:
        """Tells the state."""
        return {"on": True, "by": None}

    assert asyncio.run(Library(state).call()) == "{'on': True, 'by': None}"
    answer = asyncio.run(called(here(state)))
    assert answer["structuredContent"] == {"on": True, "by": None}
    assert json.loads(answer["content"][0]["text"]) == {"on": True, "by": None}


def test_a_list_of_plain_values_is_kept() -> None:
    def numbers() -> list[int]:
        """Gives numbers."""
        return [1, 2]

    assert asyncio.run(Library(numbers, structured=True).call()) is None
    assert asyncio.run(called(here(numbers)))["structuredContent"] == {"result": [1, 2]}


def test_models_may_hold_dates() -> None:
    def visit() -> Visit:
        """Gives a visit."""
        return Visit(when=datetime(2026, 1, 31))

    with pytest.raises(TypeError):
        asyncio.run(Library(visit, structured=True).call())
    assert asyncio.run(called(here(visit)))["structuredContent"] == {"when": "2026-01-31T00:00:00"}


def test_synchronous_functions_leave_the_event_loop_alone() -> None:
    def where() -> bool:
        """Whether it runs on the event loop's thread."""
        return threading.current_thread() is threading.main_thread()

    assert asyncio.run(Library(where).call()) == "True"
    assert asyncio.run(called(here(where)))["structuredContent"] == {"result": False}
