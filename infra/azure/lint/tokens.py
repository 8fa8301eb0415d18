"""Bicep text -> tokens. Source of the grammar: "Bicep file structure and syntax" and "Data types"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from infra.azure.lint.report import Place, SyntaxFault


class Kind(Enum):
    NAME = "a name"
    NUMBER = "a number"
    #: One whole string with its quotes; `expressions` splits it at its interpolations.
    STRING = "a string"
    PUNCTUATION = "punctuation"
    NEWLINE = "the end of a line"
    END = "the end of the file"


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    place: Place
    #: Where it begins in the file, in characters.
    offset: int

    def __str__(self) -> str:
        return f"'{self.text}'" if self.kind in (Kind.NAME, Kind.NUMBER, Kind.PUNCTUATION) else self.kind.value


_SPACE = re.compile(r"[ \t\r]+|//[^\n]*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"[0-9]+(?![A-Za-z_])")
_PUNCTUATION = re.compile(r"=>|==|!=|=~|!~|<=|>=|&&|\|\||\?\?|\.\?|\[\?|::|[@{}()\[\]=<>!+\-*/%?:.,|]")
_MULTILINE = re.compile(r"'''.*?'''", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:['\\nrt$]|u\{[0-9A-Fa-f]{1,6}\})")


def tokens(text: str, offset: int = 0) -> Iterator[Token]:
    """All tokens from `offset` on, with an END. Raises `SyntaxFault`."""
    start = place_of(text, offset)
    line, line_start = start.line, offset - start.column + 1
    while offset < len(text):
        if match := _SPACE.match(text, offset):
            offset = match.end()
            continue
        place = Place(line, offset - line_start + 1)
        if match := _COMMENT.match(text, offset):
            kind, end = None, match.end()
        else:
            kind, end = _next(text, offset, place)
        if kind is not None:
            yield Token(kind, text[offset:end], place, offset)
        breaks = text.count("\n", offset, end)
        if breaks:
            line, line_start = line + breaks, text.rindex("\n", offset, end) + 1
        offset = end
    yield Token(Kind.END, "", Place(line, offset - line_start + 1), offset)


def place_of(text: str, offset: int) -> Place:
    return Place(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _next(text: str, offset: int, place: Place) -> tuple[Kind, int]:
    first = text[offset]
    if first == "\n":
        return Kind.NEWLINE, offset + 1
    if first == "'":
        if match := _MULTILINE.match(text, offset):
            return Kind.STRING, match.end()
        return Kind.STRING, string_end(text, offset, place)
    for kind, pattern in ((Kind.NAME, _NAME), (Kind.NUMBER, _NUMBER), (Kind.PUNCTUATION, _PUNCTUATION)):
        if match := pattern.match(text, offset):
            return kind, match.end()
    raise SyntaxFault(place, f"unexpected character {first!r}")


def string_end(text: str, offset: int, place: Place) -> int:
    """Where the string that begins at `offset` ends, its interpolations included."""
    position = offset + 1
    while position < len(text) and text[position] != "\n":
        if text[position] == "'":
            return position + 1
        if text[position] == "\\":
            match = _ESCAPE.match(text, position)
            if match is None:
                raise SyntaxFault(place_of(text, position), "unknown escape in a string")
            position = match.end()
        elif text.startswith("${", position):
            position = interpolation_end(text, position + 2, place)
        else:
            position += 1
    raise SyntaxFault(place, "the string does not end on its line")


def interpolation_end(text: str, offset: int, place: Place) -> int:
    """Behind the `}` that closes an interpolation whose expression begins at `offset`."""
    depth, position = 1, offset
    while position < len(text) and text[position] != "\n":
        character = text[position]
        if character == "'":
            position = string_end(text, position, place)
            continue
        depth += (character == "{") - (character == "}")
        position += 1
        if depth == 0:
            return position
    raise SyntaxFault(place, "the interpolation does not end on its line")
