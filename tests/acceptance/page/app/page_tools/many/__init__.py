"""Every kind of argument."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from shared.tool import ToolAnnotations, tool


class Place(BaseModel):
    city: Annotated[str, Field(description="Where it is.")]
    zip: str | None = None
    tags: list[str] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


@tool(title="Many arguments", annotations=ToolAnnotations(read_only=True, idempotent=True))
def many(
    name: Annotated[str, Field(description="Any text.")],
    amount: Annotated[int, Field(ge=0, le=100, description="How many.")],
    colour: Literal["red", "blue"],
    place: Place,
    share: float = 0.5,
    loud: bool | None = None,
    day: dt.date | None = None,
    numbers: list[int] | None = None,
    animal: Annotated[Cat | Dog, Field(discriminator="kind")] | None = None,
    tree: Tree | None = None,
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Says what has arrived, and of which kind it was."""
    given: dict[str, Any] = {
        "name": name,
        "amount": amount,
        "colour": colour,
        "place": place.model_dump(exclude_unset=True),
        "share": share,
        "loud": loud,
        "day": None if day is None else day.isoformat(),
        "numbers": numbers,
        "animal": None if animal is None else animal.model_dump(exclude_unset=True),
        "tree": None if tree is None else tree.model_dump(exclude_unset=True),
        "extra": extra,
    }
    return {name: value for name, value in given.items() if value is not None}
