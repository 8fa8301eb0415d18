"""`toolboxAPI.invocation`: the running call, and calls of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.apis.bridge import blocking, on_own_loop, settled
from shared.apis.launch import current, launch_context
from shared.apis.ports import launcher
from shared.apis.ports import use_launcher as use_launcher
from shared.apis.record import wrap
from shared.apis.toolbox.ready import Ready, ready
from shared.apis.toolbox.spelling import TwoSpellings
from shared.errors import ToolError
from shared.text import kind_of
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.context import RETURNED, running_context

_WHAT: Final = "toolboxAPI.invocation"


class InvocationApi(TwoSpellings):
    """Outside of an invocation only `get_launch_context` has an answer: None."""

    def get_launch_context(self) -> Ready | None:
        """The running call's input and options (see `shared.apis.launch`); None outside of an invocation."""
        context = running_context()
        return None if context is None else ready(launch_context(context))

    def return_data(self, data: Mapping[str, Any]) -> Any:
        """Gives the call's result, for a function that returns None. The first one counts."""
        context = current(f"{_WHAT}.returnData")
        if not isinstance(data, Mapping):
            raise ToolError(f"{_WHAT}.returnData: expected an object, got {kind_of(data)}")
        context.state.setdefault(RETURNED, dict(data))
        return settled(None)

    def launch_tool(
        self, tool: str, prefill: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls another tool of the app and gives its result. `options`: `__pptb` of that call.

        It runs for the same owner; calls may be nested a few levels deep. Raises `ToolError` with its text.
        """
        context = current(f"{_WHAT}.launchTool")
        if not isinstance(tool, str):
            raise ToolError(f"{_WHAT}.launchTool: tool must be a tool's name, not {kind_of(tool)}")
        for name, value in (("prefill", prefill), ("options", options)):
            if not isinstance(value, Mapping | None):
                raise ToolError(f"{_WHAT}.launchTool: {name} must be an object, not {kind_of(value)}")
        arguments = {**(prefill or {}), **({ENVELOPE_KEY: dict(options)} if options else {})}

        async def launch() -> Any:
            return wrap(await launcher().launch(context, tool, arguments))

        return on_own_loop(launch)

    def find_tools_by_capability(self, capability: str | Sequence[str]) -> Any:
        """`[{toolId, toolName, title, description, capabilities}]`."""
        wanted = [capability] if isinstance(capability, str) else list(capability)
        current(f"{_WHAT}.findToolsByCapability")
        return blocking(lambda: wrap(launcher().find(wanted)))

    def get_known_capability_tags(self) -> Any:
        current(f"{_WHAT}.getKnownCapabilityTags")
        return blocking(lambda: launcher().capabilities())


def tool_context() -> Ready:
    """`{toolId, toolName, connectionId, …, invocationContext: {source, mode, expectsResponse}}`."""
    context = current("toolboxAPI.getToolContext()")
    how = launch_context(context)[ENVELOPE_KEY]
    return ready(
        {
            "toolId": context.tool_id,
            "toolName": context.tool_name,
            "connectionId": context.connectionId,
            "connectionUrl": context.connectionUrl,
            "connectionName": context.connectionName,
            "connectionIds": context.connectionIds,
            "connectionNames": context.connectionNames,
            "connectionUrls": context.connectionUrls,
            "invocationContext": {name: how[name] for name in ("source", "mode", "expectsResponse")},
        }
    )
