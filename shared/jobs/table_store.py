"""Jobs in the app's storage account: the parts of it put together, and reading."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from shared.errors import LostLeaseError
from shared.jobs import keys, rows, table_scan
from shared.jobs.logs import LogLine, read_lines
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job
from shared.jobs.store import NOTHING_ELSE, POISON_QUEUE, Change, Opened, Page, Query
from shared.jobs.table_bodies import Bodies
from shared.jobs.table_keys import SideRows
from shared.jobs.table_write import RowWriter
from shared.storage import continuation, delete_rows, make

#: For how long poison messages are nobody else's while they are dealt with.
POISON_SECONDS: Final = 60


class TableJobStore(RowWriter, Bodies, SideRows):
    """Jobs in the app's storage account. Tables, queue and container are made when first missed."""

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
        if change.kept is not None:
            kept = rows.checkpoint_entity(job.job_id, change.kept)
            operations.append(("upsert", kept, {"mode": UpdateMode.REPLACE}))
        if change.drop_input:
            operations.append(("delete", rows.input_key(job.job_id)))
        if change.drop_kept:
            operations.append(("delete", rows.checkpoint_key(job.job_id)))
        try:
            return self._transact(fresh, operations)
        except LostLeaseError:
            if not (change.drop_input and self._lacks_input(job)):
                raise
        return self.write(job, replace(change, drop_input=False))

    def send(self, job_id: str, *, delay: int = 0) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        queue = self._queue
        body = json.dumps({"jobId": job_id})
        try:
            queue.send_message(body, visibility_timeout=delay or None)
        except ResourceNotFoundError:
            make(queue.create_queue)
            queue.send_message(body, visibility_timeout=delay or None)

    def open(self, job_id: str) -> Opened | None:
        found = self._partition(job_id, f"RowKey le '{keys.JOB_ROW}'")
        job = _job_among(found)
        if job is None:
            return None
        sealed = {row["RowKey"]: bytes(row[rows.SEALED]) for row in found if rows.SEALED in row}
        return Opened(job, sealed.get(keys.INPUT_ROW), sealed.get(keys.CHECKPOINT_ROW))

    def with_logs(self, job_id: str) -> tuple[Job, list[LogLine]] | None:
        found = self._partition(job_id, f"RowKey ge '{keys.JOB_ROW}'")
        job = _job_among(found)
        if job is None:
            return None
        chunks = [row[rows.LINES] for row in found if row["RowKey"].startswith(keys.LOG_ROW_PREFIX)]
        return job, read_lines(chunks)

    def scan(self, query: Query, limit: int, token: str | None = None) -> Page:
        from azure.core.exceptions import ResourceNotFoundError

        condition, values = table_scan.condition(query)
        pages = self._table.query_entities(
            condition, parameters=values, select=list(rows.LIGHT), results_per_page=limit
        ).by_page(continuation(token))
        try:
            found = rows.readable((row, row.metadata["etag"] or "") for row in next(pages, ()))
        except ResourceNotFoundError:  # the table itself: no job was ever made
            return Page((), None)
        following: Any = getattr(pages, "continuation_token", None)
        return Page(found, json.dumps(following) if following else None)

    def purge(self, job: Job) -> int:
        from azure.core.exceptions import ResourceNotFoundError

        requests = 2  # the two lists
        try:
            for name in list(self._container.list_blob_names(name_starts_with=keys.blob_prefix(job.job_id))):
                self.delete_blob(name)
                requests += 1
        except ResourceNotFoundError:
            pass  # no body was ever stored
        if job.idempotency:
            self._drop_key(job)
            requests += 2
        partition = keys.partition_key(job.job_id)
        found = self._table.query_entities(f"PartitionKey eq '{partition}'", select=["PartitionKey", "RowKey"])
        # The job's row goes last: as long as it stands, an interrupted purge is found and repeated.
        names = sorted((row["RowKey"] for row in found), key=lambda name: name == keys.JOB_ROW)
        for batch in itertools.batched(names, 100, strict=False):
            delete_rows(self._table, partition, batch)
            requests += 1
        return requests

    def drain_poison(self, deal: Callable[[str], bool]) -> int:
        from azure.core.exceptions import ResourceNotFoundError

        queue = self._storage.raw_queue(POISON_QUEUE)
        dealt = 0
        try:
            for message in queue.receive_messages(
                messages_per_page=32, max_messages=32, visibility_timeout=POISON_SECONDS
            ):
                if deal(str(message.content)):
                    queue.delete_message(message)
                    dealt += 1
        except ResourceNotFoundError:
            return dealt  # nothing was ever given up
        return dealt

    def _lacks_input(self, job: Job) -> bool:
        """Whether a row is as it was read, and its input is gone: nothing is left to erase then."""
        found = self.open(job.job_id)
        return found is not None and found.job.etag == job.etag and found.sealed is None

    def _partition(self, job_id: str, row_filter: str) -> list[Any]:
        from azure.core.exceptions import ResourceNotFoundError

        condition = f"PartitionKey eq '{keys.partition_key(job_id)}' and {row_filter}"
        try:
            return list(self._table.query_entities(condition))
        except ResourceNotFoundError:  # the table itself: no job was ever made
            return []


def _job_among(found: Iterable[Any]) -> Job | None:
    row = next((row for row in found if row["RowKey"] == keys.JOB_ROW), None)
    return None if row is None else rows.job_of(row, row.metadata["etag"])
