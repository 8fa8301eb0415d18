"""Query parameters of the HTTP functions. A fault names the parameter and what is legal."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from shared.errors import InputError
from shared.text import shape_of

_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")


class Params:
    """Reads parameters one by one; `check` tells every fault at once."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self._faults: list[str] = []
        self._known: set[str] = set()

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        text = self._text(name)
        if text is None:
            return default
        if text.isascii() and text.isdigit() and len(text) < 16 and low <= int(text) <= high:
            return int(text)
        self._faults.append(f"{name}: must be a whole number from {low} to {high}, not {shape_of(text)}")
        return default

    def seconds(self, name: str, default: float, high: float) -> float:
        text = self._text(name)
        if text is None:
            return default
        if _SECONDS.fullmatch(text) and float(text) <= high:
            return float(text)
        self._faults.append(f"{name}: must be a number of seconds from 0 to {high:g}, not {shape_of(text)}")
        return default

    def choice(self, name: str, legal: Collection[str]) -> str | None:
        text = self._text(name)
        if text is None or text in legal:
            return text
        self._faults.append(f"{name}: must be one of {', '.join(legal)}, not {shape_of(text)}")
        return None

    def text(self, name: str, longest: int = 200) -> str | None:
        text = self._text(name)
        if text is None or 0 < len(text) <= longest:
            return text
        self._faults.append(f"{name}: must have 1 to {longest} characters, has {len(text)}")
        return None

    def check(self) -> None:
        """Raises `InputError` with all faults."""
        unknown = [name for name in self._given if name not in self._known and name != "code"]
        known = ", ".join(sorted(self._known)) or "none"
        faults = self._faults + [f"unknown parameter '{name[:80]}'; known are {known}" for name in unknown]
        if faults:
            raise InputError("; ".join(faults))

    def _text(self, name: str) -> str | None:
        self._known.add(name)
        return self._given.get(name)
