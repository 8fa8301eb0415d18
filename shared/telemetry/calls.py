"""The span of one call of a tool, and what is counted of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shared.telemetry import names
from shared.telemetry.names import Attribute, SpanName
from shared.telemetry.spans import NO_SPAN, Kind, Recorded, Span, count, switch
from shared.telemetry.trace import HEADER, Place, current, parsed

#: Codes of refusals and failures that the app itself gives; a tool's own words are none of them.
_OTHER: Final = "_OTHER"
_METHOD: Final = "tools/call"


def call(tool: str, invocation: object) -> Span:
    """`mcp.call TOOL`. `invocation`: the host's context of it, if it came from there.

    The host's own span is its parent, or else the running tool's, whose call it is.
    """
    if (out := switch.out) is None:
        return NO_SPAN
    host = _of_host(invocation) if out.propagates else None
    if host is not None:
        # Some hosts never set the flag, whatever they keep themselves: then it is decided here.
        sampled = True if host.sampled and out.sampler.by_parent else out.sampler.of_root(host.trace_id)
        span = Recorded(out, f"{SpanName.CALL} {tool}", Kind.INTERNAL, parent=host, sampled=sampled)
    else:
        parent = current.get()
        kind = Kind.SERVER if parent is None else Kind.INTERNAL
        span = Recorded(out, f"{SpanName.CALL} {tool}", kind, parent=parent)
    span.set(Attribute.TOOL, tool)
    span.set(Attribute.METHOD_NAME, _METHOD)
    return span


def adopt(span: Span, request: Any, headers: Mapping[str, Any]) -> None:
    """Puts the call under the caller's own span: `_meta.traceparent`, else the header of that name.

    Where the host has told its place, or a tool has made the call, that stays: the caller's is linked.
    """
    if not isinstance(span, Recorded) or not span.out.propagates:
        return
    meta = request.get("_meta") if isinstance(request, Mapping) else None
    told = parsed(meta.get("traceparent")) if isinstance(meta, Mapping) else None
    told = told or _of_headers(headers)
    if told is None:
        return
    if span.parent is None:
        span.move_under(told, Kind.SERVER)
    elif told.trace_id != span.parent.trace_id:
        span.link(told)


def end_call(
    span: Span,
    *,
    tool: str,
    outcome: str,
    error: str,
    failed: bool,
    mode: str,
    execution_mode: str,
    owner: str,
    job_id: str,
    correlation_id: str,
) -> None:
    """What is known at the call's end. `error`: its code, if it has one; `failed`: the answer is an error."""
    if not isinstance(span, Recorded):
        return
    out = span.out
    word = (error or _OTHER) if failed else ""
    span.set(Attribute.OUTCOME, outcome)
    span.set(Attribute.ERROR, word)
    span.set(Attribute.MODE, mode)
    span.set(Attribute.EXECUTION_MODE, execution_mode)
    span.set(Attribute.OWNER, out.pseudonym(owner))
    span.set(Attribute.JOB_ID, job_id)
    span.set(Attribute.CORRELATION_ID, correlation_id)
    count(
        out,
        names.CALLS,
        1,
        TOOL=tool,
        OUTCOME=outcome,
        ERROR=word,
        MODE=mode,
        EXECUTION_MODE=execution_mode,
    )
    count(
        out,
        names.CALL_DURATION,
        span.seconds,
        METHOD_NAME=_METHOD,
        TOOL=tool,
        ERROR=word,
        EXECUTION_MODE=execution_mode,
    )


def _of_headers(headers: Mapping[str, Any]) -> Place | None:
    """The host hands names on as it spells them. Two of one name are none (W3C Trace Context 3.2.2.5)."""
    found = [value for name, value in headers.items() if len(name) == len(HEADER) and name.lower() == HEADER]
    return parsed(found[0]) if len(found) == 1 else None


def _of_host(invocation: object) -> Place | None:
    trace = getattr(invocation, "trace_context", None)
    return parsed(getattr(trace, "trace_parent", None))
