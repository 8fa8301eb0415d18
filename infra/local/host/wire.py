"""JSON as the real host's serialiser (System.Text.Json, default encoder) writes it, and strict reading of it.

Everything outside ASCII becomes an upper-case ``\\uXXXX`` escape, and so do quotes, apostrophes, backticks,
``< > & +`` and DEL; there is no white space. Numbers are written as Python writes them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

_ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_SPECIAL = {character: f"\\u{ord(character):04X}" for character in "'<>&`\x7f"}
_EXPONENT = re.compile(r"\d[eE]\+\d")  # a plus that may belong to a number
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_HEX = re.compile(r"(?:\\u[0-9a-f]{4})+")  # a run at a time: one call for a whole word of another script


def dumps(value: Any) -> str:
    """ASCII JSON text. Raises ValueError for NaN and infinities, which JSON cannot carry."""
    text = _ENCODE(value)
    if "\\" in text:
        # An escaped backslash stands aside as NUL, which JSON text cannot hold. Of the rest every \u is an
        # escape and every \" an escaped quote, so that whole-text replacements, which are fast, do the work.
        text = text.replace("\\\\", "\0")
        if "\\u" in text:
            text = _HEX.sub(_upper, text)
        text = text.replace('\\"', "\\u0022").replace("\0", "\\\\")
    for character, escape in _SPECIAL.items():
        if character in text:
            text = text.replace(character, escape)
    if "+" in text:
        text = _STRING.sub(_escape_plus, text) if _EXPONENT.search(text) else text.replace("+", "\\u002B")
    return text


def dumps_plain(value: Any) -> str:
    """Compact JSON without escaping beyond what JSON needs, for text that only the worker reads."""
    return _PLAIN(value)


def loads(text: str | bytes, *, finite: bool = False) -> Any:
    """Strict JSON: no NaN or Infinity. Raises ValueError, also for nesting that Python cannot follow.

    With ``finite`` a number beyond the range of a double is refused too, since it could not be written again.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")  # as json.loads does
    try:
        return (_DECODE_FINITE if finite else _DECODE)(text)
    except RecursionError:
        raise ValueError("too deeply nested") from None


def dotnet_text(value: Any) -> str:
    """``ToString()`` of a JSON value in .NET: ``True``, ``5``, raw strings, indented JSON for the rest."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    return json.dumps(value, indent=2, ensure_ascii=False)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is out of range")
    return number


#: Made once: `json.loads` makes a decoder for each text that it is given anything special for.
_DECODE = json.JSONDecoder(parse_constant=_refuse).decode
_DECODE_FINITE = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).decode


def _upper(match: re.Match[str]) -> str:
    return match[0].upper().replace("\\U", "\\u")


def _escape_plus(match: re.Match[str]) -> str:
    return match[0].replace("+", "\\u002B")
