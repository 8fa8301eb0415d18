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
from collections.abc import Callable, Iterator
from dataclasses import replace

from shared.errors import LostLeaseError
from shared.jobs import keys, rows
from shared.jobs.logs import LogLine, read_lines
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job
from shared.jobs.store import NOTHING_ELSE, BlobPage, Change, KeyRow, Opened, Page, Query, StoredFile


class MemoryJobStore:
    """A `JobStore`. Thread-safe."""

    def __init__(self) -> None:
        #: (partition key, row key) -> entity
        self.rows: dict[tuple[str, str], rows.Entity] = {}
        self.blobs: dict[str, bytes] = {}
        self.mime_types: dict[str, str] = {}
        #: Bodies of messages sent and not taken yet.
        self.messages: deque[str] = deque()
        #: Bodies of messages that are to be seen later; nobody here lets time pass.
        self.postponed: deque[str] = deque()
        #: Bodies on the poison queue, as they would be stored: base64, or what nobody can decode.
        self.poison: deque[str] = deque()
        self.blob_page_size = 100
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

    def send(self, job_id: str, *, delay: int = 0) -> None:
        self.requests["send"] += 1
        (self.postponed if delay else self.messages).append(json.dumps({"jobId": job_id}))

    def get(self, job_id: str) -> Job | None:
        self.requests["get"] += 1
        return self._job(job_id)

    def open(self, job_id: str) -> Opened | None:
        with self._lock:
            self.requests["open"] += 1
            job = self._job(job_id)
            if job is None:
                return None
            return Opened(job, self._sealed(job_id, keys.INPUT_ROW), self._sealed(job_id, keys.CHECKPOINT_ROW))

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
            if change.kept is not None:
                self._put(rows.checkpoint_entity(job.job_id, change.kept))
            if change.drop_input:
                self.rows.pop((keys.partition_key(job.job_id), keys.INPUT_ROW), None)
            if change.drop_kept:
                del self.rows[keys.partition_key(job.job_id), keys.CHECKPOINT_ROW]
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

    def delete_parts(self, job_id: str) -> None:
        self.requests["delete_parts"] += 1
        for name in [name for name in self.blobs if name.startswith(keys.parts_prefix(job_id))]:
            del self.blobs[name]

    def put_artifact(self, name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        self.requests["put_artifact"] += 1
        self.blobs[name] = data if isinstance(data, bytes) else b"".join(data)
        self.mime_types[name] = mime_type

    def get_artifact(self, name: str, offset: int = 0, length: int | None = None) -> StoredFile | None:
        self.requests["get_artifact"] += 1
        whole = self.blobs.get(name)
        if whole is None:
            return None
        part = whole if length is None else whole[offset : offset + length]
        return StoredFile(part, len(whole), self.mime_types[name], f'"{hash(whole):x}"')

    def take_key(self, row: KeyRow) -> KeyRow | None:
        with self._lock:
            self.requests["take_key"] += 1
            found = self._key(row.key)
            if found is None:
                self._put({**rows.key_entity(row), "etag": f"W/{next(self._etags)}"})
            return None if found is None or found.job_id == row.job_id else found

    def get_key(self, key: str) -> KeyRow | None:
        self.requests["get_key"] += 1
        return self._key(key)

    def replace_key(self, old: KeyRow, new: KeyRow) -> None:
        with self._lock:
            self.requests["replace_key"] += 1
            found = self._key(old.key)
            if found is None or found.etag != old.etag:
                raise LostLeaseError
            self._put({**rows.key_entity(new), "etag": f"W/{next(self._etags)}"})

    def scan(self, query: Query, limit: int, token: str | None = None) -> Page:
        with self._lock:
            self.requests["scan"] += 1
            found = []
            for partition, row_key in sorted(self.rows):
                if row_key != keys.JOB_ROW or partition >= (query.before or keys.END_OF_JOBS):
                    continue
                if partition < max(query.start, token or ""):
                    continue
                row = self.rows[partition, row_key]
                if (
                    query.owner in (None, row["owner"])
                    and query.tool_name in (None, row["toolName"])
                    and (not query.statuses or row["status"] in query.statuses)
                ):
                    found.append(row)
            more = found[limit:]
            jobs = rows.readable((row, row["etag"]) for row in found[:limit])
            return Page(jobs, more[0]["PartitionKey"] if more else None)

    def purge(self, job: Job) -> int:
        with self._lock:
            self.requests["purge"] += 1
            prefix = keys.blob_prefix(job.job_id)
            requests = 3 + sum(name.startswith(prefix) for name in self.blobs) + 2 * bool(job.idempotency)
            self.blobs = {name: data for name, data in self.blobs.items() if not name.startswith(prefix)}
            key = self._key(job.idempotency) if job.idempotency else None
            if key is not None and key.job_id == job.job_id:
                del self.rows[keys.key_partition(key.key), keys.KEY_ROW]
            partition = keys.partition_key(job.job_id)
            self.rows = {key: row for key, row in self.rows.items() if key[0] != partition}
            return requests

    def blob_page(self, marker: str) -> BlobPage:
        self.requests["blob_page"] += 1
        names = [name for name in sorted(self.blobs) if name >= marker]
        size = self.blob_page_size
        return BlobPage(tuple(names[:size]), names[size] if len(names) > size else "")

    def drain_poison(self, deal: Callable[[str], bool]) -> int:
        self.requests["drain_poison"] += 1
        dealt = [message for message in list(self.poison) if deal(message)]
        for message in dealt:
            self.poison.remove(message)
        return len(dealt)

    def get_state(self, name: str) -> str:
        self.requests["get_state"] += 1
        return str(self.rows.get((keys.STATE_PARTITION, name), {}).get("value", ""))

    def put_state(self, name: str, value: str) -> None:
        self.requests["put_state"] += 1
        self._put({"PartitionKey": keys.STATE_PARTITION, "RowKey": name, "value": value})

    def _key(self, key: str) -> KeyRow | None:
        row = self.rows.get((keys.key_partition(key), keys.KEY_ROW))
        return None if row is None else rows.key_of(row, row["etag"])

    def _store(self, job: Job) -> Job:
        fresh = replace(job, nonce=rows.new_nonce(), etag=f"W/{next(self._etags)}")
        self._put({**rows.job_entity(fresh), "etag": fresh.etag})
        return fresh

    def _job(self, job_id: str) -> Job | None:
        row = self._row(job_id, keys.JOB_ROW)
        return None if row is None else rows.job_of(row, row["etag"])

    def _sealed(self, job_id: str, row_key: str) -> bytes | None:
        row = self._row(job_id, row_key)
        return None if row is None else row[rows.SEALED]

    def _row(self, job_id: str, row_key: str) -> rows.Entity | None:
        return self.rows.get((keys.partition_key(job_id), row_key))

    def _put(self, entity: rows.Entity) -> None:
        self.rows[entity["PartitionKey"], entity["RowKey"]] = entity
