"""The configuration as it is now: looked at again every second in which somebody asks, off the event loop.

A scope that nobody asks for any more is looked at now and then beside the others: its servers would else be
kept for as long as this process lives, whatever its file says by then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from shared import storage
from shared.upstream.settings import UpstreamSettings

if TYPE_CHECKING:
    from shared.upstream.config.loading import Loaded
    from shared.upstream.config.model import ServerConfig

#: Seconds for which a configuration that was read is taken as it was.
FRESH: Final = 1.0
#: Seconds after which a scope that nobody asks for is looked at again.
FORGOTTEN: Final = 60.0


class Configurations:
    """The configurations of one app, by project. Belongs to one event loop.

    `changed`: called, on the event loop, with all servers of all known configurations when one has changed.
    """

    def __init__(self, settings: UpstreamSettings, changed: Callable[[list[ServerConfig]], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._known: dict[str | None, tuple[float, Loaded]] = {}
        self._reading: dict[str | None, asyncio.Task[Loaded]] = {}

    async def of(self, project: str | None) -> Loaded:
        """The configuration of a scope (None: the global one). Callers at the same time share one reading."""
        known = self._known.get(project)
        if known is not None and time.monotonic() - known[0] < FRESH and self._is_current(project, known[1]):
            return known[1]
        return await asyncio.shield(self._started(project))

    def _is_current(self, project: str | None, known: Loaded) -> bool:
        """Not when all of it has been built anew meanwhile, by whoever asked for it (`Servers.refresh`)."""
        from shared.upstream.config.loading import is_current  # which has read it, so it is imported already

        return is_current(self._settings, project, known)

    def _started(self, project: str | None) -> asyncio.Task[Loaded]:
        reading = self._reading.get(project)
        if reading is None or reading.done() or reading.get_loop() is not asyncio.get_running_loop():
            reading = self._reading[project] = asyncio.create_task(self._read(project))
            reading.add_done_callback(_seen)
        return reading

    async def _read(self, project: str | None) -> Loaded:
        found = await storage.run(_load, self._settings, project)
        before = self._known.get(project)
        self._known[project] = (time.monotonic(), found)
        if before is not None and before[1] is not found:
            self._changed([config for _, one in self._known.values() for config in one.servers.values()])
        oldest = min(self._known, key=lambda one: self._known[one][0])
        if time.monotonic() - self._known[oldest][0] > FORGOTTEN:
            self._started(oldest)  # which looks at the next one in its turn
        return found


def _seen(reading: asyncio.Task[Loaded]) -> None:
    """Whoever waited for it may have left; then nobody else looks at its error."""
    if not reading.cancelled():
        reading.exception()


def _load(settings: UpstreamSettings, project: str | None) -> Loaded:
    # With the SDK, so that the event loop does not wait for its import at the first call.
    import shared.upstream.connection.pool
    import shared.upstream.content.convert  # noqa: F401
    from shared.upstream.config.loading import load

    return load(settings, project)
