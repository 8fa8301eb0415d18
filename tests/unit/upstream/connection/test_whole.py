"""A request is written in one piece, whatever it runs over."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
import httpx2
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from shared.upstream.connection.http import GuardedClient, client_options, open_http
from shared.upstream.connection.whole import send_whole_requests
from tests.support.upstream import server

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Noting(httpcore2.AsyncNetworkBackend, httpcore2.AsyncNetworkStream):
    """A network that notes what is written, and answers everything the same."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.layers: list[str] = []
        self._answers: list[bytes] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.layers.append(f"tcp {host}:{port}")
        return self

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.layers.append("tls")
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            self.written.append(buffer)
            self._answers.append(ANSWER)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        assert self._answers, "nothing was sent that could be answered"
        return self._answers.pop()

    async def aclose(self) -> None:
        return None


async def sent(scheme: str, *requests: tuple[str, bytes | None]) -> Noting:
    """What goes over the network for requests of a verb and a body each."""
    network = Noting()
    async with GuardedClient(**client_options(server(transport="http", url="https://a.example"), 5)) as client:
        transport = client._transport
        assert isinstance(transport, httpx2.AsyncHTTPTransport)
        transport._pool._network_backend = network
        send_whole_requests(client)
        for verb, body in requests:
            answer = await client.request(verb, f"{scheme}://a.example/mcp", content=body)
            assert answer.json() == {}
    return network


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("body", [b"{}", b"x" * 300_000, b"POST like a head\r\n\r\n", b"", None])
def test_a_post_is_one_write_and_whole(scheme: str, body: bytes | None) -> None:
    network = asyncio.run(sent(scheme, ("POST", body), ("POST", body)))
    assert len(network.written) == 2
    for written in network.written:
        head, _, rest = written.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /mcp HTTP/1.1\r\n")
        assert rest == (body or b"")
    assert ("tls" in network.layers) is (scheme == "https")


def test_other_requests_are_not_held_back() -> None:
    network = asyncio.run(sent("http", ("GET", None), ("DELETE", None)))
    assert [written.split(b" ")[0] for written in network.written] == [b"GET", b"DELETE"]


def test_a_connection_to_a_server_sends_so(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Noting()
    monkeypatch.setattr("httpcore2._async.connection_pool.AutoBackend", lambda: network)

    async def main() -> None:
        async with open_http(server(transport="http", url="http://127.0.0.1/mcp"), 5) as streams:
            request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
            await streams.write.send(SessionMessage(request))
            await asyncio.wait_for(streams.read.receive(), 5)

    asyncio.run(main())
    assert len(network.written) == 1
    assert network.written[0].endswith(b'"method":"tools/list"}')
