"""One MCP call: payload -> envelope -> inline or headless -> result.

The trigger's payload is parsed once. Whatever goes wrong becomes an `isError` answer with a text that helps:
the host would hide an exception's message.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import azure.functions as func

from shared import auth
from shared.contract.envelope import CallPlan, plan, split
from shared.errors import InputError, ResultError, SettingsError, ToolboxError
from shared.jobs import answers, keys
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.jobs.submit import submit
from shared.jobs.worker import describe
from shared.redaction import Redactor
from shared.settings import Settings
from shared.tool.call import ToolCall, call_of, headers_of
from shared.tool.context import Context, Sink
from shared.tool.execution import DeadlinePassedError, run_inline
from shared.tool.handler import Handler, ToolEntry
from shared.tool.result import ToolResult, envelope, failure
from shared.tool.spec import ExecutionMode, JsonObject, Mode, ToolSpec
from shared.tool.validation import kind_of

_LOG = logging.getLogger(__name__)


class Invoker:
    """Answers the MCP tool triggers. `store`: made at the first headless call, since inline ones need none."""

    def __init__(self, settings: Settings, sealer: Sealer, store: Callable[[], JobStore]) -> None:
        self._settings = settings
        self._sealer = sealer
        self._store = store

    def trigger(self, entry: ToolEntry) -> Callable[[str, func.Context], Awaitable[str]]:
        """The function behind a tool's trigger: payload string in, envelope string out."""

        async def call(payload: str, context: func.Context) -> str:
            result = await self.answer(entry, payload, context)
            try:
                return envelope(result)
            except ResultError as error:
                _LOG.warning("tool '%s': %s", entry.spec.name, error.message)
                return envelope(failure(error.message, errorCode=error.code))

        return call

    async def answer(
        self, entry: ToolEntry, payload: str, invocation: func.Context | None = None
    ) -> ToolResult:
        """The answer to one call. Never raises an `Exception`."""
        redact = Redactor()
        try:
            request = _parsed(payload)
            arguments = _arguments(request)
            headers = headers_of(request.get("transport")) if isinstance(request, dict) else {}
            own, asked = split(arguments)
            redact = Redactor((asked.auth_token,), headers)
            owner = auth.owner_of_call(headers, self._settings)
            handler = entry.load()
            checked = handler.check_input(own)
            how = plan(
                entry.spec,
                asked,
                max_timeout_ms=self._settings.max_timeout_ms,
                inline_timeout_ms=self._settings.inline_timeout_ms,
            )
            call: ToolCall | None = None
            if handler.needs_context:
                call = call_of(request, headers, owner, invocation, self._settings.tool_headers)
            if how.execution_mode is ExecutionMode.INLINE and how.mode is Mode.TWO_WAY:
                return await self._inline(handler, checked, how, owner, redact, call)
            return await self._job(handler, checked, how, owner, call)
        except SettingsError as error:
            _LOG.error("tool '%s': %s", entry.spec.name, error.message)
            return failure(error.message, errorCode=error.code)
        except ToolboxError as error:
            return failure(redact(error.message), errorCode=error.code)
        except Exception as error:
            _LOG.error("tool '%s': %s", entry.spec.name, redact("".join(traceback.format_exception(error))))
            return failure(
                f"The call of '{entry.spec.name}' could not be carried out ({type(error).__name__}). "
                "The server's log has the details."
            )

    async def _inline(
        self,
        handler: Handler,
        arguments: JsonObject,
        how: CallPlan,
        owner: str,
        redact: Redactor,
        call: ToolCall | None,
    ) -> ToolResult:
        name = handler.spec.name
        context = None if call is None else _context(handler.spec, how, owner, redact, call)
        try:
            return handler.finish(await run_inline(handler, arguments, context, how.timeout_ms))
        except DeadlinePassedError:
            text = f"Inline execution timed out after {how.timeout_ms} ms"
            if ExecutionMode.HEADLESS in handler.spec.rules.execution_modes:
                text += "; run it as a job with __pptb.executionMode 'headless'"
            return failure(text, errorCode="timeout")
        except ResultError as error:
            _LOG.warning("tool '%s': %s", name, redact(error.message))
            return failure(redact(error.message), errorCode=error.code)
        except ToolboxError as error:
            return failure(redact(error.message), errorCode=error.code)
        except Exception as error:
            _LOG.warning("tool '%s': %s", name, redact("".join(traceback.format_exception(error))))
            return failure(redact(describe(name, error)), errorCode="tool_error")

    async def _job(
        self, handler: Handler, arguments: JsonObject, how: CallPlan, owner: str, call: ToolCall | None
    ) -> ToolResult:
        handler.check_binding(arguments)
        store = self._store()
        job = await submit(
            handler.spec, arguments, how, owner=owner, store=store, sealer=self._sealer, call=call
        )
        if how.mode is Mode.ONE_WAY:
            return answers.acceptance(job)
        try:
            job = await answers.wait(job, store, self._settings.max_wait_ms)
            if not job.status.terminal:
                return answers.acceptance(job, wait_limit_ms=self._settings.max_wait_ms)
            return await answers.final(job, store)
        except ToolboxError as error:
            return answers.failed(job, error.message, error.code)
        except Exception as error:
            # The job stands all the same, so the answer says which it is.
            _LOG.error("job %s: its answer could not be read", job.job_id, exc_info=True)
            text = f"The job's answer could not be read ({type(error).__name__})."
            return answers.failed(job, text, ToolboxError.code)


def _context(spec: ToolSpec, how: CallPlan, owner: str, redact: Redactor, call: ToolCall) -> Context:
    """What an inline call's tool is told."""
    return Context(
        tool_id=spec.tool_id,
        tool_name=spec.name,
        invocation_mode=how.mode,
        execution_mode=how.execution_mode,
        correlation_id=f"mcp-{keys.new_job_id()}",
        timeout_ms=how.timeout_ms,
        owner=owner,
        auth_token=how.auth_token,
        call=call,
        sink=_LogSink(spec.name, redact),
    )


class _LogSink(Sink):
    """An inline call's reports: log lines go to the app's log, progress to nobody."""

    cancelled = False

    def __init__(self, tool_name: str, redact: Redactor) -> None:
        self._tool_name = tool_name
        self._redact = redact

    def progress(self, percent: object, message: object) -> None:
        return None

    def log(self, level: str, message: object) -> None:
        log = logging.getLogger(f"toolbox.tool.{self._tool_name}")
        number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        if log.isEnabledFor(number):
            log.log(number, "%s", self._redact(str(message)))


def _parsed(payload: str) -> Any:
    """The trigger's payload. The host has parsed the call already; only Python's own limits can refuse it."""
    try:
        return json.loads(payload)
    except (RecursionError, ValueError):
        raise InputError("arguments: nested too deeply, or a number with too many digits") from None


def _arguments(request: Any) -> JsonObject:
    """The call's arguments. The host leaves the key out when the client sent none."""
    found = request.get("arguments") if isinstance(request, dict) else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"arguments: expected object, got {kind_of(found)}")
    return found
