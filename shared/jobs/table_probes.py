"""The job store as health looks at it: on clients that give up soon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.jobs.store import POISON_QUEUE
from shared.jobs.table_store import TableJobStore

if TYPE_CHECKING:
    from azure.storage.queue import QueueClient


class TableProbes(TableJobStore):
    """See `shared.jobs.health.ProbeStore`. Made on a `Storage` with `shared.storage.QUICK`."""

    def load(self) -> None:
        _ = (self._table, self._queue, self._container)

    def queued(self) -> int:
        return self._count(self._queue)

    def poisoned(self) -> int:
        return self._count(self._storage.queue(POISON_QUEUE))

    def reach_bodies(self) -> None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            self._container.get_container_properties()
        except ResourceNotFoundError:
            return  # no body was ever stored

    @staticmethod
    def _count(queue: QueueClient) -> int:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            return int(queue.get_queue_properties().approximate_message_count or 0)
        except ResourceNotFoundError:
            return 0  # no message was ever sent
