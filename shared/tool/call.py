"""Who is calling, and in which invocation: what a tool may know of the MCP call that it answers.

A tool takes it as a parameter annotated `ToolCall`. Request headers carry keys and tokens, so only the names on
an allow-list get through.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from shared.redaction import is_secret_key
from shared.tool.spec import JsonObject

#: Headers a tool may see; TOOLBOX_TOOL_HEADERS adds names to them.
ALLOWED_HEADERS: Final = frozenset(
    {
        "accept-language",
        "mcp-protocol-version",
        "traceparent",
        "tracestate",
        "user-agent",
        "x-correlation-id",
        "x-request-id",
    }
)
#: Never let through, whatever the setting says: keys, tokens, and what the platform says of the caller. Nor are
#: other headers whose names say that they hold a secret.
FORBIDDEN_HEADERS: Final = ("authorization", "cookie", "proxy-", "x-functions-key", "x-mcp-auth-token", "x-ms-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Facts of one call. A job sees those of the call that made it."""

    #: The tool's name as the client wrote it.
    tool_name: str = ""
    owner: str = ""
    session_id: str | None = None
    #: `name` and `version`, where the client's are known.
    client_info: JsonObject | None = None
    transport: str = ""
    #: Allowed headers, names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)
    invocation_id: str = ""
    function_name: str = ""
    #: W3C trace context.
    trace_parent: str = ""
    trace_state: str = ""

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger of the app whose lines carry the invocation's id."""
        return _Correlated(logging.getLogger(f"toolbox.tool.{self.tool_name}"), {"id": self.invocation_id})

    def to_json(self) -> JsonObject:
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, data: JsonObject) -> ToolCall:
        return cls(**data)


#: Whose request is answered here, for resources: their functions are not told.
caller: ContextVar[str] = ContextVar("toolbox_caller", default="")


class _Correlated(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        return f"[{(self.extra or {}).get('id')}] {msg}", kwargs


def call_of(
    request: JsonObject, headers: Mapping[str, object], owner: str, invocation: Any, more: frozenset[str]
) -> ToolCall:
    """The facts in a trigger's payload. `invocation`: the worker's invocation context, if there is one.

    Sources: the payload of `mcpToolTrigger` and `azure.functions.Context`.
    """
    transport = request.get("transport")
    client = request.get("clientinfo")
    session = request.get("sessionid")
    trace = getattr(invocation, "trace_context", None)
    return ToolCall(
        tool_name=str(request.get("name", "")),
        owner=owner,
        session_id=session if isinstance(session, str) and session else None,
        client_info=client if isinstance(client, dict) else None,
        transport=str(transport.get("name", "")) if isinstance(transport, dict) else "",
        headers=visible_headers(headers, more),
        invocation_id=str(getattr(invocation, "invocation_id", "") or ""),
        function_name=str(getattr(invocation, "function_name", "") or ""),
        trace_parent=str(getattr(trace, "trace_parent", "") or ""),
        trace_state=str(getattr(trace, "trace_state", "") or ""),
    )


def headers_of(transport: object) -> dict[str, object]:
    """The request headers in the `transport` of a trigger's payload."""
    found = transport
    for key in ("properties", "headers"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def visible_headers(headers: Mapping[str, object], more: frozenset[str]) -> dict[str, str]:
    """The headers that a tool may see, by lower-case name."""
    allowed = ALLOWED_HEADERS | more
    return {
        name.lower(): value
        for name, value in headers.items()
        if isinstance(value, str) and name.lower() in allowed and not _is_forbidden(name)
    }


def _is_forbidden(name: str) -> bool:
    return name.lower().startswith(FORBIDDEN_HEADERS) or is_secret_key(name)
