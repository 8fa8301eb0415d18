"""What every transport gives: the two streams of the SDK's session, and what only a transport knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Streams:
    """`ending`: why it ended, as part of a sentence, or empty; `session`: the session's id on the wire, if it
    has one; `kill`: let go of everything at once, when closing takes too long."""

    read: ReadStream[SessionMessage | Exception]
    write: WriteStream[SessionMessage]
    ending: Callable[[], str] = str
    session: Callable[[], str | None] = _nothing
    kill: Callable[[], None] = _nothing


async def ended(ending: Callable[[], str]) -> str:
    """How it ended. The exit code of a process is known a moment after its pipes have closed."""
    for _ in range(10):
        if how := ending():
            return how
        await asyncio.sleep(0.02)
    return ""
