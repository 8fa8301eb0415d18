"""Text that can be written anywhere, and words for values that are not repeated."""

from __future__ import annotations

from typing import Final

_KINDS: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """The JSON kind of a value, as JSON Schema names it; of what has none, its type."""
    return _KINDS.get(type(value), type(value).__name__)


def shape_of(value: object) -> str:
    """What a refused value is, and how long: `string of 12 characters`. Never the value: it may be a secret."""
    if isinstance(value, str):
        return f"{kind_of(value)} of {_counted(len(value), 'character')}"
    if isinstance(value, list | tuple):
        return f"{kind_of(value)} of {_counted(len(value), 'item')}"
    if isinstance(value, int | float) and value < 0:
        return f"negative {kind_of(value)}"
    return kind_of(value)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def clean_text(text: str) -> str:
    """The text with lone surrogates, which no encoding can carry, replaced by U+FFFD.

    Halves of a pair that stand together become their character.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
