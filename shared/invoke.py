"""One MCP call: payload -> envelope -> inline or headless -> result.

The trigger's payload is parsed once. Whatever goes wrong becomes an `isError` answer with a text that helps:
the host would hide an exception's message.
"""

from __future__ import annotations

import functools
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final

import azure.functions as func

from shared import auth, ids
from shared.contract.envelope import NOTHING_ASKED, CallPlan, Envelope, plan, split
from shared.errors import InputError, ResultError, SettingsError, ToolboxError
from shared.invocations.log import InvocationLog
from shared.invocations.record import Outcome, Record
from shared.jobs import answers
from shared.jobs.model import Job
from shared.jobs.outcome import job_outcome
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.jobs.submit import submit
from shared.jobs.unforeseen import describe
from shared.redaction import Redactor
from shared.settings import Settings
from shared.tool.call import ToolCall, call_of, headers_of
from shared.tool.context import Context, Sink, running
from shared.tool.execution import DeadlinePassedError, run_inline
from shared.tool.handler import Handler, ToolEntry
from shared.tool.result import META_PREFIX, ToolResult, envelope, failure
from shared.tool.spec import ExecutionMode, JsonObject, Mode, ToolSpec
from shared.tool.validation import kind_of

_LOG = logging.getLogger(__name__)

#: Characters of a payload that is kept until its call's record is written, rather than looked at in the call.
_SMALL_PAYLOAD: Final = 8_000
_NONE: Final[JsonObject] = {}


class _Call:
    """What is known of one call so far."""

    __slots__ = (
        "_id",
        "_own",
        "_redact",
        "arguments",
        "auth_token",
        "came",
        "headers",
        "invocation",
        "job",
        "owner",
        "payload",
        "plan",
        "ran",
        "request",
        "spec",
        "started",
        "summary",
    )

    def __init__(self, spec: ToolSpec, payload: str, invocation: func.Context | None) -> None:
        self.spec = spec
        self.payload = payload
        self.invocation = invocation
        self.came = time.time_ns() // 1_000_000
        self.started = time.perf_counter()
        self._id = ""
        self._own: JsonObject | None = None
        self.request: Any = None
        self.headers: JsonObject = _NONE
        self.arguments: JsonObject = _NONE
        self.owner = ""
        self.auth_token: str | None = None
        self._redact: Redactor | None = None
        self.plan: CallPlan | None = None
        #: Whether the tool began to run.
        self.ran = False
        self.job: Job | None = None
        #: Of large arguments, made before the tool can change them; of small ones when it is needed.
        self.summary: str | None = None

    @property
    def id(self) -> str:
        """The call's id, a job's too; made when first asked for, of the time that the call came."""
        if not self._id:
            self._id = ids.new_id(self.came)
        return self._id

    @property
    def redact(self) -> Redactor:
        """Made when first used, after the call's headers and options are known: most calls need none."""
        if self._redact is None:
            self._redact = Redactor((self.auth_token,), self.headers, self.own_arguments)
        return self._redact

    def own_arguments(self) -> JsonObject:
        """The arguments as they came, without `__pptb`: the tool may have changed those it was given.

        Empty where they are no object.
        """
        if self._own is None:
            try:
                self._own = split(_arguments(_parsed(self.payload)))[0]
            except InputError:
                self._own = {}
        return self._own

    def facts(self, more_headers: frozenset[str]) -> ToolCall:
        return call_of(self.request, self.headers, self.owner, self.invocation, more_headers)

    def draft(self, result: ToolResult) -> Callable[[], Record]:
        """Makes the call's record, later and elsewhere: it keeps nothing large alive until then."""
        took = round((time.perf_counter() - self.started) * 1000)
        error = result.text if result.is_error else ""
        code = str(result.meta.get(f"{META_PREFIX}errorCode", "")) if result.is_error else ""
        draft = functools.partial(_record, self, _outcome(self, result), took, error, code)
        if len(self.payload) <= _SMALL_PAYLOAD:
            return draft
        record = draft()
        return lambda: record


