"""One MCP call: payload -> envelope -> inline or headless -> result.

The trigger's payload is parsed once. Whatever goes wrong becomes an `isError` answer with a text that helps:
the host would hide an exception's message.
"""

from __future__ import annotations

import functools
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence

import azure.functions as func

from shared import auth, ids, large_json, storage, telemetry
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.contract.envelope import NOTHING_ASKED, CallPlan, Envelope, plan, split
from shared.errors import (
    ConnectionsError,
    EnvelopeError,
    InputError,
    JobError,
    ResultError,
    SettingsError,
    ToolboxError,
)
from shared.incoming import Incoming
from shared.invocations.log import InvocationLog
from shared.jobs import answers
from shared.jobs.inline_artifacts import InlineArtifacts, inline_record
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.jobs.submit import submit
from shared.jobs.unforeseen import describe
from shared.jobs.window import new_secret
from shared.jobs.window_moves import NewWindow
from shared.jobs.windowing import WindowStore
from shared.redaction import Redactor, header_secrets
from shared.settings import Settings
from shared.tool.call import headers_of
from shared.tool.context import ConnectionInfo, Context, Sink, end, running
from shared.tool.execution import DeadlinePassedError, run_inline
from shared.tool.handler import Handler, ToolEntry
from shared.tool.result import ToolResult, envelope, failure
from shared.tool.spec import ExecutionMode, JsonObject, Mode, ToolSpec

_LOG = logging.getLogger(__name__)


def no_projects(owner: str, asked: str | None) -> str | None:
    """The project of an owner's call where none are configured. Raises `EnvelopeError` if one is asked for."""
    if asked is not None:
        raise EnvelopeError(f"__pptb.project: you have no project '{asked}'")
    return None


