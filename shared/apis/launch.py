"""The launch context: what an invocation was started with, in the form of the contract."""

from __future__ import annotations

import copy

from shared.errors import NoInvocationError
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.context import Context, running_context
from shared.tool.spec import JsonObject, Mode

#: Where an invocation comes from. Child invocations name their parent tool instead.
SOURCE = "mcp"


def current(what: str) -> Context:
    """The running invocation. Raises `NoInvocationError` that names `what` was asked for outside of one."""
    context = running_context()
    if context is None:
        raise NoInvocationError(
            f"{what} is only available inside a tool's invocation. In a thread of your own, run the code in a "
            "copy of the invocation's context: contextvars.copy_context().run(function)."
        )
    return context


def launch_context(context: Context) -> JsonObject:
    """The call's input with how it is run under `__pptb`. A copy: the tool may change it.

    `{…input, "__pptb": {source, mode, correlationId, timeoutMs, expectsResponse}}`; timeoutMs in milliseconds.
    """
    return {
        **copy.deepcopy(context.arguments),
        ENVELOPE_KEY: {
            "source": SOURCE,
            "mode": str(context.invocation_mode),
            "correlationId": context.correlation_id,
            "timeoutMs": context.timeout_ms,
            "expectsResponse": context.invocation_mode is Mode.TWO_WAY,
        },
    }
