"""One JSON-RPC request as the handlers of the MCP methods see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_types import INTERNAL_ERROR

from infra.local.host import wire
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

GENERIC_ERROR: Final = "An error occurred."


class RpcError(Exception):
    """A JSON-RPC error answer (HTTP 200, in the SSE body)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Call:
    """One request: its params and what the handlers need of the HTTP request."""

    __slots__ = ("headers", "params", "session_id")

    def __init__(self, params: Any, headers: Mapping[str, str], session_id: str | None) -> None:
        self.params = params
        self.headers = headers
        self.session_id = session_id

    def mapping(self) -> dict[str, Any]:
        """The params as an object; anything else fails as in the C# reader."""
        if not isinstance(self.params, dict):
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        return self.params

    def text(self, key: str) -> str:
        """A required string of the params."""
        value = self.mapping().get(key)
        if not isinstance(value, str):
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        return value

    def payload(self, fields: Mapping[str, Any]) -> Value:
        """The trigger value: the fields, then session and transport; a JSON string with nulls left out."""
        transport: dict[str, Any] = {"name": "http-streamable"}
        data = dict(fields)
        if self.session_id:
            data["sessionid"] = transport["sessionId"] = self.session_id
        transport["properties"] = {"headers": self.headers}
        data["transport"] = transport
        return Value(Kind.STRING, wire.dumps_plain(data))


type Handler = "Callable[[Call], Awaitable[dict[str, Any]]]"
