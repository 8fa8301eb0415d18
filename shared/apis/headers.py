"""Request headers: what a tool may add to a call, and how its `Prefer` joins the API's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from shared.errors import ToolError
from shared.text import kind_of, shape_of

MAX_HEADERS: Final = 32
#: Characters of one value.
MAX_VALUE: Final = 4096
#: Who calls, where to, and how the message is framed: never for a tool to say.
_FORBIDDEN: Final = frozenset(
    {
        "authorization", "connection", "content-length", "cookie", "expect", "forwarded", "host", "keep-alive",
        "te", "trailer", "transfer-encoding", "upgrade", "x-forwarded-for", "x-forwarded-host",
    }
)  # fmt: skip
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE: Final = re.compile(r"[\t\x20-\x7e]*")


def checked(headers: Mapping[str, str | None] | None, what: str) -> dict[str, str | None]:
    """The caller's additional headers, names in lower case. None as a value takes a default header away.

    Raises `ToolError` for a forbidden name, for one that is no header name, and for odd or too long values;
    the text never repeats a value.
    """
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise ToolError(
            f"{what}: additionalHeaders must be a mapping of header names to texts, not {kind_of(headers)}"
        )
    if len(headers) > MAX_HEADERS:
        raise ToolError(f"{what}: at most {MAX_HEADERS} additional headers are allowed, not {len(headers)}")
    found: dict[str, str | None] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ToolError(
                f"{what}: a header's name must be 1 to 128 letters, digits and marks such as '-', "
                f"not {shape_of(name)}"
            )
        key = name.lower()
        if key in _FORBIDDEN or key.startswith("proxy-"):
            raise ToolError(f"{what}: the header '{name}' cannot be set by a tool")
        if key in found:
            raise ToolError(f"{what}: the header '{name}' is given twice")
        if value is not None and (
            not isinstance(value, str) or len(value) > MAX_VALUE or not _VALUE.fullmatch(value)
        ):
            raise ToolError(
                f"{what}: the header '{name}' must be a text of at most {MAX_VALUE} printable ASCII "
                f"characters, not {shape_of(value)}"
            )
        found[key] = value
    return found


def merged(defaults: Mapping[str, str], additional: Mapping[str, str | None]) -> dict[str, str]:
    """The defaults with the additional headers over them. `Prefer` is joined: preference by preference."""
    headers = {name.lower(): value for name, value in defaults.items()}
    for name, value in additional.items():
        if value is None:
            headers.pop(name, None)
        elif name == "prefer" and name in headers:
            headers[name] = prefer(headers[name], value)
        else:
            headers[name] = value
    return headers


def prefer(*preferences: str | None) -> str:
    """One `Prefer` value; of two preferences of one name the later one counts."""
    found: dict[str, str] = {}
    for text in preferences:
        for preference in _split(text or ""):
            name = preference.partition("=")[0].strip().lower()
            found[name] = preference
    return ",".join(found.values())


def _split(text: str) -> list[str]:
    """At commas outside of quotes."""
    parts = re.findall(r'(?:"[^"]*"|[^,"])+', text)
    return [part.strip() for part in parts if part.strip()]