class Invoker:
    """Answers the MCP tool triggers. `store`: made at the first headless call, since inline ones need none."""

    def __init__(
        self,
        settings: Settings,
        sealer: Sealer,
        store: Callable[[], JobStore],
        log: InvocationLog | None = None,
        environments: Environments | None = None,
        project_of: Callable[[str, str | None], str | None] = no_projects,
    ) -> None:
        self._settings = settings
        self._project_of = project_of
        self._sealer = sealer
        self._store = store
        self._log = log or InvocationLog()
        self._environments = environments or Environments(ConnectionBook(""))
        #: Tool name -> the plan of calls that ask for nothing: most do.
        self._plain_plans: dict[str, CallPlan] = {}

    def trigger(self, entry: ToolEntry) -> Callable[[str, func.Context], Awaitable[str]]:
        """The function behind a tool's trigger: payload string in, envelope string out."""

        async def call(payload: str, context: func.Context) -> str:
            known = Incoming(entry.spec, payload, context)
            with telemetry.call(entry.spec.name, context) as known.span:
                result = await self._answer(entry, known)
                try:
                    text = envelope(result)
                except ResultError as error:
                    _LOG.warning("tool '%s': %s", entry.spec.name, error.message)
                    result = failure(error.message, errorCode=error.code)
                    text = envelope(result)
                known.end_span(result)
            self._record(known, result)
            return text

        return call

    async def answer(
        self, entry: ToolEntry, payload: str, invocation: func.Context | None = None
    ) -> ToolResult:
        """The answer to one call, which is not recorded. Never raises an `Exception`."""
        return await self._answer(entry, Incoming(entry.spec, payload, invocation))

    async def launched(
        self,
        entry: ToolEntry,
        payload: str,
        *,
        owner: str,
        depth: int,
        wait_ms: int | None,
        project: str | None = None,
        parsed_payload: JsonObject | None = None,
    ) -> ToolResult:
        """The answer to a call that a running tool makes for its own owner. It is recorded like any other.

        `wait_ms`: how long a job is waited for; None: as long as for any call. `parsed_payload`: the payload,
        where it has been parsed already; the tool may change what is in it.
        """
        call = Incoming(entry.spec, payload, None)
        call.request = parsed_payload
        call.owner, call.depth, call.wait_ms, call.project = owner, depth, wait_ms, project
        with telemetry.call(entry.spec.name, None) as call.span:
            result = await self._answer(entry, call)
            call.end_span(result)
        self._record(call, result)
        return result

    def _record(self, call: Incoming, result: ToolResult) -> None:
        if call.job is None:
            self._log.add(call.draft(result))
        elif not call.job.status.terminal:
            # Its row is its record, and its end is one line in the log of the worker that wrote it.
            self._log.add(call.draft(result), stored=False)

    async def _answer(self, entry: ToolEntry, call: Incoming) -> ToolResult:
        name = entry.spec.name
        try:
            if call.is_large:
                call.check_size(self._settings.max_input_bytes)
                handler, asked = await large_json.run(self._taken, entry, call)
            else:
                handler, asked = self._taken(entry, call)
            how = call.plan = self._plan(entry.spec, asked)
            if asked.project is not None or call.project is None:  # a tool's own calls stay in its project
                call.project = self._project_of(call.owner, asked.project)
            if how.connections:
                call.connections = await self._resolved(how.connections, call)
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

    def _taken(self, entry: ToolEntry, call: Incoming) -> tuple[Handler, Envelope]:
        """Reads the call and checks its arguments; of a large one, on a thread. Raises `ToolboxError`."""
        arguments = call.read()
        call.headers = headers_of(call.request.get("transport")) if isinstance(call.request, dict) else {}
        telemetry.adopt(call.span, call.request, call.headers)
        call.arguments, asked = split(arguments)
        call.auth_token = asked.auth_token
        call.look()
        if not call.owner:
            call.owner = auth.owner_of_call(call.headers, self._settings)
        handler = entry.load()
        call.arguments = handler.check_input(call.arguments)
        return handler, asked

    def _plan(self, spec: ToolSpec, asked: Envelope) -> CallPlan:
        known = self._plain_plans.get(spec.name) if asked is NOTHING_ASKED else None
        if known is None:
            known = plan(
                spec,
                asked,
                max_timeout_ms=self._settings.max_timeout_ms,
                inline_timeout_ms=self._settings.inline_timeout_ms,
                window_timeout_ms=self._settings.window_timeout_ms,
            )
            if asked is NOTHING_ASKED:
                self._plain_plans[spec.name] = known
        return known

    async def _resolved(self, names: Sequence[str], call: Incoming) -> tuple[ConnectionInfo, ...]:
        try:
            return await storage.run(self._environments.named, names, call.owner, call.spec.name)
        except ConnectionsError as error:
            raise ConnectionsError(f"Failed to resolve authentication context: {error.message}") from None

    async def _inline(self, handler: Handler, call: Incoming, how: CallPlan) -> ToolResult:
        name = handler.spec.name
        files = InlineArtifacts(functools.partial(_record_of, call, how), self._store)
        make = functools.partial(self._context, call, how, files)
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
        finally:
            files.end()
            if call.state:
                await storage.run(end, make())

    async def _job(self, handler: Handler, call: Incoming, how: CallPlan) -> ToolResult:
        if call.is_large:
            await large_json.run(handler.check_binding, call.arguments)
        else:
            handler.check_binding(call.arguments)
        store = self._store()
        facts = call.facts(self._settings.tool_headers) if handler.needs_context else None
        summary = call.redact.summary(call.arguments) if call.summary is None else call.summary
        window = None
        if how.execution_mode is ExecutionMode.WINDOWED:
            window = NewWindow(new_secret(), self._settings.base_url)
        job = call.job = await submit(
            handler.spec,
            call.arguments,
            how,
            job_id=call.id,
            owner=call.owner,
            connections=call.connections,
            secrets=header_secrets(call.headers),
            depth=call.depth,
            project=call.project,
            prefill_summary=summary,
            store=store,
            sealer=self._sealer,
            call=facts,
            window=window,
        )
        accepted = functools.partial(answers.acceptance, token_unused=how.token_unused)
        if window is not None:
            job, ticket = await self._ticket(job, call.id, window, store)
            accepted = functools.partial(accepted, ticket=ticket)
        if how.mode is Mode.ONE_WAY:
            return accepted(job)
        try:
            limit_ms = self._settings.max_wait_ms if call.wait_ms is None else call.wait_ms
            job = call.job = await answers.wait(job, store, limit_ms)
            if not job.status.terminal:
                return accepted(job, wait_limit_ms=limit_ms)
            return await answers.final(job, store)
        except ToolboxError as error:
            return answers.failed(job, error.message, error.code)
        except Exception as error:
            # The job stands all the same, so the answer says which it is.
            _LOG.error("job %s: its answer could not be read", job.job_id, exc_info=True)
            text = f"The job's answer could not be read ({type(error).__name__})."
            return answers.failed(job, text, ToolboxError.code)

    async def _ticket(self, job: Job, own_id: str, window: NewWindow, store: JobStore) -> tuple[Job, str]:
        """(the job, what opens its window).

        A call that is repeated under its idempotency key gets a new ticket: the answer with the first one may
        be what was lost.
        """
        if job.job_id == own_id:
            return job, window.ticket
        try:
            return await storage.run(WindowStore(store, self._sealer).new_ticket, job)
        except JobError:
            return job, ""  # ended already, or erased: there is nothing to open

    def _context(self, call: Incoming, how: CallPlan, files: InlineArtifacts) -> Context:
        """What an inline call's tool is told."""
        return Context(
            tool_id=call.spec.tool_id,
            tool_name=call.spec.name,
            invocation_mode=how.mode,
            execution_mode=how.execution_mode,
            correlation_id=ids.correlation_id(call.id),
            timeout_ms=how.timeout_ms,
            timeout_asked=how.timeout_asked,
            owner=call.owner,
            arguments=call.arguments,
            auth_token=how.auth_token,
            connections=call.connections,
            deadline=time.monotonic() + how.timeout_ms / 1000,
            depth=call.depth,
            project=call.project,
            state=call.state,
            call=call.facts(self._settings.tool_headers),
            sink=_LogSink(call.spec.name, call.redact),
            artifacts=files,
        )


def _record_of(call: Incoming, how: CallPlan) -> Job:
    """What an inline call's files are kept under."""
    return inline_record(
        call.spec,
        call.id,
        call.owner,
        mode=how.mode,
        timeout_ms=how.timeout_ms,
        connection_name=call.connections[0].name if call.connections else "",
        prefill_summary=call.redact.summary(call.own_arguments()) if call.summary is None else call.summary,
        has_auth_token=how.auth_token is not None,
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
