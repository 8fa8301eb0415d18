"""Fields of a connection's JSON, checked one by one. Each adds its faults, with their JSON paths. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from shared.apis.urls import https_origin
from shared.text import shape_of
from shared.tool.spec import JsonObject

LONGEST_TEXT: Final = 500
#: What may stand in front of an API's own paths: segments, none of which begins with a dot.
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


def text(raw: JsonObject, name: str, path: str, faults: list[str], *, required: bool = False) -> str:
    """A text without the blanks around it; empty: it is not there, or illegal."""
    value = raw.get(name)
    if value is None:
        if required:
            faults.append(f"{path}.{name}: required field is missing")
        return ""
    if not _is_text(value):
        faults.append(
            f"{path}.{name}: must be a text of 1 to {LONGEST_TEXT} characters on one line, "
            f"not {shape_of(value)}"
        )
        return ""
    return str(value).strip()


def texts(raw: JsonObject, name: str, path: str, faults: list[str]) -> tuple[str, ...] | None:
    """A list of texts, each once. None: it is not there, or illegal."""
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(map(_is_text, value)):
        faults.append(f"{path}.{name}: must be a list of one or more texts, not {_listed(value)}")
        return None
    return tuple(dict.fromkeys(item.strip() for item in value))


def _listed(value: object) -> str:
    """What stands in the place of a list of texts: the first of it that is none, if it is a list."""
    if not isinstance(value, list) or not value:
        return shape_of(value)
    return f"one with {next(shape_of(item) for item in value if not _is_text(item))}"


def address(given: str, path: str, faults: list[str]) -> str:
    """An address with nothing behind the host, of an environment or a sign-in service; no slash at its end."""
    if not given:
        return ""
    origin = _origin(given.removesuffix("/"))
    if origin is None:
        faults.append(
            f"{path}: must be like https://org.crm.dynamics.com, with nothing behind the host, not another text"
        )
    return origin or ""


def base(given: str, path: str, faults: list[str]) -> str:
    """The address of an API: https, a host, and a path where a gateway puts one in front of the API's own."""
    bare = given.rstrip("/")
    cut = bare.find("/", len("https://"))
    host, prefix = (bare, "") if cut < 0 else (bare[:cut], bare[cut:])
    if given and (_origin(host) is None or not _PREFIX.fullmatch(prefix)):
        faults.append(f"{path}: must be like https://api.powerplatform.com, without a query, not another text")
    return (_origin(host) or "") + prefix


def _origin(given: str) -> str | None:
    """`https://host[:port]`, when there is nothing else in it."""
    origin = https_origin(given)
    return origin if given.lower() in (origin, f"{origin}:443") else None


def unknown(raw: JsonObject, known: Iterable[str], path: str, faults: list[str]) -> None:
    names = tuple(known)
    faults += [
        f"{path}: unknown field '{name[:80]}'; known are {', '.join(names)}"
        for name in raw
        if name not in names
    ]


def _is_text(value: Any) -> bool:
    """One line that a person can read, and that UTF-8 can hold."""
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
        return False
    return value.strip().isprintable()
