"""The methods tools/list and tools/call."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from infra.local.host import wire
from infra.local.host.mcp_call import GENERIC_ERROR, RpcError
from infra.local.host.mcp_result import ResultError, error_result, tool_result
from infra.local.host.mcp_schema import missing_required
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.host.invoker import Invoker
    from infra.local.host.mcp_call import Call, Handler
    from infra.local.host.mcp_schema import Tool

logger = logging.getLogger("host.mcp")


class Tools:
    """The app's tools, by lower-case name."""

    def __init__(self, tools: Mapping[str, Tool], invoker: Invoker) -> None:
        self._tools = tools
        self._invoker = invoker
        self._list = {"tools": [tool.entry for tool in tools.values()]}

    def handlers(self) -> dict[str, Handler]:
        """The methods by name."""
        return {"tools/list": self._list_tools, "tools/call": self._call_tool}

    async def _list_tools(self, call: Call) -> dict[str, Any]:
        return self._list

    async def _call_tool(self, call: Call) -> dict[str, Any]:
        name = call.text("name")
        arguments = call.mapping().get("arguments")
        if not isinstance(arguments, dict | None):
            raise RpcError(INTERNAL_ERROR, GENERIC_ERROR)
        tool = self._tools.get(name.lower())
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: '{name}'")
        if missing := missing_required(tool.required, arguments or {}):
            text = "One or more required tool properties are missing values. Please provide: "
            raise RpcError(INVALID_PARAMS, text + ", ".join(missing))
        fields: dict[str, Any] = {"name": name}
        if arguments is not None:
            fields["arguments"] = arguments
        function = tool.function
        outcome = await self._invoker.run(
            function,
            call.payload(fields),
            inputs=_property_inputs(tool, arguments or {}) if function.inputs else (),
            data=_binding_data(call, fields) if function.outputs else None,
        )
        if not outcome.ok:
            return error_result(name)
        try:
            return tool_result(outcome.returned, use_result_schema=tool.use_result_schema)
        except ResultError as error:
            logger.error("The result of tool '%s' cannot be sent: %s", tool.name, error)
            return error_result(name)


def _property_inputs(tool: Tool, arguments: Mapping[str, Any]) -> list[tuple[str, Value | None]]:
    """Values of ``mcpToolProperty`` bindings: one argument each, as a string."""
    values: list[tuple[str, Value | None]] = []
    for binding in tool.function.inputs:
        item = arguments.get(binding.text("propertyName"))
        values.append((binding.name, None if item is None else Value(Kind.STRING, wire.dotnet_text(item))))
    return values


def _binding_data(call: Call, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What ``{...}`` expressions in output bindings may name."""
    arguments = fields.get("arguments", {})
    texts = {key: wire.dotnet_text(item) for key, item in arguments.items()}
    return {**fields, "mcptoolargs": texts, "mcpsessionid": call.session_id or ""}
