"""Ids of invocations and jobs: UUIDv7 (RFC 9562), whose order is the order of their making.

id        48 bits of milliseconds, then random bits; lower-case, with hyphens
inverted  the id's 128 bits inverted, as 32 hex digits: the newest sorts first, as table keys should
"""

from __future__ import annotations

import os
import re
import time
import uuid
from typing import Final

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_ALL_BITS = (1 << 128) - 1
_ALL_MILLISECONDS = (1 << 48) - 1

#: What a correlation id begins with; the rest is an id. A job's is made of the job's own id.
CORRELATION_PREFIX: Final = "mcp-"


def new_id(now_ms: int | None = None) -> str:
    """A new UUIDv7. `now_ms`: milliseconds since 1970 (the clock's when absent)."""
    milliseconds = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (1 << 48) - 1) << 80
    value |= 0x7 << 76 | (random >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_id(text: object) -> bool:
    """Whether the text can be an id. Checked before any storage call."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def milliseconds_of(identifier: str) -> int:
    """When the id was made, in milliseconds since 1970."""
    return int(identifier[:8] + identifier[9:13], 16)


def inverted(identifier: str) -> str:
    return f"{_ALL_BITS ^ int(identifier.replace('-', ''), 16):032x}"


def inverted_from(milliseconds: int) -> str:
    """What sorts before the inverted id of every id made up to then, and after those of later ones."""
    return f"{_ALL_MILLISECONDS ^ min(milliseconds, _ALL_MILLISECONDS):012x}"


def of_inverted(text: str) -> str:
    """The inverse of `inverted`."""
    return str(uuid.UUID(int=_ALL_BITS ^ int(text, 16)))


def correlation_id(identifier: str) -> str:
    """One text for one call, in its launch context, log, job row, acceptance and trace."""
    return f"{CORRELATION_PREFIX}{identifier}"
