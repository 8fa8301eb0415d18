"""Calls of a streamable HTTP server, posted past the HTTP client and its layers.

What the handshake, lists, notifications and the server's own stream need of the client, they get from it: it
finds proxies, keeps cookies, follows redirects. A call asks for none of that. It takes its headers from the
client once, for as long as they stay the same, writes its request on a kept connection and reads the answer
where it comes in. An answer that is anything out of the ordinary goes the client's way from there on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self, cast

import httpx2

from shared.upstream.connection.kept import KeptConnections
from shared.upstream.connection.limits import MESSAGE_BYTES

if TYPE_CHECKING:
    import ssl

    import h11

    from shared.upstream.connection.http import GuardedClient
    from shared.upstream.connection.kept import Headers, KeptConnection

#: Seconds that the end of an answered stream is waited for.
NEAR: Final = 0.05
_PORTS: Final = {"http": 80, "https": 443}


class DirectPosts:
    """POSTs to one URL. Belongs to the event loop that it is used on; `close` it."""

    def __init__(self, url: httpx2.URL, client: GuardedClient, connections: KeptConnections) -> None:
        self._url = url
        self._target = url.raw_path
        self._client = client
        self._connections = connections
        self._given: tuple[tuple[str, str], ...] = ()
        self._headers: Headers = ()

    @classmethod
    def to(cls, url: httpx2.URL, client: GuardedClient, context: ssl.SSLContext | None) -> Self | None:
        """None where the way goes through a proxy, which the client knows how to do.

        Which way the client takes is not public: where that is not found, it takes all requests.
        """
        way = getattr(client, "_transport_for_url", None)
        if way is None or way(url) is not getattr(client, "_transport", None):
            return None
        port = url.port or _PORTS.get(url.scheme)
        if port is None or (url.scheme == "https") is (context is None):
            return None
        timeout = client.timeout
        connections = KeptConnections(
            url.raw_host.decode("ascii"),
            port,
            context,
            connect_seconds=timeout.connect,
            read_seconds=timeout.read,
        )
        return cls(url, client, connections)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> DirectAnswer:
        """The head of the answer: `end` it. Raises httpx2's `TransportError`."""
        own = self._own_headers(headers)
        connection = await self._connections.take()
        try:
            response = await connection.send(self._target, own, body)
        except BaseException:
            self._connections.drop(connection)
            raise
        answer = DirectAnswer(response, connection, self._connections)
        if b"set-cookie" in answer.headers:
            self._client.cookies.extract_cookies(answer.as_response(self._request(headers, body)))
        return answer

    def _own_headers(self, given: Mapping[str, str]) -> Headers:
        """With those of the client, which are the same for the same ones given while there are no cookies."""
        key = tuple(given.items())
        cookies = any(True for _ in self._client.cookies.jar)
        if key != self._given or cookies:
            raw = self._request(given, b"").headers.raw
            self._headers = [(name, value) for name, value in raw if name.lower() != b"content-length"]
            self._given = () if cookies else key
        return self._headers

    def _request(self, headers: Mapping[str, str], body: bytes) -> httpx2.Request:
        return self._client.build_request("POST", self._url, headers=dict(headers), content=body)

    async def unusual(self, answer: DirectAnswer, headers: Mapping[str, str], body: bytes) -> AnsweredClient:
        """The answer as the client would give it, errors made into messages: for whoever asks a client."""
        request = self._request(headers, body)
        return AnsweredClient(await self._client.judged(request, answer.as_response(request)), self._client)

    async def close(self) -> None:
        await self._connections.close()


class DirectAnswer:
    """The head of an answer, and its body for who reads it: once, to its end or not."""

    def __init__(self, head: h11.Response, connection: KeptConnection, connections: KeptConnections) -> None:
        self.status = head.status_code
        self.headers: dict[bytes, bytes] = dict(head.headers)
        self._head = head
        self._connection = connection
        self._connections = connections
        self._read = False
        self._given_back = False

    @property
    def content_type(self) -> str:
        """What of it can be read here: without an encoding, and of UTF-8. Empty where it cannot."""
        kind, _, parameters = self.headers.get(b"content-type", b"").lower().partition(b";")
        plain = self.headers.get(b"content-encoding", b"identity").lower() == b"identity"
        if not plain or (b"charset" in parameters and b"utf-8" not in parameters):
            return ""
        return kind.strip().decode("latin-1")

    @property
    def declared(self) -> int | None:
        """Bytes of the body, if the head says so."""
        length = self.headers.get(b"content-length")
        return None if length is None else int(length)

    async def part(self) -> bytes | None:
        """Some of the body; None at its end. Raises httpx2's `TransportError`."""
        found = None if self._read else await self._connection.part()
        self._read = found is None
        return found

    async def whole(self) -> bytes | None:
        """All of the body; None when it has more than a message may have."""
        parts: list[bytes] = []
        size = 0
        while (part := await self.part()) is not None:
            size += len(part)
            if size > MESSAGE_BYTES:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def end(self, *, near: bool = False) -> None:
        """Gives the connection back. `near`: the end of the body is waited for, if it comes soon: a stream ends
        a moment after the message that was asked for, and a new connection costs more than that moment."""
        if self._given_back:
            return
        self._given_back = True
        try:
            if near and not self._read:
                with contextlib.suppress(TimeoutError, httpx2.TransportError):
                    async with asyncio.timeout(NEAR):
                        while await self.part() is not None:
                            pass
        finally:
            self._connections.give_back(self._connection)

    def as_response(self, request: httpx2.Request) -> httpx2.Response:
        """The same as the client's."""
        return httpx2.Response(
            self.status,
            headers=self._head.headers.raw_items(),
            stream=_Body(self),
            request=request,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": self._head.reason},
        )


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: DirectAnswer) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._answer.part()) is not None:
            yield part

    async def aclose(self) -> None:
        await self._answer.end()


class AnsweredClient:
    """Stands in the place of a client whose answer has come already.

    What is asked of it after that, the client is asked for: an event stream that ends early is resumed.
    """

    def __init__(self, response: httpx2.Response, client: GuardedClient) -> None:
        self._response: httpx2.Response | None = response
        self._client = client
        self.max_redirects = client.max_redirects

    def build_request(self, *given: Any, **options: Any) -> httpx2.Request:
        if self._response is not None:
            return self._response.request
        return self._client.build_request(*given, **options)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response, self._response = self._response, None
        return response if response is not None else await self._client.send(request, **options)

    @property
    def as_client(self) -> httpx2.AsyncClient:
        return cast("httpx2.AsyncClient", self)
