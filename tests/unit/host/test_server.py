"""The HTTP server's answers leave in one piece each, and none is kept back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from infra.local.host.server import Protocol, WholeAnswers

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Transport:
    """Notes what is written to it."""

    def __init__(self) -> None:
        self.done: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done


def whole(transport: Transport) -> WholeAnswers:
    return WholeAnswers(cast("asyncio.Transport", transport))


@pytest.mark.parametrize(
    ("written", "done"),
    [
        ([HEAD, b"{}"], [HEAD + b"{}"]),
        ([HEAD, b"{}", HEAD, b"[]"], [HEAD + b"{}", HEAD + b"[]"]),
        ([HEAD, b""], [HEAD]),
        ([HEAD, b"{", b"}"], [HEAD + b"{", b"}"]),
        ([b"{}"], [b"{}"]),
        ([HEAD, HEAD], [HEAD + HEAD]),
    ],
)
def test_a_head_leaves_with_its_body(written: list[bytes], done: list[bytes]) -> None:
    async def main() -> None:
        transport = Transport()
        answers = whole(transport)
        for data in written:
            answers.write(data)
        assert transport.done == done
        await asyncio.sleep(0)
        assert transport.done == done

    asyncio.run(main())


def test_a_head_without_a_body_waits_for_nothing() -> None:
    """An answer to HEAD, 304, or `100 Continue`."""

    async def main() -> None:
        transport = Transport()
        answers = whole(transport)
        answers.write(HEAD)
        assert transport.done == []
        await asyncio.sleep(0)
        assert transport.done == [HEAD]
        answers.write(HEAD)
        assert not answers.is_closing()
        answers.close()
        await asyncio.sleep(0)
        assert transport.done == [HEAD, HEAD, "closed"]

    asyncio.run(main())


def test_a_head_is_not_written_to_a_client_that_has_gone() -> None:
    """uvloop raises then, in a callback of nobody's."""

    async def main() -> None:
        transport = Transport()
        answers = whole(transport)
        answers.write(HEAD)
        transport.close()
        await asyncio.sleep(0)
        assert transport.done == ["closed"]

    asyncio.run(main())


@pytest.mark.parametrize("verb", ["GET", "HEAD"])
def test_the_server_writes_so(verb: str) -> None:
    """Through uvicorn's own protocol: what a client is sent for one request, piece by piece."""
    import uvicorn

    async def app(scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"{}"})

    class Wire(Transport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return default

    async def main() -> list[bytes | str]:
        config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)
        config.load()
        server = uvicorn.Server(config)
        wire = Wire()
        protocol = Protocol(config=config, server_state=server.server_state, app_state={})
        protocol.connection_made(wire)
        protocol.data_received(f"{verb} / HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        for task in [*server.server_state.tasks]:
            await task
        await asyncio.sleep(0)
        done = [*wire.done]
        protocol.connection_lost(None)
        return done

    (piece,) = asyncio.run(main())
    assert isinstance(piece, bytes)
    assert piece.endswith(b"\r\n\r\n{}" if verb == "GET" else b"\r\n\r\n")
