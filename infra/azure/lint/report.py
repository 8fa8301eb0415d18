"""What the lint found, and where."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Rule(StrEnum):
    """What kind of fault it is."""

    SYNTAX = "syntax"
    UNKNOWN_SYMBOL = "unknown-symbol"
    UNUSED_SYMBOL = "unused-symbol"
    DUPLICATE_SYMBOL = "duplicate-symbol"
    UNKNOWN_FUNCTION = "unknown-function"
    ARGUMENTS = "arguments"
    DECORATOR = "decorator"
    RESOURCE_TYPE = "resource-type"
    API_VERSION = "api-version"
    PROPERTY = "property"
    MISSING_PROPERTY = "missing-property"
    READ_ONLY = "read-only"
    VALUE = "value"
    TYPE = "type"
    NULLABLE = "nullable"
    PARENT = "parent"
    MODULE = "module"
    PARAMETER = "parameter"
    SETTING = "setting"
    ROLE = "role"
    SECRET = "secret"  # noqa: S105 - a rule's name
    PROJECT = "project"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Lines and columns count from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    file: str
    place: Place
    rule: Rule
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.place.line}:{self.place.column}: {self.rule}: {self.message}"


class SyntaxFault(Exception):  # noqa: N818 - what Python calls an error is Python's
    """The text is not of the language, or not of the part that the lint knows."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


@dataclass(slots=True)
class Report:
    """Findings of one file."""

    file: Path
    root: Path
    findings: set[Finding] = field(default_factory=set)

    def add(self, place: Place, rule: Rule, message: str) -> None:
        name = (
            self.file.relative_to(self.root).as_posix()
            if self.file.is_relative_to(self.root)
            else self.file.name
        )
        self.findings.add(Finding(name, place, rule, message))


_LONGEST_WORD = 100


def hint(word: str, known: Iterable[str]) -> str:
    """` Did you mean …?` for a word that is near to a known one."""
    if len(word) > _LONGEST_WORD:
        return ""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean '{near[0]}'?" if near else ""
