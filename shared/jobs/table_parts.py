"""Where jobs are kept in a storage account: one table, one queue, one container, made when first missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.jobs.store import CONTAINER, QUEUE, TABLE

if TYPE_CHECKING:
    from azure.data.tables import TableClient
    from azure.storage.blob import ContainerClient
    from azure.storage.queue import QueueClient

    from shared.storage import Storage


class Parts:
    """The clients that every part of the store works with."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def _table(self) -> TableClient:
        return self._storage.table(TABLE)

    @property
    def _queue(self) -> QueueClient:
        return self._storage.queue(QUEUE)

    @property
    def _container(self) -> ContainerClient:
        return self._storage.container(CONTAINER)
