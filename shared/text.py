"""Text that can be written anywhere."""

from __future__ import annotations


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
