"""The levels of MCP log notifications as this app's own, and their text.

HoloDeck's FR-027 maps the eight of MCP to debug, info, warning, error and critical. A job's log here has four:
what is critical is an error whose text says how grave it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

_LEVELS: Final[Mapping[str, str]] = {
    "debug": "debug",
    "info": "info",
    "notice": "info",
    "warning": "warn",
    "error": "error",
    "critical": "error",
    "alert": "error",
    "emergency": "error",
}
_GRAVE: Final = frozenset({"critical", "alert", "emergency"})
#: Asked of servers that send logs only on demand.
WANTED: Final = "info"


def level_of(level: str) -> str:
    """`debug`, `info`, `warn` or `error`; an unknown level counts as `info`."""
    return _LEVELS.get(level, "info")


def text_of(level: str, logger: str | None, data: object) -> str:
    """`[critical] [logger] text`, the parts in brackets where they say something; other data than text as
    JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    if logger:
        text = f"[{logger}] {text}"
    return f"[{level}] {text}" if level in _GRAVE else text
