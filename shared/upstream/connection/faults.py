"""What went wrong between us and a server -> one error of the project's tree, in words that hold no secret.

A transport tells of a failure as a JSON-RPC error of the request that it hit, with a `Failure` in its data: one
request fails, its neighbours go on. The mark in the data keeps a server from forging one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import httpx2

from shared.upstream.connection.limits import ERROR_TEXT, MIB

#: The request has not left this machine when one of these is raised.
_NOT_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)
_MARK: Final = f"toolbox-{secrets.token_hex(8)}"


class FailureKind(StrEnum):
    STATUS = "status"  # an HTTP answer that is an error
    GONE = "gone"  # 404 with a session's id: the session is not known any more
    NETWORK = "network"  # no answer, or not all of it
    SIZE = "size"  # the answer is too large to be taken
    CONTENT = "content"  # an answer that is no message of the protocol


@dataclass(frozen=True, slots=True)
class Failure:
    """`sent`: False when the server certainly has not begun with the request."""

    kind: FailureKind
    text: str
    status: int | None = None
    sent: bool = True

    def data(self) -> dict[str, Any]:
        return {_MARK: asdict(self)}

    @staticmethod
    def of(data: object) -> Failure | None:
        """The failure in a JSON-RPC error's data, if a transport of ours has put one there."""
        if not isinstance(data, Mapping) or not isinstance(fields := data.get(_MARK), Mapping):
            return None
        return Failure(FailureKind(fields["kind"]), fields["text"], fields["status"], fields["sent"])

    @property
    def may_be_sse(self) -> bool:
        """Whether an older server of HTTP with SSE may live there (specification, backwards compatibility).

        400 is left out: a server that says more about a bad request than that it is one must be heard.
        """
        return self.kind is FailureKind.STATUS and self.status in (404, 405)


class OpeningError(Exception):
    """A connection could not be opened. `failure`: what the transport met."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class NotSentError(Exception):
    """The request could not be handed to the server: it has not begun with it."""


def status_failure(status: int, body: str = "", content_type: str = "", *, session: bool = False) -> Failure:
    """`body`: the first of the answer. `session`: whether the request named a session."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "unknown"
    text = f"HTTP {status} {phrase}"
    if status == 401:
        text += " (the server asks for credentials, or does not accept the configured ones)"
    elif status == 403:
        text += " (the configured credentials may not do this)"
    if said := _snippet(body, content_type):
        text += f": {said}"
    if status == 404 and session:
        return Failure(FailureKind.GONE, "the server does not know the session any more", status, sent=False)
    # An answer of 401, 403, 404 or 405 refuses the request; one of 5xx may come from the middle of it.
    return Failure(FailureKind.STATUS, text, status, sent=status >= 500)


def network_failure(error: Exception) -> Failure:
    kind = type(error).__name__
    said = one_line(str(error), 200)
    return Failure(
        FailureKind.NETWORK, f"{kind}: {said}" if said else kind, sent=not isinstance(error, _NOT_SENT)
    )


def too_large(limit: int, size: int | None = None) -> Failure:
    is_it = f"is {_mib(size)}" if size else "has more than that"
    return Failure(FailureKind.SIZE, f"the answer {is_it}; at most {_mib(limit)} are taken")


def wrong_content(content_type: str) -> Failure:
    kind = content_type.partition(";")[0].strip()[:80] or "no content type"
    return Failure(FailureKind.CONTENT, f"the answer is {kind}, not JSON or an event stream: is the URL right?")


def no_answer() -> Failure:
    return Failure(FailureKind.CONTENT, "what came in the place of the answer answers another request, or none")


def unwritable() -> Failure:
    text = "the arguments cannot be written as JSON in UTF-8 (half of a surrogate pair, or too many levels)"
    return Failure(FailureKind.CONTENT, text, sent=False)


def leaf(error: BaseException) -> BaseException:
    """The first plain error inside groups, and inside groups of groups: the one that tells."""
    while isinstance(error, BaseExceptionGroup):
        plain = [one for one in error.exceptions if not isinstance(one, BaseExceptionGroup)]
        error = plain[0] if plain else error.exceptions[0]
    return error


def one_line(text: str, most: int = ERROR_TEXT) -> str:
    """A text of somebody else's inside a sentence of ours: one line, without control characters, cut."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    plain = " ".join(plain.split())
    return plain if len(plain) <= most else f"{plain[:most]}…"


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB" if size >= MIB else f"{size} bytes"


_TITLE: Final = re.compile(r"<title[^>]*>(.{1,200}?)</title>", re.IGNORECASE | re.DOTALL)


def _snippet(body: str, content_type: str) -> str:
    if "html" in content_type.lower() or body.lstrip()[:1] == "<":
        title = _TITLE.search(body)
        return f"a page titled '{one_line(title[1], 100)}'" if title else "a page" if body.strip() else ""
    return one_line(body, 300)