class Invoker:
    """Answers the MCP tool triggers. `store`: made at the first headless call, since inline ones need none."""

    def __init__(
        self,
        settings: Settings,
        sealer: Sealer,
        store: Callable[[], JobStore],
        log: InvocationLog | None = None,
    ) -> None:
        self._settings = settings
        self._sealer = sealer
        self._store = store
        self._log = log or InvocationLog()
        #: Tool name -> the plan of calls that ask for nothing: most do.
        self._plain_plans: dict[str, CallPlan] = {}

    def trigger(self, entry: ToolEntry) -> Callable[[str, func.Context], Awaitable[str]]:
        """The function behind a tool's trigger: payload string in, envelope string out."""

        async def call(payload: str, context: func.Context) -> str:
            known = _Call(entry.spec, payload, context)
            result = await self._answer(entry, known)
            try:
                text = envelope(result)
            except ResultError as error:
                _LOG.warning("tool '%s': %s", entry.spec.name, error.message)
                result = failure(error.message, errorCode=error.code)
                text = envelope(result)
            self._log.add(known.draft(result), stored=known.job is None)
            return text

        return call

    async def answer(
        self, entry: ToolEntry, payload: str, invocation: func.Context | None = None
    ) -> ToolResult:
        """The answer to one call, which is not recorded. Never raises an `Exception`."""
        return await self._answer(entry, _Call(entry.spec, payload, invocation))

    async def _answer(self, entry: ToolEntry, call: _Call) -> ToolResult:
        name = entry.spec.name
        try:
            call.request = _parsed(call.payload)
            arguments = _arguments(call.request)
            call.headers = headers_of(call.request.get("transport")) if isinstance(call.request, dict) else {}
            call.arguments, asked = split(arguments)
            call.auth_token = asked.auth_token
            if len(call.payload) > _SMALL_PAYLOAD:
                call.summary = call.redact.summary(call.arguments)
            call.owner = auth.owner_of_call(call.headers, self._settings)
            handler = entry.load()
            call.arguments = handler.check_input(call.arguments)
            how = call.plan = self._plan(entry.spec, asked)
            if how.execution_mode is ExecutionMode.INLINE and how.mode is Mode.TWO_WAY:
                return await self._inline(handler, call, how)
            return await self._job(handler, call, how)
        except SettingsError as error:
            _LOG.error("tool '%s': %s", name, error.message)
            return failure(error.message, errorCode=error.code)
        except ToolboxError as error:
            return failure(call.redact(error.message), errorCode=error.code)
        except Exception as error:
            _LOG.error("tool '%s': %s", name, call.redact("".join(traceback.format_exception(error))))
            return failure(
                f"The call of '{name}' could not be carried out ({type(error).__name__}). "
                "The server's log has the details."
            )

    def _plan(self, spec: ToolSpec, asked: Envelope) -> CallPlan:
        known = self._plain_plans.get(spec.name) if asked is NOTHING_ASKED else None
        if known is None:
            known = plan(
                spec,
                asked,
                max_timeout_ms=self._settings.max_timeout_ms,
                inline_timeout_ms=self._settings.inline_timeout_ms,
            )
            if asked is NOTHING_ASKED:
                self._plain_plans[spec.name] = known
        return known

    async def _inline(self, handler: Handler, call: _Call, how: CallPlan) -> ToolResult:
        name = handler.spec.name
        make = functools.partial(self._context, call, how)
        context = make() if handler.needs_context else None
        call.ran = True
        try:
            running(make)
            return handler.finish(await run_inline(handler, call.arguments, context, how.timeout_ms))
        except DeadlinePassedError:
            text = f"Inline execution timed out after {how.timeout_ms} ms"
            if ExecutionMode.HEADLESS in handler.spec.rules.execution_modes:
                text += "; run it as a job with __pptb.executionMode 'headless'"
            return failure(text, errorCode="timeout")
        except InputError as error:
            call.ran = False  # the annotations refused what the schema let pass: the tool's code never began
            return failure(call.redact(error.message), errorCode=error.code)
        except ResultError as error:
            _LOG.warning("tool '%s': %s", name, call.redact(error.message))
            return failure(call.redact(error.message), errorCode=error.code)
        except ToolboxError as error:
            return failure(call.redact(error.message), errorCode=error.code)
        except Exception as error:
            _LOG.warning("tool '%s': %s", name, call.redact("".join(traceback.format_exception(error))))
            return failure(call.redact(describe(name, error)), errorCode="tool_error")

    async def _job(self, handler: Handler, call: _Call, how: CallPlan) -> ToolResult:
        handler.check_binding(call.arguments)
        store = self._store()
        facts = call.facts(self._settings.tool_headers) if handler.needs_context else None
        summary = call.redact.summary(call.arguments) if call.summary is None else call.summary
        job = call.job = await submit(
            handler.spec,
            call.arguments,
            how,
            job_id=call.id,
            owner=call.owner,
            prefill_summary=summary,
            store=store,
            sealer=self._sealer,
            call=facts,
        )
        if how.mode is Mode.ONE_WAY:
            return answers.acceptance(job)
        try:
            job = call.job = await answers.wait(job, store, self._settings.max_wait_ms)
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

    def _context(self, call: _Call, how: CallPlan) -> Context:
        """What an inline call's tool is told."""
        return Context(
            tool_id=call.spec.tool_id,
            tool_name=call.spec.name,
            invocation_mode=how.mode,
            execution_mode=how.execution_mode,
            correlation_id=ids.correlation_id(call.id),
            timeout_ms=how.timeout_ms,
            owner=call.owner,
            arguments=call.arguments,
            auth_token=how.auth_token,
            call=call.facts(self._settings.tool_headers),
            sink=_LogSink(call.spec.name, call.redact),
        )


def _record(call: _Call, outcome: Outcome, took_ms: int, error: str, code: str) -> Record:
    """The call as the invocation log keeps it."""
    summary = call.summary
    if summary is None:
        summary = call.redact.summary(call.own_arguments())
    return Record(
        id=call.id,
        tool_id=call.spec.tool_id,
        tool_name=call.spec.name,
        outcome=outcome,
        duration_ms=took_ms,
        owner=call.owner,
        mode="" if call.plan is None else str(call.plan.mode),
        execution_mode="" if call.plan is None else str(call.plan.execution_mode),
        job_id="" if call.job is None else call.job.job_id,
        invocation_id=str(getattr(call.invocation, "invocation_id", "") or ""),
        prefill_summary=summary,
        error=call.redact(error) if error else "",
        error_code=code,
    )


def _outcome(call: _Call, result: ToolResult) -> Outcome:
    if call.job is not None:
        return job_outcome(call.job)
    if not call.ran:
        return Outcome.REJECTED
    return Outcome.FAILED if result.is_error else Outcome.COMPLETED


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
