"""The outline of a JSON or JSON5 text: strings, comments and brackets, nothing else.

It serves two ends that no JSON library serves. It finds backslashes that JSON does not know: JSON5 drops them,
and `"C:\\Users"` would be read as `C:Users`. And when a text cannot be read as a whole, it finds the texts of
the single entries, so that one broken entry does not take the others with it; that needs brackets which fit
together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_TOKEN = re.compile(
    r"""
      (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<sign>[{}\[\]:,])
    | (?P<blank>\s+)
    | (?P<word>(?:(?!//|/\*)[^\s{}\[\]:,"'])+)
    """,
    re.VERBOSE | re.DOTALL,
)
#: What may follow a backslash in JSON, and JSON5's single quote and continued line.
_ESCAPE = re.compile(r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4}|\r?\n)""")
_OPENING: Final = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Member:
    """One value of an object or list. `key`: as written, without quotes; None in a list."""

    key: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """An object or a list by the texts of its members."""

    is_list: bool
    members: list[Member]


def tokens(text: str) -> Iterator[Token]:
    """The tokens without blanks and comments. Raises `ValueError` where a string or comment does not end."""
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise ValueError(f"{place(text, position)}: a string or comment that does not end")
        if match.lastgroup not in ("blank", "comment"):
            yield Token(match.lastgroup, match.group(), position)
        position = match.end()


def place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line} column {position - text.rfind('\n', 0, position)}"


def bad_backslash(text: str) -> str | None:
    """Where the first backslash stands that JSON does not know; None if there is none, or no telling."""
    try:
        for token in tokens(text):
            if token.kind != "string":
                continue
            position = token.text.find("\\")
            while position >= 0:
                match = _ESCAPE.match(token.text, position)
                if match is None:
                    return place(text, token.start + position)
                position = token.text.find("\\", match.end())
    except ValueError:
        return None
    return None


def outline(text: str) -> Outline | None:
    """The members of the object or list that is the whole text.

    None when it is neither, or its brackets do not fit together: then nothing can be told apart.
    """
    try:
        found = list(tokens(text))
        members = _members(text, found)
    except ValueError:
        return None
    return None if members is None else Outline(found[0].text == "[", members)


def _members(text: str, found: list[Token]) -> list[Member] | None:
    """The members of the object or list that is the whole text; None if it is not one, or does not fit."""
    if len(found) < 2 or found[0].text not in _OPENING:
        return None
    stack: list[str] = []
    starts = [1]
    for index, token in enumerate(found):
        if token.kind != "sign":
            continue
        if token.text in _OPENING:
            stack.append(_OPENING[token.text])
        elif token.text in "}]":
            if not stack or stack.pop() != token.text:
                return None
            if not stack and index != len(found) - 1:
                return None
        elif token.text == "," and len(stack) == 1:
            starts.append(index + 1)
    if stack:
        return None
    return [
        member
        for first, following in zip(starts, [*starts[1:], len(found)], strict=True)
        if (part := found[first : following - 1])
        for member in [_member(text, part, keyed=found[0].text == "{")]
    ]


def _member(text: str, part: list[Token], *, keyed: bool) -> Member:
    key = None
    if keyed:
        if len(part) < 3 or part[0].kind == "sign" or part[1].text != ":":
            raise ValueError("a member without a key")
        key = part[0].text[1:-1] if part[0].kind == "string" else part[0].text
        part = part[2:]
    return Member(key, text[part[0].start : part[-1].end])
