"""Writes invocation records to Table storage, many in a row."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from shared.invocations.record import TABLE, Line, entities, partition_key

if TYPE_CHECKING:
    from shared.storage import Storage


#: Rows that one transaction may remove.
BATCH: Final = 100


class InvocationStore(Protocol):
    def write(self, lines: Sequence[Line]) -> None:
        """Stores records. Writing the same ones again changes nothing. Blocks."""


class TableInvocationStore:
    """Records in the app's storage account; the table is made when first missed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        #: Names this process in its partitions' keys.
        self._process = os.urandom(4).hex()

    def write(self, lines: Sequence[Line]) -> None:
        from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
        from azure.data.tables import UpdateMode

        table = self._storage.table(TABLE)
        for row in entities(lines, self._process):
            try:
                # Replaced, not inserted: a row whose answer was lost is written again.
                table.upsert_entity(row, mode=UpdateMode.REPLACE)
            except ResourceNotFoundError:
                with contextlib.suppress(ResourceExistsError):  # another process was quicker
                    table.create_table()
                table.upsert_entity(row, mode=UpdateMode.REPLACE)

    def purge(self, before_ms: int, budget: int) -> int:
        """Removes rows older than a time, with at most `budget` requests. The number of rows. Blocks."""
        from azure.core.exceptions import ResourceNotFoundError

        table = self._storage.table(TABLE)
        # A partition's records are as old as its bucket at least.
        condition, values = "PartitionKey gt @bucket", {"bucket": partition_key(before_ms, "g")}
        removed = 0
        try:
            found = table.query_entities(
                condition, parameters=values, select=["PartitionKey", "RowKey"], results_per_page=1_000
            )
            for partition, rows in itertools.groupby(found, key=lambda row: str(row["PartitionKey"])):
                for batch in itertools.batched(rows, BATCH, strict=False):
                    if budget <= 0:
                        return removed
                    budget -= 1
                    names = [str(row["RowKey"]) for row in batch]
                    removed += self._remove(partition, names)
        except ResourceNotFoundError:
            return removed  # nothing was ever recorded
        return removed

    def _remove(self, partition: str, names: Sequence[str]) -> int:
        from azure.core.exceptions import HttpResponseError

        operations = [("delete", {"PartitionKey": partition, "RowKey": name}) for name in names]
        try:
            self._storage.table(TABLE).submit_transaction(operations)
        except HttpResponseError as error:
            if error.status_code != 404:
                raise
            return 0  # somebody else removes the same rows
        return len(names)
