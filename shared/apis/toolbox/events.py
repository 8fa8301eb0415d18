"""`toolboxAPI.events`: what happened in this invocation. Nothing crosses from one call to another.

progress            {percent, message}
notification        {title, body, type, duration}
settings:updated    {key, value}
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from shared.apis.bridge import settled
from shared.apis.launch import current
from shared.apis.record import Record, wrap
from shared.apis.toolbox.spelling import TwoSpellings
from shared.text import kind_of
from shared.tool.context import PROGRESS_WATCHER, Context

_LOG = logging.getLogger(__name__)
_WHAT: Final = "toolboxAPI.events"
_STATE: Final = "events"
#: Events that are kept.
KEPT: Final = 100

type Listener = Callable[[Any, Record], object]


class _Bus:
    def __init__(self) -> None:
        self.history: deque[Record] = deque(maxlen=KEPT)
        self.listeners: list[Listener] = []


class EventsApi(TwoSpellings):
    """A listener is called as `listener(event, payload)`, on the thread where the event happens."""

    def on(self, listener: Listener) -> None:
        if not callable(listener):
            raise TypeError(
                "toolboxAPI.events.on: the listener must be a function of (event, payload), "
                f"not {kind_of(listener)}"
            )
        _bus(current(_WHAT)).listeners.append(listener)

    def off(self, listener: Listener) -> None:
        """Takes a listener away; one that is not there is nothing to complain about."""
        listeners = _bus(current(_WHAT)).listeners
        if listener in listeners:
            listeners.remove(listener)

    def get_history(self, limit: int | None = None) -> Any:
        """The newest events, newest first: `{event, data, timestamp}`."""
        newest = list(reversed(_bus(current(_WHAT)).history))
        return settled(newest if limit is None else newest[: max(int(limit), 0)])


def happened(context: Context, event: str, data: dict[str, Any]) -> None:
    """Tells the invocation's listeners. What one of them raises is logged, and is no failure of the tool's."""
    bus = _bus(context)
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = Record(event=event, data=wrap(data), timestamp=stamp)
    bus.history.append(record)
    for listener in list(bus.listeners):
        try:
            listener(event, record)
        except Exception:
            _LOG.warning("a listener of tool '%s' failed", context.tool_name, exc_info=True)


def _bus(context: Context) -> _Bus:
    bus = context.state.get(_STATE)
    if bus is None:
        bus = context.state.setdefault(_STATE, _Bus())
        context.state[PROGRESS_WATCHER] = lambda percent, message: happened(
            context, "progress", {"percent": percent, "message": message}
        )
    assert isinstance(bus, _Bus)
    return bus
