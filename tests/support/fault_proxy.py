"""A proxy before Azurite that loses, delays, cuts and refuses by plan, and counts every request.

    with FaultProxy(azurite.ports, seed=7) as proxy:
        rule = proxy.arm(LOSE_ANSWER, r"table POST .*/\\$batch", nth=2)
        store = TableJobStore(Storage(proxy.connection_string))

A rule looks at "SERVICE METHOD TARGET" (service: blob, queue or table; target: path and query), and at the
body if told to. It fires at the n-th request that it matches, or with a probability. Whether it fires at its
n-th match depends on the seed, the rule's place and n alone: a plan runs the same whatever else goes on.

Requests are passed on unchanged: a shared-key signature covers the path and some headers, not the address.
Bodies are held in memory. `Expect: 100-continue` is not understood; the Azure SDKs do not send it.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
import struct
import threading
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Self

from infra.local.azurite import Ports, connection_string
from infra.local.dev.ports import LOOPBACK
from tests.support.fault_plan import Fault, Kind, Rule
from tests.support.http_messages import Message, operation_of, read_message, refusal

SERVICES: Final = ("blob", "queue", "table")
#: Seconds after which a connection to Azurite is not used again: it drops them after 5.
IDLE: Final = 2.0
_NO_LINGER = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Seen:
    """One request. `status` is the real answer's; None when there was none (yet)."""

    service: str
    method: str
    target: str
    operation: str
    size: int
    fault: Kind | None
    status: int | None = None
    answer_size: int = 0


@dataclass(slots=True)
class _Upstream:
    """A kept connection to the real service."""

    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    used: float = field(default=0.0)

    async def ask(self, request: Message) -> Message:
        reader, writer = await self._connection()
        writer.write(request.raw)
        await writer.drain()
        answer = await read_message(reader, bodyless=request.method == "HEAD")
        if answer is None:
            raise ConnectionResetError("the service closed the connection")
        self.used = time.monotonic()
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.reader is not None and self.writer is not None:
            if time.monotonic() - self.used < IDLE and not self.reader.at_eof():
                return self.reader, self.writer
            self.writer.close()
        self.reader, self.writer = await asyncio.open_connection(LOOPBACK, self.port)
        return self.reader, self.writer

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class FaultProxy:
    """Runs on a thread of its own while its `with` block lasts. All methods may be called from any thread."""

    def __init__(self, targets: Ports, *, seed: int = 0) -> None:
        self.ports: Ports = (0, 0, 0)
        self._targets = targets
        self._seed = seed
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._armed = 0
        self._seen: list[Seen] = []
        self._clients: set[asyncio.Task[object]] = set()
        self._started: Future[tuple[Ports, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="fault-proxy", daemon=True
        )

    @property
    def connection_string(self) -> str:
        return connection_string(self.ports)

    def arm(
        self,
        fault: Fault,
        pattern: str,
        *,
        nth: int | tuple[int, ...] = (),
        probability: float = 0.0,
        body: bytes | None = None,
    ) -> Rule:
        """Adds a rule; the first rule that fires decides. `nth` counts matches of this rule, from 1."""
        numbers = frozenset((nth,) if isinstance(nth, int) else nth)
        with self._lock:
            self._armed += 1
            seed = f"{self._seed}/{self._armed}"
            wanted = None if body is None else re.compile(body)
            rule = Rule(fault, re.compile(pattern), wanted, numbers, probability, seed)
            self._rules.append(rule)
        return rule

    def disarm(self) -> None:
        """From here on everything is passed on."""
        with self._lock:
            self._rules.clear()

    def seen(self) -> list[Seen]:
        """Every request since the last `forget`, in the order in which they came."""
        with self._lock:
            return list(self._seen)

    def counts(self) -> Counter[str]:
        """How many requests by "SERVICE METHOD OPERATION", such as "table POST transaction"."""
        return Counter(f"{one.service} {one.method} {one.operation}" for one in self.seen())

    def forget(self) -> None:
        with self._lock:
            self._seen.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        self.ports = self._started.result()[0]
        return self

    def __exit__(self, *_: object) -> None:
        _, loop, stop = self._started.result()
        loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        stop = asyncio.Event()
        servers = []
        try:
            for service, target in zip(SERVICES, self._targets, strict=True):
                serve = functools.partial(self._serve_client, service, target)
                servers.append(await asyncio.start_server(serve, LOOPBACK, 0))
            blob, queue, table = (server.sockets[0].getsockname()[1] for server in servers)
        except BaseException as error:
            self._started.set_exception(error)
            raise
        self._started.set_result(((blob, queue, table), asyncio.get_running_loop(), stop))
        await stop.wait()
        # A connection that asyncio has accepted but not handed over yet would leak when its server is closed:
        # no new ones are taken, those on their way arrive, then all are ended.
        for server in servers:
            for listener in server.sockets:
                asyncio.get_running_loop().remove_reader(listener.fileno())
        while asyncio.all_tasks() - self._clients - {asyncio.current_task()}:
            await asyncio.sleep(0)
        for server in servers:
            server.close()
            server.abort_clients()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _serve_client(
        self, service: str, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        client = asyncio.current_task()
        assert client is not None
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)
        upstream = _Upstream(target)
        try:
            while (request := await read_message(reader)) is not None:
                if not await self._exchange(service, request, upstream, writer):
                    break
        except (OSError, EOFError):
            _reset(writer)  # either side has gone: the other one learns it
        finally:
            upstream.close()
            writer.close()

    async def _exchange(
        self, service: str, request: Message, upstream: _Upstream, writer: asyncio.StreamWriter
    ) -> bool:
        """One request and its answer. Whether the client's connection goes on."""
        seen, fault = self._note(service, request)
        if fault is not None and fault.kind is Kind.RESET:
            _reset(writer)
            return False
        if fault is not None and fault.kind is Kind.REFUSE:
            writer.write(refusal(service, fault.status, fault.retry_after))
            await writer.drain()
            return True
        answer = await upstream.ask(request)
        with self._lock:
            seen.status, seen.answer_size = answer.status, len(answer.body)
            if seen.operation == "receive" and b"<QueueMessage>" not in answer.body:
                seen.operation = "poll"
        sent, goes_on = answer.raw, not answer.closes
        match fault and fault.kind:
            case Kind.LOSE_ANSWER:
                _reset(writer)
                return False
            case Kind.DELAY if fault is not None:
                await asyncio.sleep(fault.seconds)
            case Kind.TRUNCATE:
                sent, goes_on = answer.first_half, False
        writer.write(sent)
        await writer.drain()
        return goes_on

    def _note(self, service: str, request: Message) -> tuple[Seen, Fault | None]:
        method, target = request.method, request.target
        line = f"{service} {method} {target}"
        with self._lock:
            # Every rule counts its matches, also those that an earlier rule decides.
            fired = [rule.fault for rule in self._rules if rule.fires(line, request.body)]
            fault = fired[0] if fired else None
            operation = operation_of(service, method, target)
            seen = Seen(service, method, target, operation, len(request.body), fault.kind if fault else None)
            self._seen.append(seen)
        return seen, fault


def _reset(writer: asyncio.StreamWriter) -> None:
    """Ends the connection with RST: nothing that is on its way is delivered."""
    found = writer.get_extra_info("socket")
    if found is not None and found.fileno() != -1:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()
