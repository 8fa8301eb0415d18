"""What the built-in resource says of the tools."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from shared.builtin import built_in
from shared.builtin.tool_docs import page, tool_docs
from shared.errors import ToolError
from shared.jobs.payload import Sealer
from shared.jobs.testing import MemoryJobStore
from shared.tool import ToolAnnotations, tool
from shared.tool.decorator import declared
from shared.tool.resources import declared as declared_resource
from shared.tool.spec import ToolSpec
from shared.upstream.gateway import Gateway
from shared.upstream.lock import Lock
from shared.upstream.policy import Policy
from shared.upstream.settings import UpstreamSettings
from shared.upstream.status import Servers


class Colour(StrEnum):
    RED = "red"


class Tree(BaseModel):
    """A tree."""

    children: list[Tree] = []


@tool(
    title="Everything | at once",
    execution_modes=("headless", "inline"),
    modes=("one-way", "two-way"),
    timeout_ms=90_000,
    annotations=ToolAnnotations(read_only=True, destructive=False),
)
def everything(
    text: Annotated[str, Field(description="Some\n  text.")],
    choice: Literal["a", 1] = "a",
    colour: Colour = Colour.RED,
    numbers: list[list[int]] | None = None,
    either: int | str = 5,
    tree: Tree | None = None,
) -> str:
    """Does everything.

    At once.
    """
    return text


@tool
def Little() -> str:
    """Does little."""
    return ""


def spec_of(function: Any) -> ToolSpec:
    found = declared(function)
    assert found is not None
    return found.spec


PAGE = """\
## everything

**Everything | at once**

Does everything.

At once.

- Execution modes: headless (default), inline
- Modes: one-way, two-way
- Timeout: 90 s
- Hints: readOnlyHint

Arguments:

- `text` (string, required): Some text.
- `choice` (one of `"a"`, `1`, optional, default `"a"`)
- `colour` (one of `"red"`, optional, default `"red"`)
- `numbers` (array of array of integer, optional)
- `either` (integer or string, optional, default `5`)
- `tree` (object, optional): A tree.
"""


def test_a_page_says_what_a_caller_needs() -> None:
    assert page(spec_of(everything)) == PAGE


def test_a_tool_without_arguments_says_so() -> None:
    assert page(spec_of(Little)).endswith("\n\nIt takes no arguments.\n")


def test_all_tools_and_one() -> None:
    found: list[ToolSpec] = []
    every, one = tool_docs(lambda: found)
    assert asyncio.run(every()) == "# Tools\n\nThere are none.\n"
    # The tools are looked for at each read: they are found after the resource is made.
    found += [spec_of(Little), spec_of(everything)]
    assert asyncio.run(every()).startswith("# Tools\n\n## everything\n")
    assert "\n\n## Little\n" in asyncio.run(every())
    assert asyncio.run(one("EVERYTHING")) == PAGE
    with pytest.raises(ToolError, match="there is no tool 'nothing'"):
        asyncio.run(one("nothing"))


def test_the_uris() -> None:
    gateway = Gateway(UpstreamSettings(), Policy())
    functions = built_in(list, MemoryJobStore, Sealer((bytes(32),)), lambda: Servers(gateway, Lock()))
    resources = [found.spec for function in functions if (found := declared_resource(function))]
    assert [(spec.uri.text, spec.mime_type) for spec in resources] == [
        ("toolbox://tools", "text/markdown"),
        ("toolbox://tools/{name}", "text/markdown"),
        ("artifact://{jobId}/{name}", None),
    ]
