"""Tokens and literals of OData expressions ($filter, key predicates, function parameters)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from infra.local.dataverse.errors import bad_query


class Type(StrEnum):
    """What a literal or a property is, as far as comparisons mind."""

    NULL = "null"
    STRING = "Edm.String"
    NUMBER = "Edm.Decimal"
    BOOLEAN = "Edm.Boolean"
    GUID = "Edm.Guid"
    TIME = "Edm.DateTimeOffset"
    ANY = "any"  # a property whose type nobody declared


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. Times stay text, as written; GUIDs are in lower case."""

    type: Type
    value: Any


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression: `kind` is literal, name, alias, or the punctuation itself."""

    kind: str
    text: str
    literal: Literal | None = None
    position: int = 0


_GUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TIME: Final = r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?"
_NUMBER: Final = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<guid>{_GUID})(?![\w-])|(?P<time>{_TIME})(?![\w-])|(?P<number>{_NUMBER})(?![\w.])"
    rf"|(?P<string>'(?:[^']|'')*')|(?P<enum>{_NAME}'(?:[^']|'')*')|(?P<alias>@[A-Za-z_]\w*)"
    rf"|(?P<name>\$?{_NAME})|(?P<mark>[(),/:=\[\]]))"
)
_WORDS: Final = {
    "null": Literal(Type.NULL, None),
    "true": Literal(Type.BOOLEAN, True),
    "false": Literal(Type.BOOLEAN, False),
}


def tokenize(text: str) -> list[Token]:
    """The tokens of an expression, ended by one of kind `end`. Raises ApiError (400)."""
    tokens: list[Token] = []
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise bad_query(f"Syntax error at position {position} in '{text}'.")
        tokens.append(_token(match, position))
        position = match.end()
    tokens.append(Token("end", "", position=end))
    return tokens


def _token(match: re.Match[str], position: int) -> Token:
    kind = match.lastgroup or ""
    text = match[kind]
    if kind == "name":
        word = _WORDS.get(text)
        return Token("literal" if word else "name", text, word, position)
    if kind in {"alias", "mark"}:
        return Token("alias" if kind == "alias" else text, text, position=position)
    return Token("literal", text, _literal(kind, text), position)


def _literal(kind: str, text: str) -> Literal:
    if kind == "guid":
        return Literal(Type.GUID, text.lower())
    if kind == "time":
        return Literal(Type.TIME, text)
    if kind == "number":
        return Literal(Type.NUMBER, int(text) if text.lstrip("-").isdigit() else float(text))
    if kind == "enum":
        type_name, _, rest = text.partition("'")
        if "." not in type_name:
            raise bad_query(f"Unrecognized 'Edm.String' literal '{text}' at '0' in '{text}'.")
        text = f"'{rest}"
    return Literal(Type.STRING, text[1:-1].replace("''", "'"))


def parse_literal(text: str) -> Literal | None:
    """A text that is one literal and nothing else; None otherwise."""
    tokens = tokenize(text)
    return tokens[0].literal if len(tokens) == 2 else None


def write_literal(literal: Literal) -> str:
    """A literal as it stands in an expression."""
    match literal.type:
        case Type.NULL:
            return "null"
        case Type.BOOLEAN:
            return "true" if literal.value else "false"
        case Type.STRING:
            return "'" + str(literal.value).replace("'", "''") + "'"
        case _:
            return str(literal.value)
