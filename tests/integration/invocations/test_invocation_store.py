"""Invocation records in a real table."""

from __future__ import annotations

import pytest

from infra.local.azurite import Azurite
from shared import ids
from shared.errors import InputError
from shared.invocations.reading import RecordReading, record_of
from shared.invocations.record import BUCKET_MS, SPAN_MS, TABLE, Line, Record, partition_key, records_of
from shared.invocations.store import StoredRow, TableInvocationStore, conditions_around
from shared.storage import Storage
from tests.unit.invocations.test_log import a_record

pytestmark = pytest.mark.integration


def recorded(store: TableInvocationStore, *moments: int, **values: str) -> list[Record]:
    """One record for each moment, all stored together."""
    records = [a_record(id=ids.new_id(moment), **values) for moment in moments]
    store.write([Line(record.id, record.line()) for record in records])
    return records


def test_records_come_back_newest_first_and_once(azurite: Azurite) -> None:
    store = TableInvocationStore(Storage(azurite.connection_string))
    base = BUCKET_MS * 10**6
    moments = [base + step * BUCKET_MS // 60 for step in range(130)]
    records = [
        a_record(id=ids.new_id(moment), error="漢" * 500, prefill_summary="{}", owner="ana")
        for moment in moments
    ]
    lines = [Line(record.id, record.line()) for record in records]
    for batch in (lines[:50], lines[50:100], lines[100:]):
        store.write(batch)
    # A row whose answer was lost is written again.
    store.write(lines[100:])
    above = ids.new_id(moments[-1] + 1)
    found: list[StoredRow] = []
    page = store.scan(above, 40)
    while page.token is not None:
        found += page.rows
        page = store.scan(above, 40, page.token)
    found += page.rows
    mine = [row for row in found if base <= ids.milliseconds_of(row.newest)]
    assert [row.newest for row in mine] == sorted((row.newest for row in mine), reverse=True)
    assert [record for row in reversed(mine) for record in records_of(row.lines)] == records


def test_a_scan_begins_where_it_should_however_the_rows_overlap(azurite: Azurite) -> None:
    store = TableInvocationStore(Storage(azurite.connection_string))
    base = BUCKET_MS * 4 * 10**6 - 2_000  # the span reaches over the edge of a bucket
    recorded(store, base - 10_000)
    early = recorded(store, base, base + SPAN_MS)
    middle = recorded(store, base + 1_000, base + 1_001)
    late = recorded(store, base + 2_000, base + 2_001)
    reading = RecordReading(store, middle[1].id, None, rows=2, requests=5)
    found: list[Record] = []
    while reading.low > early[0].id:
        found += reading.more() or []
    ids_found = {record.id for record in found}
    assert {early[0].id, middle[0].id} <= ids_found
    assert not {record.id for record in late} & ids_found


@pytest.mark.parametrize("token", ["x", "{}", "[]", '{"PartitionKey": 1, "RowKey": "a"}'])
def test_a_scan_goes_on_only_from_a_page_of_its_own(azurite: Azurite, token: str) -> None:
    with pytest.raises(InputError):
        TableInvocationStore(Storage(azurite.connection_string)).scan("", 10, token)


def test_old_records_go_within_the_budget_and_young_ones_stay(azurite: Azurite) -> None:
    storage = Storage(azurite.connection_string)
    store = TableInvocationStore(storage)
    base = BUCKET_MS * 2 * 10**6
    mine = {
        record.id
        for number in range(3)
        for bucket in range(4)
        for record in recorded(store, base + bucket * BUCKET_MS + number * SPAN_MS // 2 * 3, owner="ana")
    }

    def left() -> list[str]:
        return sorted(
            row["PartitionKey"] for row in storage.table(TABLE).list_entities() if row["oldest"] in mine
        )

    before = base + 2 * BUCKET_MS
    young = [key for key in left() if key <= partition_key(before)]
    assert len(young) == 6
    assert store.purge(before, 0) == 0
    # Others' older records of the same table may go too.
    removed = store.purge(before, 1)
    assert removed > 0
    assert len(left()) >= 9
    for _ in range(20):
        if store.purge(before, 2) == 0:
            break
    assert left() == young
    assert store.purge(before, 100) == 0


def test_without_a_table_there_is_nothing_to_remove(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.invocations.store.TABLE", "neverrecorded")
    store = TableInvocationStore(Storage(azurite.connection_string))
    assert store.purge(BUCKET_MS * 10**7, 10) == 0
    assert (store.scan("", 10).rows, store.scan("", 10).token) == ((), None)


@pytest.mark.parametrize("edge", [0, 1, 2_000, SPAN_MS, BUCKET_MS // 2])
def test_one_call_is_found_wherever_its_bucket_ends(azurite: Azurite, edge: int) -> None:
    """Its row may lie in the next bucket: that of the newest call in it."""
    store = TableInvocationStore(Storage(azurite.connection_string))
    base = BUCKET_MS * (5 * 10**6 + edge) - edge
    records = recorded(store, base, base + 1, base + SPAN_MS)
    others = [*recorded(store, base - 1, base + 2_000), *recorded(store, base + SPAN_MS + 1)]
    for record in (*records, *others):
        assert record_of(store, record.id) == record
        assert len(store.around(record.id)) <= 3
    assert record_of(store, ids.new_id(base + 1)) is None
    assert record_of(store, ids.new_id(base + 9 * BUCKET_MS)) is None


def test_one_call_costs_one_query_and_two_near_the_edge_of_a_bucket() -> None:
    base = BUCKET_MS * 8 * 10**6
    assert len(conditions_around(ids.new_id(base))) == 1
    assert len(conditions_around(ids.new_id(base - SPAN_MS - 1))) == 1
    assert len(conditions_around(ids.new_id(base - 1))) == 2
