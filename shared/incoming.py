"""One MCP call on its way: what is known of it so far, and the record that it leaves."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Final

import azure.functions as func

from shared import ids, large_json, telemetry
from shared.contract.envelope import CallPlan, split
from shared.errors import InputError
from shared.invocations.record import Outcome, Record
from shared.jobs.model import Job
from shared.jobs.outcome import job_outcome
from shared.redaction import Redactor, without_names
from shared.tool.call import ToolCall, call_of
from shared.tool.context import ConnectionInfo
from shared.tool.result import META_PREFIX, ToolResult
from shared.tool.spec import JsonObject, ToolSpec
from shared.tool.validation import kind_of

#: Characters of a payload that is kept until its call's record is written, rather than looked at in the call.
SMALL_PAYLOAD: Final = 8_000
#: Bytes that a character may take.
_MOST_OF_ONE: Final = 4
_NONE: Final[JsonObject] = {}


class Incoming:
    """What is known of one call so far."""

    __slots__ = (
        "_id",
        "_own",
        "_redact",
        "arguments",
        "auth_token",
        "came",
        "connections",
        "depth",
        "headers",
        "invocation",
        "job",
        "owner",
        "payload",
        "plan",
        "project",
        "ran",
        "request",
        "span",
        "spec",
        "started",
        "state",
        "summary",
        "wait_ms",
    )

    def __init__(self, spec: ToolSpec, payload: str, invocation: func.Context | None) -> None:
        self.spec = spec
        #: The call's span, while telemetry is on.
        self.span: telemetry.Span = telemetry.NO_SPAN
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
        #: How many tools' calls this one is within, and how long its job is waited for (None: the setting).
        self.depth = 0
        self.wait_ms: int | None = None
        self.plan: CallPlan | None = None
        self.project: str | None = None
        self.connections: tuple[ConnectionInfo, ...] = ()
        #: What the APIs keep for this call, whoever asks for its context.
        self.state: dict[str, Any] = {}
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

    @property
    def is_large(self) -> bool:
        """Whether looking at the payload takes so long that other calls would wait for it."""
        return len(self.payload) > large_json.SMALL

    def check_size(self, most: int) -> None:
        """Refuses a payload of more than `most` bytes. Raises `InputError`."""
        if len(self.payload) * _MOST_OF_ONE <= most:
            return
        text = self.payload
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if size > most:
            self._own = {}
            raise InputError(
                f"arguments: the call has {size} bytes as JSON; at most {most} are taken "
                "(the app's setting TOOLBOX_MAX_INPUT_BYTES)"
            )

    def read(self) -> JsonObject:
        """The call's arguments, `__pptb` among them; from now on `request` is known. Raises `InputError`.

        A payload that is not small is read once: nothing is known of its arguments until `look` is called.
        """
        if len(self.payload) > SMALL_PAYLOAD:
            self._own = {}
        if self.request is None:
            self.request = parsed(self.payload)
        return arguments_of(self.request)

    def look(self) -> None:
        """What is told of arguments that are not small is made before the tool can change them.

        That is their summary, and which of their values are kept out of all texts.
        """
        if len(self.payload) > SMALL_PAYLOAD:
            self._own = self.arguments
            self.summary = self.redact.summary(self.arguments)
            self.redact("")
            self._own = {}

    def own_arguments(self) -> JsonObject:
        """The arguments as they came, without `__pptb`: the tool may have changed those it was given.

        Empty where they are no object, and of a payload that is not small, see `look`.
        """
        if self._own is None:
            try:
                self._own = split(arguments_of(parsed(self.payload)))[0]
            except InputError:
                self._own = {}
        return self._own

    def facts(self, more_headers: frozenset[str]) -> ToolCall:
        return call_of(self.request, self.headers, self.owner, self.invocation, more_headers)

    def end_span(self, result: ToolResult) -> None:
        """Tells telemetry how the call ended."""
        if self.span is telemetry.NO_SPAN:
            return
        telemetry.end_call(
            self.span,
            tool=self.spec.name,
            outcome=str(_outcome(self, result)),
            error=_error_code(result),
            failed=result.is_error,
            mode="" if self.plan is None else str(self.plan.mode),
            execution_mode="" if self.plan is None else str(self.plan.execution_mode),
            owner=self.owner,
            job_id="" if self.job is None else self.job.job_id,
            correlation_id=ids.correlation_id(self.id) if self.job is None else self.job.correlation_id,
        )

    def draft(self, result: ToolResult) -> Callable[[], Record]:
        """Makes the call's record, later and elsewhere: it keeps nothing large alive until then."""
        took = round((time.perf_counter() - self.started) * 1000)
        error = result.text if result.is_error else ""
        code = _error_code(result)
        draft = functools.partial(_record, self, _outcome(self, result), took, error, code)
        if len(self.payload) <= SMALL_PAYLOAD:
            return draft
        record = draft()
        return lambda: record


def _record(call: Incoming, outcome: Outcome, took_ms: int, error: str, code: str) -> Record:
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
        error=_without_connections(call.redact(error), call) if error else "",
        error_code=code,
    )


def _without_connections(text: str, call: Incoming) -> str:
    """Which connections a call names is nobody else's business."""
    named = () if call.plan is None else call.plan.connections
    return without_names(text, (*named, *(word for one in call.connections for word in one.words)))


def _error_code(result: ToolResult) -> str:
    return str(result.meta.get(f"{META_PREFIX}errorCode", "")) if result.is_error else ""


def _outcome(call: Incoming, result: ToolResult) -> Outcome:
    if call.job is not None:
        return job_outcome(call.job)
    if not call.ran:
        return Outcome.REJECTED
    return Outcome.FAILED if result.is_error else Outcome.COMPLETED


def parsed(payload: str) -> Any:
    """The trigger's payload. The host has parsed the call already; only Python's own limits can refuse it."""
    try:
        return large_json.loads(payload)
    except (RecursionError, ValueError):
        raise InputError("arguments: nested too deeply, or a number with too many digits") from None


def arguments_of(request: Any) -> JsonObject:
    """The call's arguments. The host leaves the key out when the client sent none."""
    found = request.get("arguments") if isinstance(request, dict) else None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"arguments: expected object, got {kind_of(found)}")
    return found
