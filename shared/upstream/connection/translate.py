"""The SDK's, a transport's or the system's error -> one of the project's tree: with the server's name, no
secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp.shared.exceptions import MCPError as WireError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import ValidationError

from shared.errors import MCPConnectionError, MCPError, MCPProtocolError, MCPToolNotFoundError
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.faults import Failure, FailureKind, NotSentError, OpeningError, leaf, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

#: How the SDK's transport says that an answer will not come.
_BROKEN_STREAM: Final = "SSE stream"
_TOO_LARGE: Final = re.compile(r"exceeded the \d+ byte limit")
_NO_SUCH_TOOL: Final = re.compile(
    r"unknown tool|no such tool|tool\b.{0,200}\bnot found", re.IGNORECASE | re.DOTALL
)


def opening_error(
    error: BaseException, server: str, command: str | None, redact: Callable[[str], str]
) -> MCPError:
    """Why a connection could not be opened, or its lists not be read."""
    error = leaf(error)
    if isinstance(error, MCPError):
        return error
    if isinstance(error, WireError) and Failure.of(error.error.data) is None:
        if error.code == CONNECTION_CLOSED and error.message == "Connection closed":
            return MCPConnectionError(f"Server '{server}' ended before it was ready.", server, command)
        said = redact(one_line(error.message))
        text = f"Server '{server}' refused the connection: {said} (code {error.code})."
        return MCPProtocolError(text, server, error.code)
    if isinstance(error, ValidationError):
        return MCPProtocolError(f"Server '{server}' did not answer the handshake as the protocol says.", server)
    failure = error.failure if isinstance(error, OpeningError) else None
    if isinstance(error, WireError):
        failure = Failure.of(error.error.data)
    why = failure.text if failure is not None else _plain(error)
    return MCPConnectionError(f"Server '{server}' cannot be reached: {redact(why)}.", server, command)


def request_error(
    error: Exception,
    server: str,
    command: str | None,
    what: str,
    tool: str | None,
    redact: Callable[[str], str],
) -> MCPError:
    """Why one request failed. `what`: it, as part of a sentence; `tool`: the one that was called, if it was
    that.

    A connection that is lost is the caller's to tell of: only it knows how it ended.
    """
    error_code = error.code if isinstance(error, WireError) else None
    failure = Failure.of(error.error.data) if isinstance(error, WireError) else None
    if failure is not None:
        return _failed(failure, server, command, what, redact)
    if isinstance(error, NotSentError):
        return DeadConnectionError(
            f"Server '{server}' is no longer available: {error}.", server, command, sent=False
        )
    if isinstance(error, OSError):
        why = f"{what} met {redact(_plain(error))}; what came of it is unknown"
        text = f"Server '{server}' is no longer available: {why}."
        return DeadConnectionError(text, server, command, sent=True)
    if not isinstance(error, WireError):
        return MCPProtocolError(f"Server '{server}': {what} failed: {redact(_plain(error))}.", server)
    if error_code == CONNECTION_CLOSED and error.message.startswith(_BROKEN_STREAM):
        if _TOO_LARGE.search(error.message):
            return MCPProtocolError(f"Server '{server}': {what} failed: the answer is too large.", server)
        text = (
            f"Server '{server}' is no longer available: it broke off during {what}; what came of it is unknown."
        )
        return DeadConnectionError(text, server, command, sent=True)
    if (
        tool is not None
        and error_code in (INVALID_PARAMS, METHOD_NOT_FOUND)
        and _NO_SUCH_TOOL.search(error.message)
    ):
        return MCPToolNotFoundError(tool, server)
    said = redact(one_line(error.message)) or "no reason given"
    return MCPProtocolError(
        f"Server '{server}' refused {what}: {said} (code {error_code}).", server, error_code
    )


def _failed(
    failure: Failure, server: str, command: str | None, what: str, redact: Callable[[str], str]
) -> MCPError:
    text = redact(failure.text)
    match failure.kind:
        case FailureKind.GONE:
            return DeadConnectionError(
                f"Server '{server}' is no longer available: {text}.", server, command, sent=False
            )
        case FailureKind.NETWORK:
            unknown = "; what came of it is unknown" if failure.sent else ""
            return DeadConnectionError(
                f"Server '{server}' is no longer available: {what} met {text}{unknown}.",
                server,
                command,
                sent=failure.sent,
            )
        case FailureKind.STATUS:
            return MCPConnectionError(f"Server '{server}' refused {what}: {text}.", server, command)
        case FailureKind.SIZE | FailureKind.CONTENT:
            return MCPProtocolError(f"Server '{server}': {what} failed: {text}.", server)


def _plain(error: BaseException) -> str:
    kind = type(error).__name__
    said = one_line(str(error), 200)
    return f"{kind}: {said}" if said else kind
