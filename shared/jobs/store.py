"""What the job engine needs of storage, whoever provides it.

One partition of a table per job, a queue of hints, a container of large bodies. All methods block; call them
through `shared.storage.run`. `shared.jobs.table_store` is the one on a storage account, `shared.jobs.testing`
the one in memory; the same tests hold for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from shared.jobs.logs import LogLine
from shared.jobs.model import Job, Status
from shared.jobs.queues import POISON_QUEUE as POISON_QUEUE
from shared.jobs.queues import QUEUE as QUEUE

TABLE: Final = "jobs"
CONTAINER: Final = "jobs"


@dataclass(frozen=True, slots=True)
class Change:
    """What is written together with a job row, in one transaction."""

    chunks: tuple[tuple[int, bytes], ...] = ()
    drop_input: bool = False
    #: What the attempt keeps for the next one, sealed; None: as it is.
    kept: bytes | None = field(default=None, repr=False)
    drop_kept: bool = False

    @property
    def empty(self) -> bool:
        return not self.chunks and not self.drop_input and self.kept is None and not self.drop_kept


NOTHING_ELSE: Final = Change()


@dataclass(frozen=True, slots=True)
class Opened:
    """A job with its sealed input, and what an earlier attempt has kept, as a worker reads it."""

    job: Job
    #: None when the input is in a blob, or erased.
    sealed: bytes | None = field(repr=False)
    #: None when nothing was kept.
    kept: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class KeyRow:
    """What an idempotency key stands for."""

    #: The hash that is the row's partition.
    key: str
    job_id: str
    #: Digest of the arguments that came with the key.
    fingerprint: str
    etag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """Which jobs a scan looks for. Bounds are partition keys, newest first; absent ones do not bind."""

    #: From this partition on.
    start: str = ""
    #: Up to the one before this.
    before: str = ""
    owner: str | None = None
    tool_name: str | None = None
    statuses: tuple[Status, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a scan. It may be short, or empty, and still not be the last."""

    jobs: tuple[Job, ...]
    #: What gives the next page of the same query, the store's own business; None: there is none.
    token: str | None


@dataclass(frozen=True, slots=True)
class BlobPage:
    """Names of stored bodies, in their order, which is that of their jobs' ids: oldest first."""

    names: tuple[str, ...]
    #: Where the next page begins; "": there is none.
    next_marker: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An artifact, or a part of it."""

    data: bytes = field(repr=False)
    #: Of the whole file.
    size: int
    mime_type: str
    etag: str


class JobStore(Protocol):
    """One job at a time."""

    def create(self, job: Job, sealed: bytes) -> Job:
        """Inserts a job with its sealed input (in its row, or in its blob, as `job.input_at` says)."""

    def send(self, job_id: str, *, delay: int = 0) -> None:
        """Puts the queue message `{"jobId": …}`, to be seen after `delay` seconds."""

    def get(self, job_id: str) -> Job | None:
        """The job row alone."""

    def open(self, job_id: str) -> Opened | None:
        """The job row, its sealed input, and what an earlier attempt has kept, in one request."""

    def with_logs(self, job_id: str) -> tuple[Job, list[LogLine]] | None:
        """The job row and its newest log lines, in one request."""

    def write(self, job: Job, change: Change = NOTHING_ELSE) -> Job:
        """Replaces the row whose version is `job.etag`. Raises `LostLeaseError` when it has moved on."""

    def put_blob(self, name: str, data: bytes) -> None: ...

    def get_blob(self, name: str) -> bytes | None: ...

    def delete_blob(self, name: str) -> None: ...

    def delete_parts(self, job_id: str) -> None:
        """Removes the parts that the job's attempts have kept."""

    def put_artifact(self, name: str, data: bytes | Iterator[bytes], mime_type: str) -> None:
        """Stores a file under a blob's name, over one that is there."""

    def get_artifact(self, name: str, offset: int = 0, length: int | None = None) -> StoredFile | None:
        """A file, or `length` bytes from `offset` on; None when there is none."""

    def take_key(self, row: KeyRow) -> KeyRow | None:
        """Inserts an idempotency key's row; the row that is there already, if there is one."""

    def get_key(self, key: str) -> KeyRow | None: ...

    def replace_key(self, old: KeyRow, new: KeyRow) -> None:
        """Puts `new` in the place of `old`. Raises `LostLeaseError` when it is not there any more."""

    def scan(self, query: Query, limit: int, token: str | None = None) -> Page:
        """The jobs of a query, at most `limit`, newest first, from a page's token on. One request.

        A row that cannot be read is left out, and logged. Raises `InputError` for a token that no page gave.
        """

    def purge(self, job: Job) -> int:
        """Removes a job for good: its blobs, its idempotency key, then its rows. May be repeated.

        The number of requests that it took, near enough.
        """


class UpkeepStore(JobStore, Protocol):
    """What the timer needs besides: whole ranges, and what belongs to no job."""

    def blob_page(self, marker: str) -> BlobPage:
        """Names of some hundred stored bodies from a marker on ("": the first). One request."""

    def drain_poison(self, deal: Callable[[str], bool]) -> int:
        """Shows visible messages of the poison queue as they are: the host cannot decode all of them.

        Those that `deal` says are dealt with are removed, the others are seen again later. How many went.
        """

    def get_state(self, name: str) -> str:
        """What the timer remembers under a name; "" when nothing."""

    def put_state(self, name: str, value: str) -> None: ...
