"""HTTP/1.1 as far as a proxy before Azurite needs it: whole messages, and what a storage request is called."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

#: Operations by method on one thing, where nothing else in the target tells more.
_ENTITY: Final = {"GET": "get", "PUT": "update", "PATCH": "merge", "MERGE": "merge", "DELETE": "delete"}
_MESSAGES: Final = {"POST": "send", "GET": "receive", "PUT": "renew", "DELETE": "delete"}
_THINGS: Final = {"PUT": "create", "GET": "get", "HEAD": "head", "DELETE": "delete", "POST": "create"}


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer. `head` ends with its empty line; `body` is as on the wire, chunks included."""

    head: bytes
    body: bytes
    closes: bool

    @property
    def raw(self) -> bytes:
        return self.head + self.body

    @property
    def first_half(self) -> bytes:
        """The head and half of the body; half of the head when there is no body."""
        return self.head + self.body[: len(self.body) // 2] if self.body else self.head[: len(self.head) // 2]

    @property
    def method(self) -> str:
        return self._word(0)

    @property
    def target(self) -> str:
        return self._word(1)

    @property
    def status(self) -> int:
        return int(self._word(1))

    def _word(self, number: int) -> str:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")[number]


async def read_message(reader: asyncio.StreamReader, *, bodyless: bool = False) -> Message | None:
    """The next message; None when the connection has ended instead. Raises EOFError when it ends within one.

    `bodyless`: the answer to a HEAD request, which tells a length and has no body.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    closes = fields.get("connection", "").lower() == "close"
    is_answer = first.startswith("HTTP/")
    if bodyless or (is_answer and first.split(" ")[1] in ("204", "304")):
        body = b""
    elif "chunked" in fields.get("transfer-encoding", ""):
        body = await _chunks(reader)
    elif "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    elif is_answer:
        body, closes = await reader.read(), True
    else:
        body = b""
    return Message(head, body, closes)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    found = []
    size = -1
    while size != 0:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        found += [line, await reader.readexactly(size + 2)]
    return b"".join(found)


def operation_of(service: str, method: str, target: str) -> str:
    """What a storage request does, in a word or two. `target`: "/ACCOUNT/…?…", as the emulator has it."""
    path, _, query_text = target.partition("?")
    query = {name: values[0] for name, values in parse_qs(query_text).items()}
    parts = unquote(path).split("/")[2:]
    last = parts[-1] if parts else ""
    if service == "table":
        if last == "$batch":
            return "transaction"
        if last.startswith("Tables"):
            return f"{_THINGS.get(method, method)} table"
        if last.endswith("()"):
            return "query"
        return _ENTITY.get(method, method) if "(" in last else "insert"
    if service == "queue":
        if "messages" in parts[1:2]:
            return "peek" if "peekonly" in query else _MESSAGES.get(method, method)
        return f"{_THINGS.get(method, method)} queue"
    if query.get("restype") == "container":
        return f"{_THINGS.get(method, method)} container"
    return {"PUT": "put"}.get(method) or _THINGS.get(method, method)


def refusal(service: str, status: int, retry_after: int | None) -> bytes:
    """An answer that a busy storage service gives, in the service's own form."""
    code = "TooManyRequests" if status == HTTPStatus.TOO_MANY_REQUESTS else "ServerBusy"
    text = "The server is busy."
    if service == "table":
        kind = "application/json;odata=minimalmetadata"
        body = json.dumps({"odata.error": {"code": code, "message": {"lang": "en-US", "value": text}}})
    else:
        kind = "application/xml"
        body = (
            f'<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'
        )
    fields = {"Content-Type": kind, "Content-Length": str(len(body)), "x-ms-error-code": code}
    if retry_after is not None:
        fields["Retry-After"] = str(retry_after)
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}\r\n{body}".encode()
