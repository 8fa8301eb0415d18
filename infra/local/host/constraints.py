"""Inline constraints of route parameters, with ASP.NET Core's names and rules."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

type Constraint = Callable[[str], bool]


def _integer(low: int, high: int) -> Constraint:
    return lambda text: re.fullmatch(r"[+-]?\d+", text, re.ASCII) is not None and low <= int(text) <= high


def _number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def _guid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _datetime(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


_PLAIN: Mapping[str, Constraint] = {
    "int": _integer(-(2**31), 2**31 - 1),
    "long": _integer(-(2**63), 2**63 - 1),
    "bool": lambda text: text.lower() in {"true", "false"},
    "decimal": _number,
    "double": _number,
    "float": _number,
    "guid": _guid,
    "datetime": _datetime,
    "alpha": lambda text: re.fullmatch(r"[a-zA-Z]*", text) is not None,
    "required": lambda text: bool(text),
    "file": lambda text: "." in text.rpartition("/")[2],
    "nonfile": lambda text: "." not in text.rpartition("/")[2],
}
_ANY = _integer(-(2**63), 2**63 - 1)
_NUMERIC: Mapping[str, tuple[int, Callable[..., Constraint]]] = {
    "minlength": (1, lambda low: lambda text: len(text) >= low),
    "maxlength": (1, lambda high: lambda text: len(text) <= high),
    "min": (1, lambda low: lambda text: _ANY(text) and int(text) >= low),
    "max": (1, lambda high: lambda text: _ANY(text) and int(text) <= high),
    "range": (2, lambda low, high: lambda text: _ANY(text) and low <= int(text) <= high),
}


def build_constraint(name: str, argument: str | None) -> Constraint:
    """The check for ``name`` or ``name(argument)``. Raises ValueError for one that is unknown or wrong."""
    key = name.lower()
    if argument is None and key in _PLAIN:
        return _PLAIN[key]
    if argument is not None and key == "regex":
        try:
            pattern = re.compile(argument.replace("{{", "{").replace("}}", "}"), re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"{error} in the regular expression {argument!r}") from None
        return lambda text: pattern.search(text) is not None
    numbers = [int(part) for part in (argument or "").split(",") if re.fullmatch(r"\s*-?\d+\s*", part)]
    if argument is not None and len(numbers) == argument.count(",") + 1:
        if key == "length" and len(numbers) in {1, 2}:
            low, high = numbers[0], numbers[-1]
            return lambda text: low <= len(text) <= high
        if key in _NUMERIC and len(numbers) == _NUMERIC[key][0]:
            return _NUMERIC[key][1](*numbers)
    raise ValueError(f"the constraint {name!r} is unknown or has a wrong argument")
