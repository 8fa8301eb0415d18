"""Base64 as it comes over the wire: its size without decoding it, and the one form that is taken.

Taken is the standard alphabet with padding (RFC 4648, section 4); white space is removed. A data: URL or the
URL-safe alphabet is refused with its name: to guess would hide a server's mistake and may change the data.
"""

from __future__ import annotations

import binascii


class Base64Error(ValueError):
    """Why a text is not taken; the text is for people and holds nothing of the data."""


def size_of(text: str) -> int:
    """How many bytes the text stands for, at most: exact for a text without white space."""
    length = len(text)
    padding = len(text[-2:]) - len(text[-2:].rstrip("="))
    return max(length * 3 // 4 - padding, 0)


def checked(text: str) -> tuple[str, bytes]:
    """The text without white space, and its bytes. Raises `Base64Error`."""
    try:
        return text, _decoded(text)
    except ValueError:
        bare = "".join(text.split())
    try:
        return bare, _decoded(bare)
    except ValueError:
        raise Base64Error(_reason(bare)) from None


def _decoded(text: str) -> bytes:
    # Strict: no character outside of the alphabet, padding where it belongs and nothing behind it.
    return binascii.a2b_base64(text, strict_mode=True)


def _reason(text: str) -> str:
    if text[:5].lower() == "data:":
        return "its data is a data: URL, not plain base64"
    if ("-" in text or "_" in text) and not ("+" in text or "/" in text):
        return "its data is base64 of the URL-safe alphabet, not the standard one"
    if len(text) % 4 and set(text) <= _ALPHABET:
        return "its data is base64 that was cut off, or has no padding"
    return "its data is not base64"


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
