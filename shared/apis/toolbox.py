"""`toolboxAPI`: one object for every tool; each call sees its own invocation."""

from __future__ import annotations

from shared.apis.launch import current, launch_context
from shared.tool.context import running_context
from shared.tool.spec import JsonObject


class InvocationApi:
    """`toolboxAPI.invocation`."""

    def getLaunchContext(self) -> JsonObject | None:  # noqa: N802 - the contract's own spelling
        """The running call's input and options (see `shared.apis.launch`); None outside of an invocation."""
        context = running_context()
        return None if context is None else launch_context(context)

    get_launch_context = getLaunchContext


class ToolboxApi:
    """The API as tools see it, under the contract's own names and in snake_case."""

    def __init__(self) -> None:
        self.invocation = InvocationApi()

    def getToolContext(self) -> JsonObject:  # noqa: N802
        """Which tool runs, and how. Raises `NoInvocationError` outside of an invocation."""
        context = current("toolboxAPI.getToolContext()")
        how = launch_context(context)["__pptb"]
        return {
            "toolId": context.tool_id,
            "toolName": context.tool_name,
            "invocationContext": {name: how[name] for name in ("source", "mode", "expectsResponse")},
        }

    get_tool_context = getToolContext


toolboxAPI = ToolboxApi()  # noqa: N816 - the contract's own spelling
