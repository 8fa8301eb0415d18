"""One `resources/read` or `prompts/get`: the trigger's payload in, the host's string out.

The host hides what an exception says (`-32603 An error occurred.`) and neither method has an error result of
its own. So the reason of a failure is logged, redacted, and the host is given an exception that holds nothing
of it. Only what a caller of a prompt can put right is answered in words, as the prompt's one message.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from azure.functions import PromptInvocationContext

from shared import auth
from shared.errors import CallError, ResultError, SettingsError, ToolboxError, ToolError
from shared.redaction import Redactor
from shared.settings import Settings
from shared.tool import prompts, resources
from shared.tool.call import caller, headers_of
from shared.tool.prompts import DecoratedPrompt
from shared.tool.resources import DecoratedResource
from shared.tool.threads import ThreadPool

_LOG = logging.getLogger(__name__)

#: Clients give up after 60 s; nothing waits here for a longer one.
TIMEOUT_S: Final = 60.0
THREADS: Final = 8

_pool = ThreadPool(THREADS, "resource-or-prompt")


def resource_trigger(entry: DecoratedResource, settings: Settings) -> Callable[[str], Awaitable[str]]:
    """The function behind a resource's trigger."""
    spec = entry.spec

    async def read(payload: str) -> str:
        redact = Redactor()
        try:
            request = json.loads(payload)
            headers = headers_of(request.get("transport"))
            redact = Redactor((), headers)
            caller.set(auth.owner_of_call(headers, settings))
            uri = str(request["uri"])
            return resources.contents(spec, uri, await _run(entry.function, _values(entry, uri)))
        except Exception as error:
            _log(f"resource '{spec.name}'", error, redact)
        # Outside of the handler, so that the reason is not chained to it.
        raise CallError(f"The resource '{spec.name}' could not be read; the app's log has the reason.")

    return read


def prompt_trigger(
    entry: DecoratedPrompt, settings: Settings
) -> Callable[[PromptInvocationContext], Awaitable[str]]:
    """The function behind a prompt's trigger."""
    spec = entry.spec

    async def get(payload: PromptInvocationContext) -> str:
        redact = Redactor()
        try:
            headers = headers_of(payload.transport)
            redact = Redactor((), headers)
            caller.set(auth.owner_of_call(headers, settings))
            arguments = prompts.check_arguments(spec, payload.arguments)
            return prompts.messages(spec, await _run(entry.function, arguments))
        except Exception as error:
            if isinstance(error, CallError | ToolError) and not isinstance(error, ResultError):
                return prompts.messages(spec, redact(error.message))
            _log(f"prompt '{spec.name}'", error, redact)
        raise CallError(f"The prompt '{spec.name}' could not be made; the app's log has the reason.")

    return get


def _values(entry: DecoratedResource, uri: str) -> Mapping[str, str]:
    if not entry.spec.uri.names:
        return {}
    try:
        return entry.spec.uri.values(uri)
    except ValueError as error:
        raise CallError(str(error)) from None


async def _run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the function returns. Raises what it raises, and `TimeoutError` after `TIMEOUT_S`."""
    call = functools.partial(function, **arguments)
    try:
        async with asyncio.timeout(TIMEOUT_S) as deadline:
            value = call() if inspect.iscoroutinefunction(function) else await _pool.run(call)
            # A synchronous function may still have returned an awaitable.
            return await value if inspect.isawaitable(value) else value
    except TimeoutError:
        if deadline.expired():
            raise TimeoutError(f"it took longer than {TIMEOUT_S:g} s") from None
        raise


def _log(what: str, error: Exception, redact: Redactor) -> None:
    """Our own errors in one line, the author's with their traceback."""
    if isinstance(error, ToolboxError):
        level = logging.ERROR if isinstance(error, SettingsError | ResultError) else logging.WARNING
        _LOG.log(level, "%s: %s", what, redact(error.message))
    else:
        _LOG.error("%s: %s", what, redact("".join(traceback.format_exception(error))))
