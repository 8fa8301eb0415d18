"""$batch: the multipart body, change sets as transactions, Content-ID references, and the answer's body."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from infra.local.dataverse.call import Answer, Call, parse_query
from infra.local.dataverse.errors import ApiError, bad_payload, bad_query
from infra.local.dataverse.values import new_guid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from infra.local.dataverse.store import Store

MAX_PARTS: Final = 1000
MAX_URL: Final = 65_536
_BOUNDARY: Final = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_PREFIX: Final = re.compile(r"^(?:https?://[^/]+)?/api/data/v\d+\.\d+/")
_REFERENCE: Final = re.compile(r"\$(\w+)")
_BODY_REFERENCE: Final = re.compile(rb'"\$(\w+)"')


@dataclass(frozen=True, slots=True)
class Part:
    """A request within a batch, before references in it are resolved."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    content_id: str | None


type Item = Part | list[Part]  # a list is a change set
type Send = Callable[[Call], Answer]


def parse_batch(content_type: str, body: bytes) -> list[Item]:
    """The parts of a batch. Raises ApiError (400)."""
    items: list[Item] = []
    for headers, content in _multipart(content_type, body):
        kind = headers.get("content-type", "")
        if kind.startswith("multipart/mixed"):
            items.append([_request(inner, data) for inner, data in _multipart(kind, content)])
        else:
            items.append(_request(headers, content))
    if sum(len(item) if isinstance(item, list) else 1 for item in items) > MAX_PARTS:
        raise bad_query(f"The number of requests in the batch exceeds the limit of {MAX_PARTS}.")
    return items


def run_batch(call: Call, store: Store, send: Send) -> Answer:
    """Run a batch; `send` answers one call and never raises. Raises ApiError for a malformed one."""
    items = parse_batch(call.headers.get("content-type", ""), call.body)
    onward = "odata.continue-on-error" in call.prefer
    name = f"batchresponse_{new_guid()}"
    parts: list[bytes] = []
    status = 200
    for item in items:
        if isinstance(item, list):
            failed, text = _change_set(call, item, store, send)
        else:
            answer = send(_call(call, item, {}))
            failed = None if answer.status < 400 else answer
            text = _http(answer, item.content_id)
        parts.append(text)
        if failed is not None and not onward:
            status = failed.status
            break
    body = b"".join(b"--%b\r\n%b\r\n" % (name.encode(), part) for part in parts) + b"--%b--\r\n" % name.encode()
    return Answer(status, body, media=f"multipart/mixed; boundary={name}")


class _RollBackError(Exception):
    def __init__(self, answer: Answer, content_id: str | None) -> None:
        super().__init__()
        self.answer = answer
        self.content_id = content_id


def _change_set(call: Call, items: list[Part], store: Store, send: Send) -> tuple[Answer | None, bytes]:
    """The answer that failed, if one did, and the bytes of the whole part."""
    name = f"changesetresponse_{new_guid()}"
    made: dict[str, str] = {}
    parts: list[bytes] = []
    try:
        with store.transaction():
            for item in items:
                try:
                    if item.method == "GET":
                        raise bad_query("A GET request is not allowed within a change set.")
                    inner = _call(call, item, made)
                except ApiError as error:
                    raise _RollBackError(Answer(error.status, error.body()), item.content_id) from None
                answer = send(inner)
                if answer.status >= 400:
                    raise _RollBackError(answer, item.content_id)
                if item.content_id is not None:
                    made[item.content_id] = answer.headers.get("OData-EntityId") or answer.headers.get(
                        "Location", ""
                    )
                parts.append(_http(answer, item.content_id))
    except _RollBackError as failure:
        return failure.answer, _http(failure.answer, failure.content_id)
    body = b"".join(b"--%b\r\n%b\r\n" % (name.encode(), part) for part in parts)
    head = b"Content-Type: multipart/mixed; boundary=%b\r\n\r\n" % name.encode()
    return None, head + body + b"--%b--\r\n" % name.encode()


def _call(outer: Call, part: Part, made: dict[str, str]) -> Call:
    url = part.url
    if match := _REFERENCE.match(url):
        url = _referenced(match[1], made) + url[match.end() :]
    if len(url) > MAX_URL:
        raise bad_query("The URL of a request in the batch is too long.")
    path, _, query = _PREFIX.sub("", url).removeprefix("/").partition("?")
    body = part.body
    for name in dict.fromkeys(match[1].decode() for match in _BODY_REFERENCE.finditer(body)):
        body = body.replace(f'"${name}"'.encode(), f'"{_referenced(name, made)}"'.encode())
    return Call(part.method, path, outer.root, parse_query(query), part.headers, body)


def _referenced(name: str, made: dict[str, str]) -> str:
    if name not in made:
        raise bad_query(f"Content-ID Reference: '${name}' does not exist in the batch context.")
    return made[name]


def _http(answer: Answer, content_id: str | None) -> bytes:
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    if content_id is not None:
        lines.append(f"Content-ID: {content_id}")
    lines += ["", f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    if answer.body is not None:
        lines.append(f"Content-Type: {answer.media}")
    lines.append("OData-Version: 4.0")
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + answer.content + b"\r\n"


def _multipart(content_type: str, body: bytes) -> Iterable[tuple[dict[str, str], bytes]]:
    match = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/mixed") or match is None:
        raise ApiError(
            400, "0x80048d19", "The batch request must have Content-Type multipart/mixed with a boundary."
        )
    mark = b"--" + (match[1] or match[2]).encode()
    if re.search(re.escape(mark) + rb"\n", body):
        # What the real service says of bare line feeds.
        raise bad_payload("", "System.ArgumentException: Stream was not readable.")
    pieces = re.split(rb"(?:^|\r\n)" + re.escape(mark), body)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise bad_query("The multipart body does not end with its closing boundary.")
    for piece in pieces[1:-1]:
        head, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        yield _headers(head), content


def _request(headers: dict[str, str], data: bytes) -> Part:
    head, _, body = data.partition(b"\r\n\r\n")
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if headers.get("content-type", "").partition(";")[0] != "application/http" or len(words) != 3:
        raise bad_query("A part of the batch is no application/http request.")
    if words[1].endswith("$batch"):
        raise bad_query("A batch cannot contain another batch.")
    inner = _headers(rest)
    content_id = headers.get("content-id") or inner.get("content-id")
    return Part(words[0].upper(), words[1], inner, body.removesuffix(b"\r\n"), content_id)


def _headers(head: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.decode("latin-1").split("\r\n") if line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
