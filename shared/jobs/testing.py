"""A job store in memory, for tests of tools and of the engine: no storage account, the same behaviour.

    store = MemoryJobStore()
    worker = Worker(catalogue, store, Sealer((bytes(32),)), settings)

It keeps rows as the table would, so that what is written can be looked at, and counts what a storage account
would be asked.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter, deque
from dataclasses import replace

from shared.errors import LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.logs import LogLine, read_lines
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job
from shared.jobs.store import NOTHING_ELSE, Change, Opened


class MemoryJobStore:
    """A `JobStore`. Thread-safe."""

    def __init__(self) -> None:
        #: (partition key, row key) -> entity
        self.rows: dict[tuple[str, str], rows.Entity] = {}
        self.blobs: dict[str, bytes] = {}
        #: Bodies of messages sent and not taken yet.
        self.messages: deque[str] = deque()
        #: Requests by method's name.
        self.requests: Counter[str] = Counter()
        self._etags = itertools.count(1)
        self._lock = threading.RLock()

    def create(self, job: Job, sealed: bytes) -> Job:
        if job.input_at == INPUT_IN_BLOB:
            self.put_blob(keys.input_blob(job.job_id), sealed)
        with self._lock:
            self.requests["create"] += 1
            if self._row(job.job_id, keys.JOB_ROW) is not None:
                raise LostLeaseError
            if job.input_at == INPUT_IN_ROW:
                self._put(rows.input_entity(job.job_id, sealed))
            return self._store(job)

    def send(self, job_id: str) -> None:
        self.requests["send"] += 1
        self.messages.append(json.dumps({"jobId": job_id}))

    def get(self, job_id: str) -> Job | None:
        self.requests["get"] += 1
        return self._job(job_id)

    def open(self, job_id: str) -> Opened | None:
        with self._lock:
            self.requests["open"] += 1
            job = self._job(job_id)
            sealed = self._row(job_id, keys.INPUT_ROW)
            return None if job is None else Opened(job, None if sealed is None else sealed[rows.SEALED])

    def with_logs(self, job_id: str) -> tuple[Job, list[LogLine]] | None:
        with self._lock:
            self.requests["with_logs"] += 1
            job = self._job(job_id)
            partition = keys.partition_key(job_id)
            chunks = [
                row[rows.LINES] for (key, _), row in self.rows.items() if key == partition and rows.LINES in row
            ]
            return None if job is None else (job, read_lines(chunks))

    def write(self, job: Job, change: Change = NOTHING_ELSE) -> Job:
        with self._lock:
            self.requests["write"] += 1
            stored = self._row(job.job_id, keys.JOB_ROW)
            if stored is None or stored["etag"] != job.etag:
                raise LostLeaseError
            for slot, data in change.chunks:
                self._put(rows.chunk_entity(job.job_id, slot, data))
            if change.drop_input:
                del self.rows[keys.partition_key(job.job_id), keys.INPUT_ROW]
            return self._store(job)

    def put_blob(self, name: str, data: bytes) -> None:
        self.requests["put_blob"] += 1
        self.blobs[name] = data

    def get_blob(self, name: str) -> bytes | None:
        self.requests["get_blob"] += 1
        return self.blobs.get(name)

    def delete_blob(self, name: str) -> None:
        self.requests["delete_blob"] += 1
        self.blobs.pop(name, None)

    def _store(self, job: Job) -> Job:
        fresh = replace(job, nonce=rows.new_nonce(), etag=f"W/{next(self._etags)}")
        self._put({**rows.job_entity(fresh), "etag": fresh.etag})
        return fresh

    def _job(self, job_id: str) -> Job | None:
        row = self._row(job_id, keys.JOB_ROW)
        return None if row is None else rows.job_of(row, row["etag"])

    def _row(self, job_id: str, row_key: str) -> rows.Entity | None:
        return self.rows.get((keys.partition_key(job_id), row_key))

    def _put(self, entity: rows.Entity) -> None:
        self.rows[entity["PartitionKey"], entity["RowKey"]] = entity
