"""The trace within a tool's own process, which exports nothing by itself.

    worker    a `Taker` for each process; what its `handed_over` gives goes along with the launch
    process   `begin`: requests are spans there as anywhere, and what ended goes to the worker as messages
    worker    the `Taker` looks at them, and puts them out as its own

The process is nobody to be trusted: the tool's code runs in it. So a message says of a request what it was, in
fields that `shared.jobs.isolation.grammar` checks, and nothing of where it belongs: it is under the attempt
that the process was started for. What goes into metrics comes from closed sets, as everywhere.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from shared.errors import ToolboxError
from shared.telemetry import names
from shared.telemetry.names import Attribute, SpanName
from shared.telemetry.sampling import Sampler
from shared.telemetry.spans import Attributes, Ended, Kind, Measured, count, switch
from shared.telemetry.trace import Place, current, parsed

type Message = dict[str, Any]

#: What a process may have asked -> the name of its span.
SERVICES: Final = {"dataverse": SpanName.DATAVERSE, "powerplatform": SpanName.POWER_PLATFORM}
#: Messages of one process that are taken. A query of millions of rows makes a request for each 5,000.
MOST: Final = 4_000
#: Seconds by which the clock may have been set while the process ran.
LEEWAY: Final = 1.0
_OTHER: Final = "_OTHER"
_STATUS: Final = re.compile(r"[1-5][0-9]{2}")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
#: As `routes` writes them.
_ROUTE: Final = re.compile(r"[A-Za-z0-9_.$/{}()]{0,200}")


class Taker:
    """The worker's end: takes what one process tells. Made under the span of the attempt that it is of.

    `addresses`: of the services that the attempt may reach; no other host is told of.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._out = switch.out
        self._place = current.get()
        self._hosts = (
            frozenset() if self._out is None else frozenset(urlsplit(one).hostname for one in addresses)
        )
        self._since = time.time_ns()
        self._left = MOST

    @property
    def handed_over(self) -> Message | None:
        """For `begin`; None: nothing is to be told."""
        if self._out is None or self._place is None:
            return None
        return {"traceparent": self._place.traceparent, "propagates": self._out.propagates}

    def span(self, message: Mapping[str, Any]) -> None:
        """Puts out a span. One that cannot be true of the attempt is left out."""
        place, out = self._place, self._out
        if not self._takes() or out is None or place is None or not place.sampled:
            return
        start, end = message["start"], message["end"]
        leeway = int(LEEWAY * 1e9)
        if not self._since - leeway <= start <= end <= time.time_ns() + leeway:
            return
        own = Place(place.trace_id, int(message["id"], 16))
        if not own.span_id or own.span_id == place.span_id:
            return
        name = f"{SERVICES[message['service']]} {message['method']}"
        out.put(Ended(name, Kind.CLIENT, own, place, (), start, end, self._attributes(message)))

    def request(self, message: Mapping[str, Any]) -> None:
        """Counts a request."""
        out = self._out
        elapsed = (time.time_ns() - self._since) / 1e9
        if not self._takes() or out is None or message["seconds"] > elapsed + LEEWAY:
            return
        count(
            out,
            names.REQUEST_DURATION,
            float(message["seconds"]),
            HTTP_METHOD=message["method"],
            HOST=self._host(message),
            SERVICE=message["service"],
            HTTP_STATUS=message["status"],
            ERROR=_of_known(message["error"]),
        )

    def _takes(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def _host(self, message: Mapping[str, Any]) -> str:
        return message["host"] if message["host"] in self._hosts else ""

    def _attributes(self, message: Mapping[str, Any]) -> Attributes:
        error = message["error"]
        told = {
            Attribute.SERVICE: message["service"],
            Attribute.HTTP_METHOD: message["method"],
            Attribute.HOST: self._host(message),
            Attribute.ROUTE: message["route"] if _ROUTE.fullmatch(message["route"]) else "",
            Attribute.HTTP_STATUS: message["status"],
            Attribute.HTTP_RESENDS: message["resends"] or None,
            Attribute.ERROR: error if _STATUS.fullmatch(error) or _WORD.fullmatch(error) else error and _OTHER,
        }
        return {name: value for name, value in told.items() if value is not None and value != ""}


class Teller:
    """The process's end: an `Output` that sends what it is given, as far as the worker takes it."""

    def __init__(self, send: Callable[[Message], None], *, propagates: bool) -> None:
        # The place that was handed over says whether the trace is exported; here everything is under it.
        self.sampler = Sampler()
        self.propagates = propagates
        self._send = send
        self._left = MOST

    def put(self, item: Ended | Measured) -> None:
        told = item.attributes
        if told.get(Attribute.SERVICE) not in SERVICES:
            return  # what a tool's own process makes besides is the worker's to tell
        self._left -= 1
        if self._left < 0:
            return
        message: Message = {
            "service": told[Attribute.SERVICE],
            "method": told.get(Attribute.HTTP_METHOD, _OTHER),
            "host": told.get(Attribute.HOST, ""),
            "status": told.get(Attribute.HTTP_STATUS),
            "error": told.get(Attribute.ERROR, ""),
        }
        if isinstance(item, Measured):
            self._send({"type": "request", **message, "seconds": item.value})
            return
        self._send(
            {
                "type": "span",
                **message,
                "id": f"{item.place.span_id:016x}",
                "route": told.get(Attribute.ROUTE, ""),
                "resends": told.get(Attribute.HTTP_RESENDS, 0),
                "start": item.start,
                "end": item.end,
            }
        )

    def pseudonym(self, owner: str) -> str:
        return ""


def begin(handed_over: Mapping[str, Any], send: Callable[[Message], None]) -> None:
    """In a tool's own process, in the context that the tool will run in: what it asks of services is told from
    now on. `send`: to the worker.
    """
    current.set(parsed(handed_over["traceparent"]))
    switch.out = Teller(send, propagates=bool(handed_over["propagates"]))


def _of_known(error: str) -> str:
    """A word that metrics may have: a status, or one of the app's own."""
    return error if not error or _STATUS.fullmatch(error) or error in _codes() else _OTHER


@functools.cache
def _codes() -> frozenset[str]:
    found, waiting = set(), [ToolboxError]
    while waiting:
        one = waiting.pop()
        found.add(one.code)
        waiting += one.__subclasses__()
    return frozenset(found)
