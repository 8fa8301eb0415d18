"""list_changed notifications -> few listings.

Listing inside the notification's handler would wait for an answer that the same loop must read; so a task does
it. A burst is one listing, and at most one more for what came meanwhile. A server that notifies at each listing
is listed ever more rarely.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from shared.upstream.connection.limits import REFRESH_LONGEST_PAUSE, REFRESH_PAUSE


class Refresher:
    def __init__(
        self,
        refresh: Callable[[], Awaitable[object]],
        failed: Callable[[Exception], None],
        *,
        pause: float = REFRESH_PAUSE,
        longest: float = REFRESH_LONGEST_PAUSE,
    ) -> None:
        """`refresh` lists again; what it raises goes to `failed`, and the old list stays."""
        self._refresh = refresh
        self._failed = failed
        self._shortest = self._pause = pause
        self._longest = longest
        self._wanted = False
        #: What refreshes, or has; a strong reference.
        self.task: asyncio.Task[None] | None = None
        self._ended = -longest

    def trigger(self) -> None:
        self._wanted = True
        if self.task is None or self.task.done():
            quiet = asyncio.get_running_loop().time() - self._ended
            if quiet > max(1.0, 2 * self._pause):
                self._pause = self._shortest
            self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while self._wanted:
            await asyncio.sleep(self._pause)
            self._wanted = False
            try:
                await self._refresh()
            except Exception as error:
                self._failed(error)
            self._pause = min(self._pause * 2, self._longest)
            self._ended = asyncio.get_running_loop().time()
