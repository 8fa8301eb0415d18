"""What is to be said about a tool's files: errors, warnings and notes, each with the place it is about.

Everything is collected and told at once; nothing here raises.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from shared.text import clean_text
from shared.tool.validation import kind_of

CONFIG_FILE: Final = "pptb.config.json"
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_SHOWN_LENGTH: Final = 40


class Severity(StrEnum):
    #: The tool is left out.
    ERROR = "error"
    #: The tool works; something in its files has no effect, or another one than it seems.
    WARNING = "warning"
    #: Worth knowing: why a tool is not exposed.
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to be said. `path`: JSON path inside `file`; `text`: what is wrong and what is legal."""

    severity: Severity
    path: str
    text: str
    hint: str = ""
    file: str = CONFIG_FILE

    def __str__(self) -> str:
        place = self.path if self.file == CONFIG_FILE else f"{self.file} {self.path}"
        return clean_text(f"{place}: {self.text}" + (f"; {self.hint}" if self.hint else ""))


class Findings:
    """Collects findings about one file. `of` gives a collector for another file that fills the same list."""

    def __init__(self, file: str = CONFIG_FILE, into: list[Finding] | None = None) -> None:
        self._file = file
        self._all: list[Finding] = [] if into is None else into

    def of(self, file: str) -> Findings:
        return Findings(file, self._all)

    def error(self, path: str, text: str, hint: str = "") -> None:
        self._add(Severity.ERROR, path, text, hint)

    def warn(self, path: str, text: str, hint: str = "") -> None:
        self._add(Severity.WARNING, path, text, hint)

    def note(self, path: str, text: str, hint: str = "") -> None:
        self._add(Severity.NOTE, path, text, hint)

    @property
    def all(self) -> tuple[Finding, ...]:
        return tuple(dict.fromkeys(self._all))

    @property
    def error_count(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self._all)

    def _add(self, severity: Severity, path: str, text: str, hint: str) -> None:
        self._all.append(Finding(severity, path, text, hint, self._file))


def step(path: str, key: str | int) -> str:
    """The JSON path of a member: `$.a`, `$['a b']`, `$[0]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}"
    quoted = key[:_SHOWN_LENGTH].replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{quoted}']"


def shown(value: Any) -> str:
    """The kind of a value, and what it is if that is short: a contract holds no secrets."""
    kind = kind_of(value)
    if isinstance(value, str):
        return f"{kind} '{value[:_SHOWN_LENGTH]}'" if value else "an empty string"
    if isinstance(value, bool):
        return f"{kind} {str(value).lower()}"
    if isinstance(value, int | float):
        return f"{kind} {repr(value)[:_SHOWN_LENGTH]}"
    return kind


def listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean '…'`, or nothing."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower()[:80], by_lower, n=1, cutoff=0.7)
    return f"did you mean '{by_lower[near[0]]}'?" if near else ""
