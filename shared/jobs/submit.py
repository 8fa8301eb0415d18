"""Makes a job of a call: large input first, then the rows, then the message.

A job exists once its rows stand. A message that could not be sent costs only time: the row is the truth, and
pending jobs are sent again.
"""

from __future__ import annotations

import logging

from shared import storage
from shared.contract.envelope import CallPlan
from shared.jobs import keys
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job, utc_now
from shared.jobs.payload import ROW_BYTES, Input, Sealer, pack_input
from shared.jobs.store import JobStore
from shared.tool.call import ToolCall
from shared.tool.spec import JsonObject, ToolSpec

_LOG = logging.getLogger(__name__)


async def submit(
    spec: ToolSpec,
    arguments: JsonObject,
    plan: CallPlan,
    *,
    owner: str,
    store: JobStore,
    sealer: Sealer,
    call: ToolCall | None = None,
) -> Job:
    """The stored, pending job. Raises `PayloadError` (input too large) and `SettingsError` (no seal key)."""
    given = Input(arguments, plan.auth_token, {} if call is None else call.to_json())
    return await storage.run(_submit, spec, given, plan, owner, store, sealer)


def _submit(spec: ToolSpec, given: Input, plan: CallPlan, owner: str, store: JobStore, sealer: Sealer) -> Job:
    job_id = keys.new_job_id()
    sealed = sealer.seal(job_id, pack_input(given))
    job = store.create(
        Job(
            job_id=job_id,
            owner=owner,
            tool_id=spec.tool_id,
            tool_name=spec.name,
            mode=plan.mode,
            execution_mode=plan.execution_mode,
            correlation_id=f"mcp-{job_id}",
            timeout_ms=plan.timeout_ms,
            max_attempts=spec.rules.max_attempts,
            created_at=utc_now(),
            input_at=INPUT_IN_ROW if len(sealed) <= ROW_BYTES else INPUT_IN_BLOB,
            has_auth_token=plan.auth_token is not None,
        ),
        sealed,
    )
    try:
        store.send(job_id)
    except Exception:
        _LOG.exception("job %s: stored, but its queue message could not be sent", job_id)
    return job
