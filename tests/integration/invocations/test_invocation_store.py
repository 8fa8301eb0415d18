"""Invocation records in a real table."""

from __future__ import annotations

import pytest

from infra.local.azurite import Azurite
from shared import ids
from shared.invocations.record import BUCKET_MS, TABLE, Line, records_of
from shared.invocations.store import TableInvocationStore
from shared.storage import Storage
from tests.unit.invocations.test_log import a_record

pytestmark = pytest.mark.integration


def test_records_come_back_newest_first_and_once(azurite: Azurite) -> None:
    storage = Storage(azurite.connection_string)
    store = TableInvocationStore(storage)
    moments = [BUCKET_MS * 10**6 + step * BUCKET_MS // 60 for step in range(130)]
    records = [
        a_record(id=ids.new_id(moment), error="漢" * 500, prefill_summary="{}", owner="ana")
        for moment in moments
    ]
    lines = [Line(record.id, record.line()) for record in records]
    for batch in (lines[:50], lines[50:100], lines[100:]):
        store.write(batch)
    # A row whose answer was lost is written again.
    store.write(lines[100:])
    rows = list(storage.table(TABLE).list_entities())
    mine = [row for row in rows if row["PartitionKey"].endswith(f"-{store._process}")]
    assert len(mine) == 3
    assert [record for row in reversed(mine) for record in records_of(row)] == records
