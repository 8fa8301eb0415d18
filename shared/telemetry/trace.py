"""Where a piece of work stands in a trace, and how that is written down (W3C Trace Context, level 1).

traceparent = 00-<trace id: 32 hex digits>-<span id: 16 hex digits>-<flags: 2 hex digits>
"""

from __future__ import annotations

import hashlib
import os
import re
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

#: The name of an HTTP header, and of a field of MCP's `_meta`.
HEADER: Final = "traceparent"
_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED: Final = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A span as others refer to it. `sampled`: whether it is exported, and so what is under it."""

    trace_id: int
    span_id: int
    sampled: bool = True

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{int(self.sampled):02x}"


#: The span that the running code is under.
current: Final[ContextVar[Place | None]] = ContextVar("toolbox_trace", default=None)


def parsed(text: object) -> Place | None:
    """The place that a `traceparent` tells of; None for what is no valid one. It may come from anybody."""
    match = _TRACEPARENT.fullmatch(text) if isinstance(text, str) and len(text) <= 512 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    place = Place(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    # Version ff is forbidden, and only a later version than ours may say more. Ids of zeros are none.
    is_legal = version != "ff" and (version != "00" or more is None)
    return place if is_legal and place.trace_id and place.span_id else None


def new_trace_id() -> int:
    return int.from_bytes(os.urandom(16)) or 1


def new_span_id() -> int:
    return int.from_bytes(os.urandom(8)) or 1


def job_trace_id(job_id: str) -> int:
    """The trace of a job whose call was not traced: the same for whoever works on it."""
    return int.from_bytes(hashlib.sha256(job_id.encode()).digest()[:16]) or 1


def attempt_span_id(job_id: str, attempt: int) -> int:
    """The same for the worker that makes the attempt and for whoever finds out that it was lost."""
    return int.from_bytes(hashlib.sha256(f"{job_id} {attempt}".encode()).digest()[:8]) or 1
