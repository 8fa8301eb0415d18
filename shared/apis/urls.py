"""Addresses: the hosts that may be asked, and what a tool gives, relative to the API that it is for.

The rule for hosts is narrower than what httpx takes (RFC 1123 names in ASCII, IP addresses): so whatever passes
here cannot fail there with an error of its own.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from shared.errors import ToolError
from shared.text import shape_of

#: What stays as it is in a caller's own address: `%` too, so that encoded parts are not encoded again.
_SAFE: Final = "!$&'()*+,-./:;=?@_~%"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LABEL: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_LAST_IS_NUMBER: Final = re.compile(r"(?:.*\.)?[0-9]+")


def https_origin(url: str) -> str | None:
    """`https://host[:port]` in lower case, without the default port. None unless `url` begins with one."""
    if not url.isascii() or any(ord(character) <= 32 or ord(character) == 127 for character in url):
        return None  # urlsplit would leave some of them out
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme != "https" or "@" in parts.netloc or port == 0 or not _is_host(host):
        return None
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}" if port in (None, 443) else f"https://{shown}:{port}"


def _is_host(host: str) -> bool:
    """A name, or an IP address: `999.1.1.1` and `1.2.3` are neither."""
    if ":" not in host and not _LAST_IS_NUMBER.fullmatch(host):
        return _HOST.fullmatch(host) is not None
    try:
        return "%" not in host and ipaddress.ip_address(host) is not None
    except ValueError:
        return False


def relative_url(url: object, what: str) -> str:
    """The address without a slash at its beginning, encoded. Raises `ToolError` when it leads anywhere else."""
    if not isinstance(url, str) or not url.strip():
        raise ToolError(f"{what} must be a text such as accounts?$select=name, not {shape_of(url)}")
    text = url.strip()
    path, mark, query = text.partition("?")
    path = path.removeprefix("/")
    plain = unquote(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} holds half of a character (a lone surrogate)") from None
    if (
        _SCHEME.match(text)
        or path.startswith("/")
        or "\\" in plain
        or any(step in (".", "..") for step in plain.split("/"))
        or any(ord(character) < 32 for character in text)
    ):
        raise ToolError(f"{what} must be relative to the API: no host, no '..'")
    return quote(path, safe=_SAFE) + mark + quote(query, safe=_SAFE)
