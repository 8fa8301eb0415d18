"""What is wrong with a JSON value, and where: one form for what schemas and what annotations find."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: A longer list helps nobody.
MAX_FAULTS: Final = 20
_PLAIN_KEY: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")

#: The way to a value: names of fields and indexes of items.
type Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the value at `steps`; with its field `field` only, where one is named."""

    steps: Steps
    text: str
    field: str | None = None

    def __str__(self) -> str:
        return f"{json_path(self.steps)}: {self.text}"

    def touches(self, other: Fault) -> bool:
        """Whether both speak of one value, or of a value and a part of it."""
        return all(mine == its for mine, its in zip(self._about, other._about, strict=False))

    @property
    def _about(self) -> Steps:
        return self.steps if self.field is None else (*self.steps, self.field)


def json_path(steps: Steps) -> str:
    """`$.a[0]['b c']`, as jsonschema writes it."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            path += f".{step}"
        else:
            quoted = step[:80].replace("\\", "\\\\").replace("'", "\\'")
            path += f"['{quoted}']"
    return path


def told(faults: Iterable[Fault]) -> list[str]:
    """The faults as `$.path: …` texts, each once, and not too many of them."""
    unique = list(dict.fromkeys(map(str, faults)))
    if len(unique) > MAX_FAULTS:
        unique = [*unique[:MAX_FAULTS], f"and {len(unique) - MAX_FAULTS} more"]
    return unique
