"""Addresses that a tool gives: relative to the API that they are for, and encoded."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from shared.errors import ToolError

#: What stays as it is in a caller's own address: `%` too, so that encoded parts are not encoded again.
_SAFE: Final = "!$&'()*+,-./:;=?@_~%"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def relative_url(url: object, what: str) -> str:
    """The address without a slash at its beginning, encoded. Raises `ToolError` when it leads anywhere else."""
    if not isinstance(url, str) or not url.strip():
        raise ToolError(f"{what} must be a text such as accounts?$select=name")
    text = url.strip()
    path, mark, query = text.partition("?")
    path = path.removeprefix("/")
    plain = unquote(path)
    if (
        _SCHEME.match(text)
        or path.startswith("/")
        or "\\" in plain
        or any(step in (".", "..") for step in plain.split("/"))
        or any(ord(character) < 32 for character in text)
    ):
        raise ToolError(f"{what} must be relative to the API: no host, no '..'")
    return quote(path, safe=_SAFE) + mark + quote(query, safe=_SAFE)
