"""The MCP endpoint, /runtime/webhooks/mcp: stateless streamable HTTP exactly as the real extension answers it.

One POST, one message. The order of the checks, the status codes and the texts come from the extension's source.
"""

from __future__ import annotations

import logging
import random
import string
from typing import TYPE_CHECKING, Any, Final

from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, InitializeRequestParams, SetLevelRequestParams
from pydantic import ValidationError
from starlette.responses import PlainTextResponse, Response

from infra.local.host import wire
from infra.local.host.asgi import Endpoint, collect_headers, given_key, read_body
from infra.local.host.keys import Verdict
from infra.local.host.mcp_call import GENERIC_ERROR, Call, RpcError
from infra.local.host.mcp_messages import (
    BadMessageError,
    accepts_both,
    parse_message,
    title_case,
    valid_session,
)
from infra.local.host.mcp_prompts import Prompts, build_prompts
from infra.local.host.mcp_resources import Resources, build_resources
from infra.local.host.mcp_schema import build_tools
from infra.local.host.mcp_tools import Tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from infra.local.host.catalogue import Catalogue
    from infra.local.host.config import McpOptions
    from infra.local.host.invoker import Invoker
    from infra.local.host.keys import Keys
    from infra.local.host.mcp_call import Handler

logger = logging.getLogger("host.mcp")

PATH: Final = "/runtime/webhooks/mcp"
PROTOCOL_VERSIONS: Final = frozenset({"2024-11-05", "2025-03-26", "2025-06-18"})
LATEST_VERSION: Final = "2025-06-18"
CALLER_ERROR: Final = -32000
NOT_ACCEPTABLE: Final = "Not Acceptable: Client must accept both application/json and text/event-stream"
NO_MESSAGE: Final = "Bad Request: The POST body did not contain a valid JSON-RPC message."

_SSE_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache,no-store"),
    (b"connection", b"keep-alive"),
    (b"content-encoding", b"identity"),
]
_ALPHABET: Final = string.ascii_lowercase + string.digits


class EventResponse(Response):
    """One event of an SSE stream. Without a Content-Length, which the real host does not send either."""

    def __init__(self, text: str) -> None:
        super().__init__(f"event: message\ndata: {text}\n\n".encode("ascii"))

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """The same for every answer; what is special to one is appended."""
        self.raw_headers = list(_SSE_HEADERS)


class McpEndpoint:
    """The endpoint and everything below it."""

    def __init__(
        self, handlers: Mapping[str, Handler], options: McpOptions, keys: Keys, body_limit: int
    ) -> None:
        self._options = options
        self._keys = keys
        self._body_limit = body_limit
        self._instance = _token()
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": _nothing,
            "logging/setLevel": _set_level,
            "resources/subscribe": _nothing,
            "resources/unsubscribe": _nothing,
            **handlers,
        }

    async def respond(self, request: Request) -> Response:
        """Answer one request below /runtime/webhooks/mcp."""
        if self._keys.enforce and not self._options.anonymous:
            verdict = self._keys.for_mcp(given_key(request))
            if verdict is not Verdict.ALLOWED:
                return Response(status_code=verdict)
        path: str = request.scope["path"].rstrip("/").lower()
        if path.endswith(("sse", "message")):
            return PlainTextResponse("Legacy SSE is not part of this host.", 501)
        if request.method != "POST":
            return Response(status_code=405)
        headers = collect_headers(request)
        if not accepts_both(headers.get("accept", "")):
            return _caller_error(406, NOT_ACCEPTABLE)
        session = headers.get("mcp-session-id")
        if not valid_session(session):
            return _caller_error(400, "Invalid client state.")
        return await self._post(request, headers, session or None)

    async def _post(self, request: Request, raw: dict[str, str], session: str | None) -> Response:
        body = await read_body(request, self._body_limit)
        try:
            message = parse_message(body, raw.get("content-type", ""))
        except BadMessageError as error:
            logger.error("POST to the MCP endpoint: %s", error)
            return Response(status_code=500)
        if message is None:
            return _caller_error(400, NO_MESSAGE)
        if "method" not in message or "id" not in message:
            return Response(status_code=202)
        method = message["method"]
        call = Call(message.get("params"), {title_case(key): item for key, item in raw.items()}, session)
        response = EventResponse(await self._answer(method, call, message["id"]))
        if method == "initialize":
            response.raw_headers.append((b"mcp-session-id", f"{_token()}|{self._instance}".encode()))
        return response

    async def _answer(self, method: str, call: Call, request_id: str | int) -> str:
        """The JSON-RPC answer; keys are in the order in which the real host writes them."""
        handler = self._handlers.get(method)
        try:
            if handler is None:
                raise RpcError(METHOD_NOT_FOUND, f"Method '{method}' is not available.")
            result = await handler(call)
            return wire.dumps({"result": result, "id": request_id, "jsonrpc": "2.0"})
        except RpcError as error:
            body = {"code": error.code, "message": error.message}
        except Exception:  # a fault of this host must still be one well-formed answer
            logger.exception("MCP method %s failed in the host", method)
            body = {"code": INTERNAL_ERROR, "message": GENERIC_ERROR}
        return wire.dumps({"error": body, "id": request_id, "jsonrpc": "2.0"})

    async def _initialize(self, call: Call) -> dict[str, Any]:
        try:
            wanted = InitializeRequestParams.model_validate(call.params).protocol_version
        except ValidationError:
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR) from None
        result: dict[str, Any] = {
            "protocolVersion": wanted if wanted in PROTOCOL_VERSIONS else LATEST_VERSION,
            "capabilities": {"logging": {}, "prompts": {}, "resources": {}, "tools": {}},
            "serverInfo": {"name": self._options.server_name, "version": self._options.server_version},
        }
        if self._options.instructions is not None:
            result["instructions"] = self._options.instructions
        return result


def build_endpoint(
    functions: Catalogue, invoker: Invoker, options: McpOptions, keys: Keys, body_limit: int
) -> Endpoint:
    """The ASGI app for an app's MCP triggers. Raises HostError for a trigger that cannot be registered."""
    handlers = {
        **Tools(build_tools(functions.of("mcpToolTrigger")), invoker).handlers(),
        **Resources(build_resources(functions.of("mcpResourceTrigger")), invoker).handlers(),
        **Prompts(build_prompts(functions.of("mcpPromptTrigger")), invoker).handlers(),
    }
    return Endpoint(McpEndpoint(handlers, options, keys, body_limit).respond)


async def _nothing(call: Call) -> dict[str, Any]:
    return {}


async def _set_level(call: Call) -> dict[str, Any]:
    try:
        SetLevelRequestParams.model_validate(call.params)
    except ValidationError:
        raise RpcError(INTERNAL_ERROR, GENERIC_ERROR) from None
    return {}


def _caller_error(status: int, message: str) -> Response:
    """An error before there is a JSON-RPC id: plain JSON, with the id written as an empty string."""
    error = {"error": {"code": CALLER_ERROR, "message": message}, "id": "", "jsonrpc": "2.0"}
    return Response(wire.dumps(error), status, media_type="application/json")


def _token() -> str:
    return "".join(random.choices(_ALPHABET, k=16))  # noqa: S311 - names a session, protects nothing
