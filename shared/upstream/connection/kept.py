"""Connections of HTTP/1.1 to one server that are kept between calls: h11 on asyncio's transports.

The HTTP library gives each request a place in a pool, locks, traces and a dozen layers of generators, which
cost a short call more than all the rest of it. A call needs none of them: it writes one request and reads one
answer. The errors are the library's, so that whoever handles those handles these.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final, cast

import h11
import httpx2

from shared.upstream.connection.limits import KEPT_CONNECTIONS, KEPT_SECONDS

type Headers = Sequence[tuple[bytes, bytes]]

#: Bytes of an answer that wait to be read at which the server is held up.
_MANY: Final = 1 << 18
#: Bytes of an answer's head.
_HEAD: Final = 100 * 1024
#: Seconds that an attempt to reach one address of a server has before the next one is tried beside it.
_NEXT_ADDRESS: Final = 0.25
_CLOSED: Final = "The connection was closed."


class KeptConnection(asyncio.Protocol):
    """One connection. One request at a time: `send`, then `part` until None, then `renew`."""

    def __init__(self, read_seconds: float | None) -> None:
        """`read_seconds`: of silence while an answer is waited for; None: as long as its call may take."""
        self._seconds = read_seconds
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._unread = 0
        self._held_up = False
        self._ended = False
        self._error: Exception | None = None
        #: When it became idle; None while a request is under way.
        self.idle_since: float | None = self._loop.time()
        self.lost: asyncio.Future[None] = self._loop.create_future()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.idle_since is not None:
            # Nobody has asked: a server says something before it leaves. It answers nothing that comes next.
            self.abort()
            return
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > _MANY and not self._held_up:
            self._held_up = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._error = exc
        self._end()
        if not self.lost.done():
            self.lost.set_result(None)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if self._error is None:
                self._http.receive_data(b"")
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # What a request does.

    async def send(self, target: bytes, headers: Headers, body: bytes) -> h11.Response:
        """POST. The head of the answer. Raises httpx2's `TransportError`; `LocalProtocolError`: not sent.

        What it writes leaves in one piece: a server that is woken by a head alone is woken twice.
        """
        self.idle_since = None
        http = self._http
        try:
            length = (b"Content-Length", b"%d" % len(body))
            head = http.send(h11.Request(method=b"POST", target=target, headers=[*headers, length]))
            rest = http.send(h11.Data(data=body))
            http.send(h11.EndOfMessage())
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from None
        # Not waited for: there is nothing more to write, and a server may answer before it has read all of it.
        self._transport.write(b"".join((head or b"", rest or b"")))
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise httpx2.RemoteProtocolError("The server answered with something that is no HTTP answer.")

    async def part(self) -> bytes | None:
        """Some of the answer's body; None at its end. Raises httpx2's `TransportError`."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def _event(self) -> Any:
        http = self._http
        while True:
            state = http.their_state
            try:
                event = http.next_event()
            except h11.RemoteProtocolError as error:
                nothing = self._ended and state is h11.SEND_RESPONSE and not http.trailing_data[0]
                text = "Server disconnected without sending a response." if nothing else str(error)
                raise httpx2.RemoteProtocolError(text) from None
            if event is not h11.NEED_DATA:
                return event
            if self._ended:
                raise httpx2.ReadError(_text_of(self._error))
            self._unread = 0
            if self._held_up:
                self._held_up = False
                self._transport.resume_reading()
            await self._more()

    async def _more(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            if self._seconds is None:
                await self._waiter
                return
            async with asyncio.timeout(self._seconds):
                await self._waiter
        except TimeoutError:
            raise httpx2.ReadTimeout("") from None
        finally:
            self._waiter = None

    # Between requests.

    def renew(self) -> bool:
        """Whether it can take another request: the answer was read whole, and nobody has ended it."""
        http = self._http
        if self._ended or (http.our_state, http.their_state) != (h11.DONE, h11.DONE) or http.trailing_data[0]:
            return False
        http.start_next_cycle()
        self._unread = 0
        if self._held_up:
            self._held_up = False
            self._transport.resume_reading()
        self.idle_since = self._loop.time()
        return True

    @property
    def usable(self) -> bool:
        """Of an idle one: whether it is still open, as far as can be known here, and fresh."""
        since = self.idle_since
        fresh = since is not None and not self._ended and self._loop.time() - since < KEPT_SECONDS
        return fresh and not _is_readable(self._transport)

    def abort(self) -> None:
        """Closes it at once. What it holds is let go of."""
        self._ended = True
        self._transport.abort()


class KeptConnections:
    """Those to one server, of one event loop. `context`: for TLS; None: none."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext | None,
        *,
        connect_seconds: float | None,
        read_seconds: float | None,
    ) -> None:
        self._host = host
        self._port = port
        self._context = context
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._open: set[KeptConnection] = set()
        #: The one that was used last stands last.
        self._idle: list[KeptConnection] = []
        self._closed = False
        #: Those that are being opened.
        self._opening: set[asyncio.Task[KeptConnection]] = set()
        self._clocks: set[asyncio.Timeout] = set()

    async def take(self) -> KeptConnection:
        """An idle connection, else a new one. `httpx2.ConnectError`, `httpx2.ConnectTimeout`: nothing was
        sent."""
        if self._closed:
            raise httpx2.ConnectError(_CLOSED)
        while self._idle:
            found = self._idle.pop()
            if found.usable:
                return found
            self.drop(found)
        return await self._connected()

    def give_back(self, connection: KeptConnection) -> None:
        """Keeps it for the next request where that can be, else closes it."""
        if len(self._idle) >= KEPT_CONNECTIONS or not connection.renew():
            self.drop(connection)
            return
        while self._idle and not self._idle[0].usable:
            self.drop(self._idle.pop(0))
        self._idle.append(connection)

    def drop(self, connection: KeptConnection) -> None:
        connection.abort()

    async def close(self) -> None:
        """Closes all of them, for good: what is being opened is given up, and nothing is sent on it."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for clock in self._clocks:
            if not clock.expired():
                clock.reschedule(now)
        if self._opening:
            await asyncio.wait(set(self._opening))
        self._idle.clear()
        left = [*self._open]
        for connection in left:
            connection.abort()
        if left:
            await asyncio.wait([one.lost for one in left])

    async def _connected(self) -> KeptConnection:
        """A new connection. When its caller is cancelled, the next one finds it.

        asyncio's race between addresses must not be cancelled: a socket that has just won it stays open then.
        """
        opening = asyncio.create_task(self._opened())
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._left)
            raise

    def _left(self, opening: asyncio.Task[KeptConnection]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            return
        found = opening.result()
        if self._closed or len(self._idle) >= KEPT_CONNECTIONS:
            self.drop(found)
        else:
            self._idle.append(found)

    async def _opened(self) -> KeptConnection:
        loop = asyncio.get_running_loop()
        more: dict[str, Any] = {}
        if self._context is not None:
            more["ssl"] = self._context
        if isinstance(loop, asyncio.BaseEventLoop):  # others may not know of it
            more["happy_eyeballs_delay"] = _NEXT_ADDRESS
        try:
            async with asyncio.timeout(self._connect_seconds) as clock:
                self._clocks.add(clock)
                try:
                    _, made = await loop.create_connection(
                        lambda: KeptConnection(self._read_seconds), self._host, self._port, **more
                    )
                finally:
                    self._clocks.discard(clock)
        except TimeoutError as error:
            if not clock.expired():
                raise httpx2.ConnectError(_text_of(error)) from None
            if self._closed:
                raise httpx2.ConnectError(_CLOSED) from None
            raise httpx2.ConnectTimeout("") from None
        except OSError as error:
            raise httpx2.ConnectError(_text_of(error)) from None
        self._open.add(made)
        made.lost.add_done_callback(lambda _: self._open.discard(made))
        if self._closed:
            made.abort()
            raise httpx2.ConnectError(_CLOSED)
        return made


def _is_readable(transport: asyncio.Transport) -> bool:
    """Whether something has come that the loop has not handed on yet: with nothing asked, that is an end."""
    number = transport.get_extra_info("socket").fileno()
    if number < 0:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


def _text_of(error: Exception | None) -> str:
    """What the system says of an error, without addresses: asyncio puts those into its own words."""
    if isinstance(error, ssl.SSLError | socket.gaierror) and error.strerror:
        return error.strerror  # their numbers are none of the system's
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno else "All attempts to connect have failed."
    return str(error or _CLOSED)
