from __future__ import annotations

import datetime as dt
import enum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from shared.tool import tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@tool
def shapes(
    grid: list[list[int]],
    maybe: int | None,
    choice: Literal["a", "b"],
    colour: Colour,
    animal: Annotated[Cat | Dog, Field(discriminator="kind")],
    tree: Tree,
    day: dt.date,
    code: Annotated[str, Field(pattern="^[A-Z]{3}$", description="Three letters.")] = "ABC",
) -> list[str]:
    """Says what arrived."""
    return [repr(value) for value in (grid, maybe, choice, colour, animal, tree, day, code)]
