"""Invocation records in Table storage, many in a row: written, scanned, and removed when they are old."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from shared import ids
from shared.invocations.record import SPAN_MS, TABLE, Line, entities, partition_key
from shared.storage import continuation, delete_rows, upsert

if TYPE_CHECKING:
    from shared.storage import Storage


#: Rows that one transaction may remove.
BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row as it was stored, not yet read: see `shared.invocations.record`."""

    #: The id of its newest call.
    newest: str
    lines: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RowPage:
    """One answer of a scan, newest row first. It may be short, or empty, and still not be the last."""

    rows: tuple[StoredRow, ...]
    #: What gives the next page of the same scan, the store's own business; None: there is none.
    token: str | None


class InvocationReader(Protocol):
    def scan(self, before: str, limit: int, token: str | None = None) -> RowPage:
        """Rows with calls older than the one whose id is `before` ("": all rows), at most `limit`. One request.

        From a page's token on, if there is one. Blocks. Raises `InputError` for a token that no page gave.
        """

    def around(self, identifier: str) -> tuple[StoredRow, ...]:
        """The few rows that may hold the call of an id. One request; two near the edge of a bucket. Blocks."""


class InvocationStore(Protocol):
    def write(self, lines: Sequence[Line]) -> None:
        """Stores records. Writing the same ones again changes nothing. Blocks."""


class TableInvocationStore:
    """Records in the app's storage account; the table is made when first missed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(self, lines: Sequence[Line]) -> None:
        for row in entities(lines):
            # Replaced, not inserted: a row whose answer was lost is written again.
            upsert(self._storage.table(TABLE), row)

    def scan(self, before: str, limit: int, token: str | None = None) -> RowPage:
        from azure.core.exceptions import ResourceNotFoundError

        condition, values = condition_of(before)
        pages = (
            self._storage.table(TABLE)
            .query_entities(
                condition, parameters=values, select=["PartitionKey", "RowKey", "lines"], results_per_page=limit
            )
            .by_page(continuation(token))
        )
        try:
            found = tuple(StoredRow(ids.of_inverted(row["RowKey"]), row["lines"]) for row in next(pages, ()))
        except ResourceNotFoundError:  # the table itself: nothing was ever recorded
            return RowPage((), None)
        following: Any = getattr(pages, "continuation_token", None)
        return RowPage(found, json.dumps(following) if following else None)

    def around(self, identifier: str) -> tuple[StoredRow, ...]:
        from azure.core.exceptions import ResourceNotFoundError

        found: list[StoredRow] = []
        for condition, values in conditions_around(identifier):
            rows = self._storage.table(TABLE).query_entities(
                condition, parameters=values, select=["PartitionKey", "RowKey", "lines"]
            )
            try:
                found += (StoredRow(ids.of_inverted(row["RowKey"]), row["lines"]) for row in rows)
            except ResourceNotFoundError:
                return ()  # nothing was ever recorded
        return tuple(found)

    def purge(self, before_ms: int, budget: int) -> int:
        """Removes rows older than a time, with at most `budget` requests. The number of rows. Blocks."""
        from azure.core.exceptions import ResourceNotFoundError

        table = self._storage.table(TABLE)
        # A row's newest call is as old as its partition's bucket.
        condition, values = "PartitionKey gt @bucket", {"bucket": partition_key(before_ms)}
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


def condition_of(before: str) -> tuple[str, dict[str, str]]:
    """The filter of a scan, in the table service's language, and the values in it."""
    if not before:
        return "PartitionKey ge @first", {"first": "0"}
    # A row that holds an older call may have a newest one that is younger by its whole span.
    first = partition_key(ids.milliseconds_of(before) + SPAN_MS)
    return "PartitionKey ge @first and oldest lt @before", {"first": first, "before": before}


def conditions_around(identifier: str) -> list[tuple[str, dict[str, str]]]:
    """Filters, and the values in them, that find the rows which may hold the call of an id.

    The newest call of such a row is this one, or came within the row's span after it. Both ends of the range of
    row keys are given, so that storage looks at nothing else of the partition.
    """
    came = ids.milliseconds_of(identifier)
    last = came + SPAN_MS
    keys = {"first": ids.inverted_from(last), "last": ids.inverted(identifier), "id": identifier}
    condition = "PartitionKey eq @bucket and RowKey ge @first and RowKey le @last and oldest le @id"
    buckets = dict.fromkeys((partition_key(last), partition_key(came)))
    return [(condition, {"bucket": bucket, **keys}) for bucket in buckets]
