"""Makes a job of a call: large input first, then the rows, then the message.

A job exists once its rows stand. A message that could not be sent costs only time: the row is the truth, and
pending jobs are sent again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from shared import ids, storage, telemetry
from shared.contract.envelope import CallPlan
from shared.jobs import idempotency
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job, Status, utc_now
from shared.jobs.payload import ROW_BYTES, Input, Sealer, pack_input
from shared.jobs.store import JobStore
from shared.jobs.window_moves import NewWindow
from shared.tool.call import ToolCall
from shared.tool.context import ConnectionInfo
from shared.tool.spec import JsonObject, ToolSpec

_LOG = logging.getLogger(__name__)

#: How old a job is that nobody has taken when a repeated call sends its message once more.
HELP_AFTER: Final = timedelta(seconds=10)


async def submit(
    spec: ToolSpec,
    arguments: JsonObject,
    plan: CallPlan,
    *,
    owner: str,
    store: JobStore,
    sealer: Sealer,
    job_id: str | None = None,
    prefill_summary: str = "",
    connections: Sequence[ConnectionInfo] = (),
    secrets: Sequence[str] = (),
    depth: int = 0,
    project: str | None = None,
    call: ToolCall | None = None,
    window: NewWindow | None = None,
) -> Job:
    """The stored job: a pending one, or the one that the call's idempotency key already stands for.

    `job_id`: the call's own id, if it has one already. `window`: of a windowed call. Raises `PayloadError`
    (input too large), `SettingsError` (no seal key) and `IdempotencyError` (the key was used for
    other arguments).
    """
    job_id = job_id or ids.new_id()
    ids_of = tuple(connection.id for connection in connections)
    given = Input(
        arguments,
        plan.auth_token,
        {} if call is None else call.to_json(),
        ids_of,
        tuple(secrets),
        depth,
        project,
    )
    job = Job(
        job_id=job_id,
        owner=owner,
        tool_id=spec.tool_id,
        tool_name=spec.name,
        mode=plan.mode,
        execution_mode=plan.execution_mode,
        correlation_id=ids.correlation_id(job_id),
        timeout_ms=plan.timeout_ms,
        max_attempts=spec.rules.max_attempts,
        created_at=utc_now(),
        has_auth_token=plan.auth_token is not None,
        timeout_asked=plan.timeout_asked,
        connection_name=connections[0].name if connections else "",
        prefill_summary=prefill_summary,
    )
    if window is not None:
        job = window.of(job, timeout_asked=plan.timeout_asked)
    with telemetry.submission(spec.name, queued=window is None) as span:
        job = replace(job, traceparent=span.traceparent)
        stored = await storage.run(_submit, job, given, plan.idempotency_key, store, sealer)
        telemetry.submitted(span, stored)
    return stored


def _submit(job: Job, given: Input, idempotency_key: str | None, store: JobStore, sealer: Sealer) -> Job:
    sealed = sealer.seal(job.job_id, pack_input(given))
    key = None
    if idempotency_key is not None:
        key = idempotency.make_key(job.owner, job.tool_name, idempotency_key, given.arguments, sealer)
    job = replace(
        job,
        input_at=INPUT_IN_ROW if len(sealed) <= ROW_BYTES else INPUT_IN_BLOB,
        idempotency="" if key is None else key.current,
    )
    stored = _created(job, sealed, store)
    if key is not None:
        winner = _settled(stored, key, store)
        if winner.job_id != stored.job_id:
            if (
                winner.window is None
                and winner.status is Status.PENDING
                and utc_now() - winner.created_at >= HELP_AFTER
            ):
                # Who made it may have been cut off before its message; one too many changes nothing.
                send(winner, store)
            return winner
    if stored.window is None:
        send(stored, store)
    return stored


def _created(job: Job, sealed: bytes, store: JobStore) -> Job:
    try:
        return store.create(job, sealed)
    except Exception:
        # Its answer may be what was lost: a row that stands is a job, and its caller must know of it.
        try:
            found = store.get(job.job_id)
        except Exception:
            found = None
        if found is None:
            raise
        return found


def send(job: Job, store: JobStore) -> None:
    """Sends the job's message. Never raises: the row stands, and a lost message is sent again later."""
    try:
        store.send(job.job_id)
    except Exception:
        _LOG.exception("job %s: stored, but its queue message could not be sent", job.job_id)


def _settled(job: Job, key: idempotency.Key, store: JobStore) -> Job:
    """The job that the key stands for. When that is another, or none can be told, `job` is removed again."""
    try:
        winner = idempotency.settle(job, key, store)
    except Exception:
        _discard(job, store)
        raise
    if winner.job_id != job.job_id:
        _discard(job, store)
    return winner


def _discard(job: Job, store: JobStore) -> None:
    """Removes a job that nobody was told of. Never raises: the reaper finds what is left."""
    try:
        store.purge(job)
    except Exception:
        _LOG.warning("job %s: lost to another one, and could not be removed yet", job.job_id, exc_info=True)
