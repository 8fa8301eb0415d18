"""Reads stored invocation records: newest first, row by row, with bounds on requests and on work; or one."""

from __future__ import annotations

import logging
import zlib
from collections import deque
from typing import Final

from shared.invocations.record import Record, records_of
from shared.invocations.store import InvocationReader, StoredRow

_LOG = logging.getLogger(__name__)

#: Sorts above every id: nothing has been read yet.
NOTHING_READ: Final = "~"
#: Sorts below every id: everything has been read.
ALL_READ: Final = ""
#: Records that one reading unpacks: rows of a busy app hold thousands, and most may be other owners'.
MOST_RECORDS: Final = 20_000


class RecordReading:
    """One reading of the records older than `before` (an id; "": from the newest on).

    `low` tells how far it has got: every record whose id is `low` or greater has been given.
    """

    def __init__(
        self, store: InvocationReader, before: str, token: str | None, *, rows: int, requests: int
    ) -> None:
        """`token`: where an earlier reading of the same `before` has stopped. `rows`: of one request."""
        self.before = before
        self.token = token
        self.low = NOTHING_READ
        self._store = store
        self._rows = rows
        self._requests = requests
        self._left = MOST_RECORDS
        self._waiting: deque[StoredRow] = deque()

    @property
    def drained(self) -> bool:
        """Whether every row that was fetched has been unpacked: the token then tells where to go on."""
        return not self._waiting

    def more(self) -> list[Record] | None:
        """More records, in no order; maybe none. None: this reading has done what it may. Blocks."""
        if self._waiting:
            return None if self._left <= 0 else self._unpacked()
        if self.low == ALL_READ or self._requests <= 0:
            return None
        page = self._store.scan(self.before, self._rows, self.token)
        self.token = page.token
        self._waiting.extend(page.rows)
        if self._counts or not page.rows:
            self._requests -= 1
        return self._unpacked()

    @property
    def _counts(self) -> bool:
        """Whether work counts: what lies above the beginning, a few seconds, must be read for any progress."""
        return not self.before or self.low < self.before

    def _unpacked(self) -> list[Record]:
        found: list[Record] = []
        if self._waiting:
            row = self._waiting.popleft()
            self.low = row.newest
            found = _records(row)
            if self._counts:
                self._left -= len(found)
        if not self._waiting and self.token is None:
            self.low = ALL_READ
        return found


def record_of(store: InvocationReader, identifier: str) -> Record | None:
    """The record of the call whose id it is; None: it is not stored, or not yet. Blocks."""
    for row in store.around(identifier):
        for record in _records(row):
            if record.id == identifier:
                return record
    return None


def _records(row: StoredRow) -> list[Record]:
    """What a row holds. One that cannot be read must not hide the others: it is logged."""
    try:
        return records_of(row.lines)
    except (ValueError, KeyError, zlib.error) as error:
        _LOG.error("the invocations up to %s cannot be read: %r", row.newest, error)
        return []
