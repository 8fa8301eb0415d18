"""URLs and headers of servers. A URL is judged by its parsed host, never by how its text begins.

No message repeats a URL or a header's value: both may hold secrets.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from shared.upstream.config.fields import TransportType

#: Scheme, and the one that is good enough for this machine itself.
SCHEMES: Final[Mapping[TransportType, tuple[str, str]]] = {
    TransportType.HTTP: ("https", "http"),
    TransportType.SSE: ("https", "http"),
    TransportType.WEBSOCKET: ("wss", "ws"),
}
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})

_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
#: Made by the transports themselves; a second value would break the request, or the session.
_OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
        "upgrade",
    }
)


def url_fault(url: str, transport: TransportType | None) -> str | None:
    """Why the URL cannot be used; None if it can. `transport`: None or stdio check it for any of them."""
    # What urlsplit would take out of the text, and what other parsers read differently.
    if any(sign.isspace() or not sign.isprintable() for sign in url) or "\\" in url:
        return "must not hold blanks, control characters or backslashes"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is no URL: its host or port cannot be read (a port is a number from 1 to 65535)"
    schemes = SCHEMES.get(transport) if transport is not None else None
    legal = [schemes] if schemes else [SCHEMES[TransportType.HTTP], SCHEMES[TransportType.WEBSOCKET]]
    scheme = parts.scheme.lower()
    pair = next((pair for pair in legal if scheme in pair), None)
    if pair is None:
        wanted = " or ".join(f"{safe}:// (or {plain}:// for localhost)" for safe, plain in legal)
        return f"must use {wanted}" + (f" with the transport {transport}" if schemes else "")
    if "@" in parts.netloc:
        return "must not hold a user name or password; send them in 'headers'"
    if not host or not _is_host(host, parts.netloc) or port == 0:
        return "needs a legal host (an international name as xn--…), and a port from 1 to 65535 if it has one"
    if scheme == pair[1] and host.lower() not in LOCAL_HOSTS:
        return f"must use {pair[0]}:// ({pair[1]}:// is for localhost, 127.0.0.1 and [::1] only)"
    return None


def _is_host(host: str, netloc: str) -> bool:
    if netloc.startswith("["):
        # Python takes what follows the bracket for nothing; others take it for the host.
        return _IPV6.fullmatch(netloc) is not None and _is_ipv6(host)
    # An international name must be written as it is looked up (xn--…): parsers disagree on all others.
    return len(host) <= 253 and _HOST_NAME.fullmatch(host) is not None


def _is_ipv6(host: str) -> bool:
    try:
        return isinstance(ipaddress.ip_address(host), ipaddress.IPv6Address)
    except ValueError:
        return False


def header_faults(headers: Mapping[str, str]) -> dict[str, str]:
    """Header name -> what is wrong with it."""
    faults: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in headers.items():
        lowered = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            faults[name] = "is no legal name of a header"
        elif lowered in _OWN_HEADERS:
            faults[name] = "is set by the transport itself"
        elif lowered in seen:
            faults[name] = "stands twice; case does not count in header names"
        elif not value.isascii() or any(sign != "\t" and not sign.isprintable() for sign in value):
            faults[name] = "must be printable ASCII on one line; a line break at its end counts too"
        seen.add(lowered)
    return faults
