"""Writes invocation records to Table storage, many in a row."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from shared.invocations.record import TABLE, Line, entities, partition_key
from shared.storage import delete_rows, upsert

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
        for row in entities(lines, self._process):
            # Replaced, not inserted: a row whose answer was lost is written again.
            upsert(self._storage.table(TABLE), row)

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
                    removed += delete_rows(table, partition, [str(row["RowKey"]) for row in batch])
        except ResourceNotFoundError:
            return removed  # nothing was ever recorded
        return removed
