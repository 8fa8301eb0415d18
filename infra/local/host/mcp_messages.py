"""Reading a POST to the MCP endpoint: Accept, session id, the JSON-RPC message. No I/O."""

from __future__ import annotations

import functools
from typing import Any

from infra.local.host import wire


class BadMessageError(Exception):
    """The body is not a JSON-RPC message: the real host's reader throws, so the answer is an empty 500."""


def parse_message(body: bytes, content_type: str) -> dict[str, Any] | None:
    """A JSON-RPC message, None for JSON ``null``. Raises BadMessageError."""
    media, _, parameters = content_type.partition(";")
    media = media.strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise BadMessageError(f"content type {content_type!r} is not JSON")
    charset = "utf-8"
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"')
    try:
        message = wire.loads(body.decode(charset))
    except (ValueError, LookupError) as error:
        raise BadMessageError(f"not JSON: {error}") from None
    if message is None:
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise BadMessageError("not a JSON-RPC 2.0 object")
    if "method" in message:
        if not isinstance(message["method"], str):
            raise BadMessageError("method is not a string")
    elif "id" not in message or not ("result" in message or "error" in message):
        raise BadMessageError("neither a request nor a response")
    if "id" in message and not _valid_id(message["id"]):
        raise BadMessageError("id is neither a string nor an integer")
    return message


def _valid_id(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, str) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def valid_session(value: str | None) -> bool:
    """Absent, empty, or exactly two non-empty parts around a ``|`` (the unencrypted form)."""
    if not value:
        return True
    parts = value.split("|")
    return len(parts) == 2 and all(parts)


@functools.lru_cache(maxsize=256)
def accepts_both(accept: str) -> bool:
    """Whether an Accept header matches application/json and also text/event-stream, wild cards included."""
    ranges = {item.partition(";")[0].strip().lower() for item in accept.split(",")}
    return bool(ranges & {"application/json", "application/*", "*/*"}) and bool(
        ranges & {"text/event-stream", "text/*", "*/*"}
    )


@functools.lru_cache(maxsize=512)
def title_case(name: str) -> str:
    """A header's name as tools see it. The HTTP server lower-cases names, so the client's own case is lost."""
    return "-".join(part.capitalize() for part in name.split("-"))
