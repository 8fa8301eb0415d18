"""Jobs in the app's storage account.

Every write of a job row is conditional on the version that was read, and carries a fresh nonce. After an answer
that says "changed meanwhile" the row is read again: the own nonce in it means that the write went through and
only its answer was lost.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from shared.errors import InputError, JobError, LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.logs import LogLine, read_lines
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job
from shared.jobs.store import (
    CONTAINER,
    NOTHING_ELSE,
    POISON_QUEUE,
    QUEUE,
    TABLE,
    BlobPage,
    Change,
    KeyRow,
    Opened,
    Page,
    Query,
    StoredFile,
)
from shared.storage import error_code

if TYPE_CHECKING:
    from azure.data.tables import TableClient

    from shared.storage import Storage

#: Tries of one conditional write when the connection breaks or the service is busy; the SDK repeats only some.
WRITE_TRIES: Final = 5
#: Seconds before the second repetition, doubled each time; the first follows at once (a shut idle connection).
WRITE_BACKOFF: Final = 0.2

_TRANSIENT: Final = (408, 429, 500, 502, 503, 504)


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
                return replace(fresh, etag=answer["etag"] or "")

            return self._conditional(fresh, update)
        operations: list[Any] = [("update", entity, {"mode": UpdateMode.REPLACE, **condition})]
        operations += [
            ("upsert", rows.chunk_entity(job.job_id, slot, data), {"mode": UpdateMode.REPLACE})
            for slot, data in change.chunks
        ]
        if change.drop_input:
            operations.append(("delete", rows.input_key(job.job_id)))
        return self._transact(fresh, operations)

    def send(self, job_id: str, *, delay: int = 0) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        queue = self._storage.queue(QUEUE)
        body = json.dumps({"jobId": job_id})
        try:
            queue.send_message(body, visibility_timeout=delay or None)
        except ResourceNotFoundError:
            _make(queue.create_queue)
            queue.send_message(body, visibility_timeout=delay or None)

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

    def put_artifact(self, name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError
        from azure.storage.blob import ContentSettings

        container = self._storage.container(CONTAINER)
        settings = ContentSettings(content_type=mime_type)
        if not isinstance(data, bytes):
            # A stream cannot be sent twice, so the container is made before it is missed.
            _make(container.create_container)
        try:
            container.upload_blob(name, data, overwrite=True, content_settings=settings)
        except ResourceNotFoundError:
            _make(container.create_container)
            container.upload_blob(name, data, overwrite=True, content_settings=settings)

    def get_artifact(self, name: str, offset: int = 0, length: int | None = None) -> StoredFile | None:
        from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

        blob = self._storage.container(CONTAINER).get_blob_client(name)
        try:
            found = blob.download_blob() if length is None else blob.download_blob(offset, length)
            data, about = found.readall(), found.properties
        except ResourceNotFoundError:
            return None
        except HttpResponseError as error:
            if error.status_code != 416:
                raise
            data, about = b"", blob.get_blob_properties()  # the part lies behind the file's end
        size = int((about.content_range or "").rpartition("/")[2] or about.size)
        mime_type = about.content_settings.content_type or "application/octet-stream"
        return StoredFile(data, size, mime_type, str(about.etag))

    def take_key(self, row: KeyRow) -> KeyRow | None:
        from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

        for _ in range(WRITE_TRIES):
            try:
                self._table.create_entity(rows.key_entity(row))
            except ResourceExistsError:
                found = self.get_key(row.key)
                if found is None:
                    continue  # removed meanwhile
                # Our own insert, whose answer was lost and which was repeated.
                return None if found.job_id == row.job_id else found
            except ResourceNotFoundError:
                _make(self._table.create_table)
                continue
            return None
        raise JobError("The idempotency key could not be stored.")

    def get_key(self, key: str) -> KeyRow | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            entity = self._table.get_entity(keys.key_partition(key), keys.KEY_ROW)
        except ResourceNotFoundError:
            return None
        return rows.key_of(entity, entity.metadata["etag"] or "")

    def replace_key(self, old: KeyRow, new: KeyRow) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError
        from azure.data.tables import UpdateMode

        try:
            self._table.update_entity(
                rows.key_entity(new),
                mode=UpdateMode.REPLACE,
                etag=old.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        except (ResourceModifiedError, ResourceNotFoundError) as error:
            found = self.get_key(new.key)
            if found is None or found.job_id != new.job_id:
                raise LostLeaseError from error

    def scan(self, query: Query, limit: int, token: str | None = None) -> Page:
        from azure.core.exceptions import ResourceNotFoundError

        condition, values = _condition(query)
        pages = self._table.query_entities(
            condition, parameters=values, select=list(rows.LIGHT), results_per_page=limit
        ).by_page(_continuation(token))
        try:
            found = [rows.job_of(row, row.metadata["etag"] or "") for row in next(pages, ())]
        except ResourceNotFoundError:  # the table itself: no job was ever made
            return Page((), None)
        following: Any = getattr(pages, "continuation_token", None)
        return Page(tuple(found), json.dumps(following) if following else None)

    def purge(self, job: Job) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        container = self._storage.container(CONTAINER)
        try:
            for name in list(container.list_blob_names(name_starts_with=keys.blob_prefix(job.job_id))):
                self.delete_blob(name)
        except ResourceNotFoundError:
            pass  # no body was ever stored
        if job.idempotency:
            self._drop_key(job)
        partition = keys.partition_key(job.job_id)
        found = self._table.query_entities(f"PartitionKey eq '{partition}'", select=["PartitionKey", "RowKey"])
        # The job's row goes last: as long as it stands, an interrupted purge is found and repeated.
        names = sorted((row["RowKey"] for row in found), key=lambda name: name == keys.JOB_ROW)
        for batch in itertools.batched(names, 100, strict=False):
            self._delete_rows(partition, batch)

    def blob_page(self, marker: str) -> BlobPage:
        from azure.core.exceptions import ResourceNotFoundError

        pages = self._storage.container(CONTAINER).list_blob_names().by_page(marker or None)
        try:
            names = tuple(str(name) for name in next(pages, ()))
        except ResourceNotFoundError:
            return BlobPage((), "")
        return BlobPage(names, getattr(pages, "continuation_token", None) or "")

    def take_poison(self) -> list[str]:
        from azure.core.exceptions import ResourceNotFoundError

        queue = self._storage.raw_queue(POISON_QUEUE)
        taken = []
        try:
            for message in queue.receive_messages(messages_per_page=32, max_messages=32, visibility_timeout=60):
                queue.delete_message(message)
                taken.append(str(message.content))
        except ResourceNotFoundError:
            pass  # nothing was ever given up
        return taken

    def get_state(self, name: str) -> str:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return str(self._table.get_entity(keys.STATE_PARTITION, name)["value"])
        except ResourceNotFoundError:
            return ""

    def put_state(self, name: str, value: str) -> None:
        from azure.core.exceptions import ResourceNotFoundError
        from azure.data.tables import UpdateMode

        row = {"PartitionKey": keys.STATE_PARTITION, "RowKey": name, "value": value}
        try:
            self._table.upsert_entity(row, mode=UpdateMode.REPLACE)
        except ResourceNotFoundError:
            _make(self._table.create_table)
            self._table.upsert_entity(row, mode=UpdateMode.REPLACE)

    def _drop_key(self, job: Job) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceModifiedError

        row = self.get_key(job.idempotency)
        if row is None or row.job_id != job.job_id:
            return
        try:
            self._table.delete_entity(
                keys.key_partition(row.key),
                keys.KEY_ROW,
                etag=row.etag,
                match_condition=MatchConditions.IfNotModified,
            )
        except ResourceModifiedError:
            return  # a newer job has it now

    def _delete_rows(self, partition: str, names: Sequence[str]) -> None:
        from azure.core.exceptions import HttpResponseError

        operations = [("delete", {"PartitionKey": partition, "RowKey": name}) for name in names]
        try:
            self._table.submit_transaction(operations)
        except HttpResponseError as error:
            if error.status_code != 404:
                raise
            # Somebody else removes the same job.

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
            return replace(fresh, etag=answers[0]["etag"] or "")

        return self._conditional(fresh, submit)

    def _conditional(self, fresh: Job, write: Callable[[], Job]) -> Job:
        """Carries out a conditional write, whatever happens to its request or its answer on the way."""
        from azure.core.exceptions import HttpResponseError, ServiceRequestError, ServiceResponseError

        for repetition in range(WRITE_TRIES):
            if repetition > 1:
                time.sleep(WRITE_BACKOFF * 2 ** (repetition - 2))
            try:
                written = write()
                if written.etag:
                    return written
                # An answer that was cut off in its head is no answer: the repetition finds out what it was.
            except (ServiceRequestError, ServiceResponseError, OSError):
                # OSError: a transaction's answer that breaks off in its body is read outside of the SDK's care.
                if repetition == WRITE_TRIES - 1:
                    raise
            except HttpResponseError as error:
                if error_code(error) == "TableNotFound":
                    _make(self._table.create_table)
                elif error.status_code in (404, 409, 412):
                    return self._own_write(fresh, error)
                elif error.status_code not in _TRANSIENT or repetition == WRITE_TRIES - 1:
                    raise
        raise JobError("The job could not be written.")

    def _own_write(self, fresh: Job, error: Exception) -> Job:
        """The row as stored, if it is the one we wrote: then only the answer was lost."""
        stored = self.get(fresh.job_id)
        if stored is not None and stored.nonce == fresh.nonce:
            return stored
        raise LostLeaseError from error


def _continuation(token: str | None) -> Any:
    """What the SDK goes on from: the service's two markers, which say nothing to anybody else."""
    if token is None:
        return None
    try:
        found = json.loads(token)
        return {name: str(found[name]) for name in ("PartitionKey", "RowKey")}
    except (ValueError, TypeError, KeyError):
        raise InputError("the scan cannot go on from there") from None


