"""Invocation records in a real table."""

from __future__ import annotations

import pytest

from infra.local.azurite import Azurite
from shared import ids
from shared.invocations.record import BUCKET_MS, TABLE, Line, partition_key, records_of
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


def test_old_records_go_within_the_budget_and_young_ones_stay(azurite: Azurite) -> None:
    storage = Storage(azurite.connection_string)
    base = BUCKET_MS * 2 * 10**6
    stores = [TableInvocationStore(storage) for _ in range(3)]
    for number, store in enumerate(stores):
        for bucket in range(4):
            record = a_record(id=ids.new_id(base + bucket * BUCKET_MS + number), owner="ana")
            store.write([Line(record.id, record.line())])
    mine = {store._process for store in stores}

    def left() -> list[str]:
        rows = storage.table(TABLE).list_entities()
        return sorted(row["PartitionKey"] for row in rows if row["PartitionKey"].rpartition("-")[2] in mine)

    before = base + 2 * BUCKET_MS
    young = [key for key in left() if key <= partition_key(before, "g")]
    assert len(young) == 6
    assert stores[0].purge(before, 0) == 0
    # Others' older records of the same table may go too.
    removed = stores[0].purge(before, 2)
    assert removed > 0
    assert len(left()) >= 10
    for _ in range(20):
        if stores[1].purge(before, 2) == 0:
            break
    assert left() == young
    assert stores[0].purge(before, 100) == 0


def test_without_a_table_there_is_nothing_to_remove(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.invocations.store.TABLE", "neverrecorded")
    assert TableInvocationStore(Storage(azurite.connection_string)).purge(BUCKET_MS * 10**7, 10) == 0
