"""Files of a call that runs inline, and so has no job: the first one makes a stored record for them.

The record is a job that has ended, under the call's own id: its files are served, owned, kept and removed as
those of any other job, by the same code. It speaks of the files only: the call's result goes to its caller, and
its outcome into the invocation log. A call that writes no file costs no request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

from shared import ids
from shared.errors import JobCancelledError, LostLeaseError
from shared.jobs import model
from shared.jobs.artifacts import JobArtifacts
from shared.jobs.model import INPUT_ERASED, Job, Status
from shared.jobs.payload import pack_result, stored_body
from shared.jobs.store import JobStore
from shared.tool.content import McpResourceLinkContent
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, Mode, ToolSpec

#: What stands in the record for the result.
ANSWERED: Final = {
    "status": "answered_inline",
    "message": "The call ran inline and answered its caller; this record keeps the files that it made.",
}
_OVER: Final = "The call has ended: its files cannot be written any more."


def inline_record(
    spec: ToolSpec,
    call_id: str,
    owner: str,
    *,
    mode: Mode,
    timeout_ms: int,
    connection_name: str = "",
    prefill_summary: str = "",
    has_auth_token: bool = False,
) -> Job:
    """The record that keeps the files of an inline call, as it is first stored: ended, in its first attempt.

    It counts as made when the call came, which its id tells. Retention counts from now.
    """
    came = datetime.fromtimestamp(ids.milliseconds_of(call_id) / 1000, UTC)
    job = Job(
        job_id=call_id,
        owner=owner,
        tool_id=spec.tool_id,
        tool_name=spec.name,
        mode=mode,
        execution_mode=ExecutionMode.INLINE,
        correlation_id=ids.correlation_id(call_id),
        timeout_ms=timeout_ms,
        max_attempts=1,
        created_at=came,
        connection_name=connection_name,
        prefill_summary=prefill_summary,
        has_auth_token=has_auth_token,
    )
    job = replace(job, status=Status.IN_PROGRESS, attempt=1, started_at=came, input_at=INPUT_ERASED)
    body = stored_body(pack_result(ToolResult(structured=dict(ANSWERED))))
    # No worker has claimed it, and when the call has ended its own record tells: so it tells of no attempt.
    return replace(model.complete(job, max(model.utc_now(), came), body), attempts=())


class InlineArtifacts:
    """`context.artifacts` of an inline call. Thread-safe.

    `record`: makes the call's record, for its first file. `store`: as for jobs, may raise `SettingsError`.
    """

    __slots__ = ("_job", "_lock", "_over", "_record", "_store")

    def __init__(self, record: Callable[[], Job], store: Callable[[], JobStore]) -> None:
        self._record = record
        self._store = store
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._over = False

    def write(
        self, name: str, data: bytes | str | BinaryIO | Iterable[bytes], mime_type: str | None = None
    ) -> McpResourceLinkContent:
        """See `shared.tool.context.Artifacts`. Raises `SettingsError` too, where no storage is set."""
        job = self._job or self._record()
        store: Any = _Recorded(self, job, self._store)
        return JobArtifacts(job, store, self._unwanted).write(name, data, mime_type)

    def end(self) -> None:
        """The call has its answer: what its code still writes would be a file that nobody was told of."""
        self._over = True

    def stored(self, job: Job, store: JobStore) -> None:
        """Makes sure that the record stands, before a file does. Once; a failure leaves it to the next file."""
        with self._lock:
            if self._job is not None:
                return
            try:
                self._job = store.create(job, b"")
            except LostLeaseError:
                # It stands already: an earlier try went through after all, and every answer to it was lost.
                self._job = store.get(job.job_id)
                if self._job is None or self._job.owner != job.owner:
                    raise

    def _unwanted(self) -> JobCancelledError | None:
        return JobCancelledError(_OVER) if self._over else None


class _Recorded:
    """What `JobArtifacts` asks of a store; the record is stored before the first file."""

    def __init__(self, artifacts: InlineArtifacts, job: Job, store: Callable[[], JobStore]) -> None:
        self._artifacts = artifacts
        self._job = job
        self._store = store

    def put_artifact(self, name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        store = self._store()
        self._artifacts.stored(self._job, store)
        store.put_artifact(name, data, mime_type)
