"""Reads a large JSON text in pieces of bounded length, each by the library's C code.

    a value that ends within a piece   is read by one call
    members and items of a larger one  are read a piece at a time: up to a comma where a member or an item may
                                       end. Whether one does is known when what stands before the comma is whole
                                       in brackets; else they are read one by one
    a string that is larger            is read in parts, never cut inside an escape or a pair of surrogates

What is read in vain is bounded by what has been read: a text that is made to have every piece end in the wrong
place is read token by token, which takes longer, but not longer and longer.

Values and errors are those of `json.loads`, with one more limit: large containers within each other, some
hundred levels of them, are a `RecursionError`. Places in errors' texts count from the start of a piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

#: Characters that one call of C code reads: under a millisecond of anything.
PIECE: Final = 32 * 1024
#: How much shorter the pieces are that are tried first: most values are short, and each piece is a copy.
_SHORTER: Final = (64, 8, 1)
#: Characters that may be read in vain: for each one that was read, and pieces of them before that.
_IN_VAIN: Final = 4
_PIECES_IN_VAIN: Final = 32

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
#: Whole characters and escapes of a string.
_PART: Final = re.compile(r'(?:[^"\\]++|\\u[0-9A-Fa-f]{4}|\\[^u])*+', re.DOTALL)
#: How a comma between two values is most likely preceded, by what the first of them begins with.
_ENDS: Final = {"{": "},", "[": "],", '"': '",'}


class Reader:
    """Reads one text. Every method takes the place where its part begins, and gives the value and its end."""

    def __init__(self, text: str, decoder: json.JSONDecoder) -> None:
        self._text = text
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once  # type: ignore[attr-defined]
        self._in_vain = 0

    def whole(self) -> Any:
        value, end = self._value(self._blanks(0))
        end = self._blanks(end)
        if end != len(self._text):
            self._fail("Extra data", end)
        return value

    def _value(self, start: int) -> tuple[Any, int]:
        first = self._text[start : start + 1]
        if first not in ("{", "[", '"'):
            return self._scalar(start)
        for shorter in _SHORTER:
            size = PIECE // shorter
            if not self._may_try(start, size):
                break
            try:
                value, end = self._scan(self._text[start : start + size], 0)
            except (ValueError, StopIteration):
                self._in_vain += size  # it goes on behind the piece, or is wrong, which is found below
            else:
                return value, start + end
        if first == "{":
            return self._object(start)
        return self._array(start) if first == "[" else self._string(start)

    def _may_try(self, at: int, size: int) -> bool:
        return self._in_vain + size <= _IN_VAIN * at + _PIECES_IN_VAIN * PIECE

    def _scalar(self, start: int) -> tuple[Any, int]:
        try:
            return self._scan(self._text, start)
        except StopIteration:
            self._fail("Expecting value", start)

    def _array(self, start: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self._blanks(start + 1)
        if self._text[at : at + 1] == "]":
            return found, at + 1
        one_by_one_until = at
        while True:
            if at >= one_by_one_until and self._may_try(at, PIECE):
                end = _ENDS.get(self._text[at : at + 1], ",")
                comma = self._text.rfind(end, at, at + PIECE) + len(end) - 1
                items = self._between("[", at, comma, "]")
                if items is not None:
                    found += items
                    at = self._blanks(comma + 1)
                    continue
                one_by_one_until = at + PIECE
            item, at = self._value(at)
            found.append(item)
            at = self._blanks(at)
            if self._text[at : at + 1] == "]":
                return found, at + 1
            at = self._after_comma(at)

    def _object(self, start: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self._blanks(start + 1)
        if self._text[at : at + 1] == "}":
            return found, at + 1
        one_by_one_until = at
        likely = ""
        while True:
            if at >= one_by_one_until and self._may_try(at, PIECE):
                end = likely or ","
                comma = self._text.rfind(end, at, at + PIECE) + len(end) - 1
                members = self._between("{", at, comma, "}")
                if members is not None:
                    found.update(members)
                    at = self._blanks(comma + 1)
                    continue
                # The first one that is read by itself tells what the others are likely to be.
                one_by_one_until = at + PIECE if likely else at + 1
            if self._text[at : at + 1] != '"':
                self._fail("Expecting property name enclosed in double quotes", at)
            name, at = self._value(at)
            at = self._blanks(at)
            if self._text[at : at + 1] != ":":
                self._fail("Expecting ':' delimiter", at)
            at = self._blanks(at + 1)
            likely = _ENDS.get(self._text[at : at + 1], ",")
            found[name], at = self._value(at)
            at = self._blanks(at)
            if self._text[at : at + 1] == "}":
                return found, at + 1
            at = self._after_comma(at)

    def _between(self, opening: str, start: int, comma: int, closing: str) -> Any:
        """The items or members up to a comma; None: the comma is not between two of them, or they are wrong.

        A comma inside of one, or behind the last, leaves a bracket or a quote open, or a bracket too many.
        """
        if comma <= start:
            return None
        part = f"{opening}{self._text[start:comma]}{closing}"
        try:
            value, end = self._scan(part, 0)
        except (ValueError, StopIteration):
            end = 0
        # `[1],[2]` begins with a whole array too.
        if end == len(part) and value:
            return value
        self._in_vain += len(part)
        return None

    def _string(self, start: int) -> tuple[str, int]:
        parts: list[str] = []
        at = start + 1
        while True:
            end = self._end_of_part(at)
            part = self._part(at, end)
            if part and 0xD800 <= ord(part[-1]) < 0xDC00 and self._text.startswith("\\u", end):
                # Its other half follows, and both together are one character.
                end -= len("\\ud83d") if self._text[end - 1] != part[-1] else 0
                part = self._part(at, end)
            parts.append(part)
            if self._text[end : end + 1] == '"':
                return "".join(parts), end + 1
            if end == at:
                self._fail("Unterminated string, or an invalid escape", at)
            at = end

    def _end_of_part(self, start: int) -> int:
        """Where a piece of a string, or the string itself, ends: at a quote, or between two characters."""
        end = min(start + PIECE, len(self._text))
        quote = self._text.find('"', start, end)
        end = end if quote < 0 else quote
        if self._text.find("\\", start, end) < 0:
            return end
        match = _PART.match(self._text, start, start + PIECE)
        return start if match is None else match.end()

    def _part(self, start: int, end: int) -> str:
        value: str = self._scan(f'"{self._text[start:end]}"', 0)[0]
        return value

    def _after_comma(self, at: int) -> int:
        if self._text[at : at + 1] != ",":
            self._fail("Expecting ',' delimiter", at)
        return self._blanks(at + 1)

    def _blanks(self, at: int) -> int:
        match = _BLANKS.match(self._text, at)
        return at if match is None else match.end()

    def _fail(self, what: str, at: int) -> NoReturn:
        raise json.JSONDecodeError(what, self._text, at)