def _condition(query: Query) -> tuple[str, dict[str, str]]:
    """The filter of a scan, in the table service's language, and the values in it."""
    values = {"row": keys.JOB_ROW, "before": query.before or keys.END_OF_JOBS}
    terms = ["RowKey eq @row", "PartitionKey lt @before"]
    if query.start:
        terms.append("PartitionKey ge @start")
        values["start"] = query.start
    if query.owner is not None:
        terms.append("owner eq @owner")
        values["owner"] = query.owner
    if query.tool_name is not None:
        terms.append("toolName eq @tool")
        values["tool"] = query.tool_name
    if query.statuses:
        values |= {f"status{number}": str(status) for number, status in enumerate(query.statuses)}
        among = " or ".join(f"status eq @status{number}" for number in range(len(query.statuses)))
        terms.append(f"( {among} )")  # the SDK finds its parameters by the blanks around them
    return " and ".join(terms), values


def _job_among(found: Iterable[Any]) -> Job | None:
    row = next((row for row in found if row["RowKey"] == keys.JOB_ROW), None)
    return None if row is None else rows.job_of(row, row.metadata["etag"])


def _make(create: Callable[[], Any]) -> None:
    from azure.core.exceptions import ResourceExistsError

    try:
        create()
    except ResourceExistsError:
        return  # another instance was quicker
