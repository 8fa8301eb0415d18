"""Where jobs are kept: one partition of a table per job, a queue of hints, a container of large bodies.

Every write of a job row is conditional on the version that was read, and carries a fresh nonce. After an answer
that says "changed meanwhile" the row is read again: the own nonce in it means that the write went through and
only its answer was lost.

All methods block; call them through `shared.storage.run`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from shared.errors import JobError, LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.logs import LogLine, read_lines
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job

if TYPE_CHECKING:
    from azure.data.tables import TableClient

    from shared.storage import Storage

TABLE: Final = "jobs"
QUEUE: Final = "jobs"
POISON_QUEUE: Final = "jobs-poison"
CONTAINER: Final = "jobs"

#: Tries of one conditional write when the connection breaks or the service is busy; the SDK repeats only some.
WRITE_TRIES: Final = 5
#: Seconds before the second repetition, doubled each time; the first follows at once (a shut idle connection).
WRITE_BACKOFF: Final = 0.2

_TRANSIENT: Final = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Change:
    """What is written together with a job row, in one transaction."""

    chunks: tuple[tuple[int, bytes], ...] = ()
    drop_input: bool = False

    @property
    def empty(self) -> bool:
        return not self.chunks and not self.drop_input


NOTHING_ELSE: Final = Change()


@dataclass(frozen=True, slots=True)
class Opened:
    """A job with its sealed input, as a worker reads it."""

    job: Job
    #: None when the input is in a blob, or erased.
    sealed: bytes | None = field(repr=False)


class JobStore(Protocol):
    """What the job engine needs of storage."""

    def create(self, job: Job, sealed: bytes) -> Job:
        """Inserts a job with its sealed input (in its row, or in its blob, as `job.input_at` says)."""

    def send(self, job_id: str) -> None:
        """Puts the queue message `{"jobId": …}`."""

    def get(self, job_id: str) -> Job | None:
        """The job row alone."""

    def open(self, job_id: str) -> Opened | None:
        """The job row and its sealed input, in one request."""

    def with_logs(self, job_id: str) -> tuple[Job, list[LogLine]] | None:
        """The job row and its newest log lines, in one request."""

    def write(self, job: Job, change: Change = NOTHING_ELSE) -> Job:
        """Replaces the row whose version is `job.etag`. Raises `LostLeaseError` when it has moved on."""

    def put_blob(self, name: str, data: bytes) -> None: ...

    def get_blob(self, name: str) -> bytes | None: ...

    def delete_blob(self, name: str) -> None: ...


class TableJobStore:
    """Jobs in the app's storage account. Tables, queue and container are made when first missed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def create(self, job: Job, sealed: bytes) -> Job:
        if job.input_at == INPUT_IN_BLOB:
            self.put_blob(keys.input_blob(job.job_id), sealed)
        fresh = replace(job, nonce=rows.new_nonce())
        operations: list[Any] = [("create", rows.job_entity(fresh))]
        if job.input_at == INPUT_IN_ROW:
            operations.append(("create", rows.input_entity(job.job_id, sealed)))
        return self._transact(fresh, operations)

    def write(self, job: Job, change: Change = NOTHING_ELSE) -> Job:
        from azure.core import MatchConditions
        from azure.data.tables import UpdateMode

        fresh = replace(job, nonce=rows.new_nonce())
        condition: dict[str, Any] = {
            "etag": job.etag,
            "match_condition": MatchConditions.IfNotModified,
        }
        entity = rows.job_entity(fresh)
        if change.empty:

            def update() -> Job:
                answer = self._table.update_entity(entity, mode=UpdateMode.REPLACE, **condition)
                return replace(fresh, etag=answer["etag"])

            return self._conditional(fresh, update)
        operations: list[Any] = [("update", entity, {"mode": UpdateMode.REPLACE, **condition})]
        operations += [
            ("upsert", rows.chunk_entity(job.job_id, slot, data), {"mode": UpdateMode.REPLACE})
            for slot, data in change.chunks
        ]
        if change.drop_input:
            operations.append(("delete", rows.input_key(job.job_id)))
        return self._transact(fresh, operations)

    def send(self, job_id: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        queue = self._storage.queue(QUEUE)
        body = json.dumps({"jobId": job_id})
        try:
            queue.send_message(body)
        except ResourceNotFoundError:
            _make(queue.create_queue)
            queue.send_message(body)

    def get(self, job_id: str) -> Job | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            entity = self._table.get_entity(keys.partition_key(job_id), keys.JOB_ROW)
        except ResourceNotFoundError:
            return None
        return rows.job_of(entity, entity.metadata["etag"] or "")

    def open(self, job_id: str) -> Opened | None:
        found = self._partition(job_id, f"RowKey le '{keys.JOB_ROW}'")
        job = _job_among(found)
        if job is None:
            return None
        sealed = next((row[rows.SEALED] for row in found if row["RowKey"] == keys.INPUT_ROW), None)
        return Opened(job, None if sealed is None else bytes(sealed))

    def with_logs(self, job_id: str) -> tuple[Job, list[LogLine]] | None:
        found = self._partition(job_id, f"RowKey ge '{keys.JOB_ROW}'")
        job = _job_among(found)
        if job is None:
            return None
        chunks = [row[rows.LINES] for row in found if row["RowKey"].startswith(keys.LOG_ROW_PREFIX)]
        return job, read_lines(chunks)

    def put_blob(self, name: str, data: bytes) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        container = self._storage.container(CONTAINER)
        try:
            container.upload_blob(name, data, overwrite=True)
        except ResourceNotFoundError:
            _make(container.create_container)
            container.upload_blob(name, data, overwrite=True)

    def get_blob(self, name: str) -> bytes | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return self._storage.container(CONTAINER).download_blob(name).readall()
        except ResourceNotFoundError:
            return None

    def delete_blob(self, name: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            self._storage.container(CONTAINER).delete_blob(name)
        except ResourceNotFoundError:
            return

    @property
    def _table(self) -> TableClient:
        return self._storage.table(TABLE)

    def _partition(self, job_id: str, row_filter: str) -> list[Any]:
        from azure.core.exceptions import ResourceNotFoundError

        condition = f"PartitionKey eq '{keys.partition_key(job_id)}' and {row_filter}"
        try:
            return list(self._table.query_entities(condition))
        except ResourceNotFoundError:  # the table itself: no job was ever made
            return []

    def _transact(self, fresh: Job, operations: list[Any]) -> Job:
        def submit() -> Job:
            # The job row is the first operation, and answers come in order.
            answers = self._table.submit_transaction(operations)
            return replace(fresh, etag=answers[0]["etag"])

        return self._conditional(fresh, submit)

    def _conditional(self, fresh: Job, write: Callable[[], Job]) -> Job:
        """Carries out a conditional write, whatever happens to its request or its answer on the way."""
        from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

        for repetition in range(WRITE_TRIES):
            if repetition > 1:
                time.sleep(WRITE_BACKOFF * 2 ** (repetition - 2))
            try:
                return write()
            except (ServiceRequestError, ServiceResponseError):
                if repetition == WRITE_TRIES - 1:
                    raise
            except HttpResponseError as error:
                if _code_of(error) == "TableNotFound":
                    _make(self._table.create_table)
                elif error.status_code in (404, 409, 412):
                    return self._own_write(fresh, error)
                elif error.status_code not in _TRANSIENT or repetition == WRITE_TRIES - 1:
                    raise
        raise JobError("The jobs table could not be made.")

    def _own_write(self, fresh: Job, error: Exception) -> Job:
        """The row as stored, if it is the one we wrote: then only the answer was lost."""
        stored = self.get(fresh.job_id)
        if stored is not None and stored.nonce == fresh.nonce:
            return stored
        raise LostLeaseError from error


def _job_among(found: Iterable[Any]) -> Job | None:
    row = next((row for row in found if row["RowKey"] == keys.JOB_ROW), None)
    return None if row is None else rows.job_of(row, row.metadata["etag"])


def _code_of(error: Any) -> str:
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _make(create: Callable[[], Any]) -> None:
    from azure.core.exceptions import ResourceExistsError

    try:
        create()
    except ResourceExistsError:
        return  # another instance was quicker
