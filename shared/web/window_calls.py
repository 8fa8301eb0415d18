"""What a window's page may ask of the APIs: methods that read, and those that its contract names.

A call runs under the job's own connections, as if the tool had made it headless; the page never sees a token,
and never names a host. Request headers are not taken from it: some of them act for somebody else.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import traceback
from dataclasses import dataclass
from typing import Any, Final

from shared import apis, storage
from shared.apis import methods
from shared.apis.connections.environments import Environments
from shared.apis.naming import near
from shared.apis.operation import HEADERS, TARGET
from shared.errors import CallError, InputError, ResultError, ToolError
from shared.jobs.model import utc_now
from shared.jobs.unforeseen import describe
from shared.jobs.windowing import Inside
from shared.text import kind_of, shape_of
from shared.tool.context import Context, running
from shared.tool.json_form import dumps, to_json
from shared.tool.spec import JsonObject, ToolSpec

_LOG = logging.getLogger(__name__)

#: Seconds that one call may take: a person waits, and so does the front end.
CALL_SECONDS: Final = 60.0
MOST_ARGS: Final = 16
FIELDS: Final = ("api", "method", "args", "target")
#: Bytes of an answer's JSON.
MOST_ANSWER: Final = 8 * 1024 * 1024
#: Need no connection.
_HELPERS: Final = (f"{methods.DATAVERSE}.buildLabel", f"{methods.DATAVERSE}.getAttributeODataType")


class NotAllowedError(CallError):
    code = "not_allowed"
    default = "The window may not call this."


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call as a page asks for it."""

    #: `dataverseAPI.queryData`, `powerplatformAPI.PowerApps.Get`.
    name: str
    args: tuple[Any, ...]
    target: str | int | None


def parse(body: JsonObject) -> ApiCall:
    """`{api, method, args?, target?}`. Raises `InputError`."""
    api, method = (_text(body, name) for name in ("api", "method"))
    if api not in (methods.DATAVERSE, methods.POWER_PLATFORM):
        raise InputError(
            f"api: must be one of {methods.DATAVERSE}, {methods.POWER_PLATFORM}, got another string"
        )
    args = body.get("args", [])
    if not isinstance(args, list) or len(args) > MOST_ARGS:
        raise InputError(f"args: must be a list of at most {MOST_ARGS} values, got {shape_of(args)}")
    target = body.get("target")
    if target is not None and (isinstance(target, bool) or not isinstance(target, str | int)):
        raise InputError(
            f"target: must be a connection's slot, 'primary', 'secondary' or a number, got {kind_of(target)}"
        )
    return ApiCall(f"{api}.{method}", tuple(args), target)


def check_allowed(asked: ApiCall, spec: ToolSpec) -> None:
    """Raises `InputError` for what is no method, `NotAllowedError` for one that this page may not call."""
    if asked.name not in methods.OFFERED:
        raise InputError(
            f"method: '{asked.name[:100]}' is none that a window can call" + near(asked.name, methods.READING)
        )
    if asked.name not in methods.READING and asked.name not in spec.rules.window_methods:
        raise NotAllowedError(
            f"'{asked.name}' may change data, and this tool's windows may not call it; its contract can allow "
            "it with agents.window.apiMethods"
        )


class WindowCalls:
    """Carries calls out. `environments`: where connections are found."""

    def __init__(self, environments: Environments) -> None:
        self._environments = environments

    async def run(self, asked: ApiCall, spec: ToolSpec, inside: Inside) -> bytes:
        """`{"value": …}` as JSON. Raises `CallError`, and `ToolError` with a text for the page."""
        check_allowed(asked, spec)
        redact = inside.redactor
        try:
            value = await self._value(asked, spec, inside)
            body = dumps({"value": to_json(value)}).encode()
        except (CallError, ResultError):
            raise
        except ToolError as error:
            raise ToolError(redact(error.message)) from None
        except TimeoutError:
            raise ToolError(f"{asked.name} took longer than a window's call may") from None
        except Exception as error:
            trace = redact("".join(traceback.format_exception(error)))
            _LOG.warning("job %s: %s of its window has failed: %s", inside.job.job_id, asked.name, trace)
            raise ToolError(redact(describe(spec.name, error))) from None
        if len(body) > MOST_ANSWER:
            raise ToolError(
                f"The answer to {asked.name} has {len(body)} bytes; a window takes {MOST_ANSWER}. "
                "Ask for fewer rows or columns."
            )
        if asked.name not in methods.READING:
            _LOG.info("job %s: its window has called %s", inside.job.job_id, asked.name)
        return body

    async def _value(self, asked: ApiCall, spec: ToolSpec, inside: Inside) -> Any:
        method = _method(asked.name)
        given = _bound(method, asked)
        job = inside.job
        connections = await storage.run(
            self._environments.of_ids, inside.given.connections, job.owner, job.tool_name
        )
        if not connections and asked.name not in _HELPERS:
            raise ToolError("This window has no connection. Call the tool with a saved connectionName.")
        seconds = min((job.window_until - utc_now()).total_seconds(), CALL_SECONDS)
        context = Context(
            tool_id=job.tool_id,
            tool_name=job.tool_name,
            invocation_mode=job.mode,
            execution_mode=job.execution_mode,
            correlation_id=job.correlation_id,
            job_id=job.job_id,
            timeout_ms=job.timeout_ms,
            owner=job.owner,
            arguments=inside.given.arguments,
            connections=connections,
            project=inside.given.project,
            deadline=time.monotonic() + seconds,
        )

        async def work() -> Any:
            running(lambda: context)
            value = method(**given)
            return await value if inspect.isawaitable(value) else value

        # A task of its own: what is set in its context ends with it.
        async with asyncio.timeout(seconds):
            return await asyncio.create_task(work())


def _method(name: str) -> Any:
    api, *steps = name.split(".")
    found = getattr(apis, api)
    for step in steps:
        found = getattr(found, step)
    return found


def _bound(method: Any, asked: ApiCall) -> dict[str, Any]:
    """The arguments by name. Raises `InputError` for such as the method does not have."""
    signature = inspect.signature(method)
    named = {} if asked.target is None else {TARGET: asked.target}
    try:
        bound = signature.bind(*asked.args, **named).arguments
    except TypeError as error:
        raise InputError(f"args: {asked.name} {error}") from None
    for name in (HEADERS, "headers"):
        if bound.pop(name, None):
            raise NotAllowedError("args: additional headers are not taken from a window")
    return bound


def _text(body: JsonObject, name: str) -> str:
    value = body.get(name)
    if isinstance(value, str) and 0 < len(value) <= 100:
        return value
    raise InputError(f"{name}: must be a text of 1 to 100 characters, got {shape_of(value)}")
