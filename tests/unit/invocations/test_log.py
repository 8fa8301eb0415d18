"""Every call leaves one record, and pays nothing for it."""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import ids
from shared.errors import SettingsError
from shared.invocations import log as log_module
from shared.invocations.log import InvocationLog
from shared.invocations.record import (
    BUCKET_MS,
    ROW_BYTES,
    SPAN_MS,
    Line,
    Outcome,
    Record,
    entities,
    partition_key,
    records_of,
)
from shared.telemetry.names import DROPPED, Attribute
from shared.telemetry.sampling import Sampler
from shared.telemetry.spans import Ended, Measured, switch

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def a_record(**values: Any) -> Record:
    known: dict[str, Any] = {
        "id": ids.new_id(),
        "tool_id": "t",
        "tool_name": "t",
        "outcome": Outcome.COMPLETED,
        "duration_ms": 5,
    }
    return Record(**{**known, **values})


def lines_of(caplog: pytest.LogCaptureFixture, *records: Record) -> list[dict[str, Any]]:
    """These records' lines in the log. Threads of other tests may write theirs there too."""
    told = [json.loads(line.getMessage()) for line in caplog.records if line.name == "toolbox.invocation"]
    return [line for line in told if line["correlationId"] in {f"mcp-{record.id}" for record in records}]


class Memory:
    """A store that can be out of reach."""

    def __init__(self, failures: int = 0) -> None:
        self.batches: list[list[Record]] = []
        self.failures = failures
        self.written = threading.Event()

    def write(self, lines: Sequence[Line]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no storage")
        self.batches.append([record for row in entities(lines) for record in records_of(row["lines"])])
        self.written.set()


class Counted:
    """Telemetry that keeps what is counted, on any thread of this process."""

    sampler = Sampler()
    propagates = True

    def __init__(self) -> None:
        self.items: list[Ended | Measured] = []

    def put(self, item: Ended | Measured) -> None:
        self.items.append(item)

    def pseudonym(self, owner: str) -> str:
        return ""

    def dropped(self) -> list[tuple[str, float]]:
        """(Of what, how many), in order."""
        return [
            (str(item.attributes[Attribute.RECORD]), item.value)
            for item in self.items
            if isinstance(item, Measured) and item.metric is DROPPED
        ]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    made = Counted()
    monkeypatch.setattr(switch, "out", made)
    return made


@given(
    st.integers(0, 2**48 - 1),
    st.sampled_from(Outcome),
    st.integers(0, 10**9),
    st.tuples(TEXT, TEXT, TEXT, TEXT, TEXT, TEXT),
)
def test_a_row_gives_its_record_back(
    moment: int, outcome: Outcome, took: int, texts: tuple[str, str, str, str, str, str]
) -> None:
    names = ("owner", "mode", "execution_mode", "job_id", "prefill_summary", "error")
    record = a_record(
        id=ids.new_id(moment % (2**41)),
        outcome=outcome,
        duration_ms=took,
        **dict(zip(names, texts, strict=True)),
    )
    (row,) = entities([Line(record.id, record.line())])
    assert records_of(row["lines"]) == [record]
    assert ids.of_inverted(row["RowKey"]) == row["oldest"] == record.id
    assert not set("/\\#?") & set(row["PartitionKey"] + row["RowKey"])


def test_rows_stay_below_what_a_property_may_hold() -> None:
    """Texts that cannot be compressed."""
    records = [a_record(error=base64.b64encode(os.urandom(1_500)).decode()) for _ in range(200)]
    rows = entities([Line(record.id, record.line()) for record in records])
    assert 4 < len(rows) < 20
    assert all(len(row["lines"]) <= ROW_BYTES for row in rows)
    assert [record for row in rows for record in records_of(row["lines"])] == records
    assert len({row["RowKey"] for row in rows}) == len(rows)


@given(st.lists(st.integers(0, 2**41), min_size=2, max_size=10))
def test_newer_records_sort_first(moments: list[int]) -> None:
    keys = [(partition_key(moment), ids.inverted(ids.new_id(moment))) for moment in sorted(set(moments))]
    assert keys == sorted(keys, reverse=True)
    assert partition_key(0) == partition_key(BUCKET_MS - 1) != partition_key(BUCKET_MS)


def test_no_row_reaches_over_a_long_time() -> None:
    """Calls that ended in one second and came in different ones: a list must not look far for its place."""
    base = 1_900_000_000_000
    came = [0, 200_000, 199_000, 4_000, 200_500, 100_000, 197_000]
    records = [a_record(id=ids.new_id(base + moment)) for moment in came]
    rows = entities([Line(record.id, record.line()) for record in records])
    spans = [(row["oldest"], ids.of_inverted(row["RowKey"])) for row in rows]
    assert all(ids.milliseconds_of(high) - ids.milliseconds_of(low) <= SPAN_MS for low, high in spans)
    assert spans == [(records[at].id, records[to].id) for at, to in ((0, 3), (5, 5), (6, 4))]
    assert sorted(record.id for row in rows for record in records_of(row["lines"])) == sorted(
        record.id for record in records
    )


def test_calls_of_a_second_share_one_write() -> None:
    store = Memory()
    log = InvocationLog(lambda: store, flush_every=0.2)
    records = [a_record() for _ in range(7)]
    for record in records:
        log.add(lambda record=record: record)  # type: ignore[misc]
    assert store.written.wait(10)
    assert store.batches == [records]


def test_many_records_are_written_in_bounded_batches_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "BATCH", 100)
    store = Memory()
    log = InvocationLog(lambda: store, flush_every=60)
    records = [a_record() for _ in range(250)]
    for record in records:
        log.add(lambda record=record: record)  # type: ignore[misc]
    assert log.flush()
    assert [len(batch) for batch in store.batches] == [100, 100, 50]
    assert [record for batch in store.batches for record in batch] == records


def test_what_storage_did_not_take_goes_with_the_next_write(caplog: pytest.LogCaptureFixture) -> None:
    store = Memory(failures=1)
    log = InvocationLog(lambda: store, flush_every=60)
    first, second = a_record(), a_record()
    log.add(lambda: first)
    assert not log.flush()
    assert "could not be stored yet" in caplog.text
    log.add(lambda: second)
    assert log.flush()
    assert store.batches == [[first, second]]


def test_the_thread_tries_again_by_itself() -> None:
    store = Memory(failures=2)
    log = InvocationLog(lambda: store, flush_every=0.02)
    record = a_record()
    log.add(lambda: record)
    assert store.written.wait(10)
    assert store.batches == [[record]]


def test_a_storage_that_stays_away_costs_bounded_memory_and_says_what_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, counted: Counted
) -> None:
    records = [a_record() for _ in range(5)]
    monkeypatch.setattr(log_module, "MOST_BYTES", 3 * len(records[0].line()))
    store = Memory(failures=1)
    log = InvocationLog(lambda: store, flush_every=60)
    for record in records:
        log.add(lambda record=record: record)  # type: ignore[misc]
    assert not log.flush()
    assert "2 invocation records were dropped" in caplog.text
    assert log.flush()
    assert store.batches == [records[2:]]
    assert counted.dropped() == [("invocation", 2)]


def test_a_thread_that_gets_no_time_costs_bounded_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, counted: Counted
) -> None:
    monkeypatch.setattr(log_module, "MOST_DRAFTS", 3)
    store = Memory()
    log = InvocationLog(lambda: store, flush_every=60)
    for _ in range(5):
        log.add(a_record)
    assert log.flush()
    assert [len(batch) for batch in store.batches] == [3]
    assert "2 invocation records were dropped" in caplog.text
    assert log.flush()
    assert counted.dropped() == [("invocation", 2)]  # told once


def test_calls_that_come_while_it_is_written_do_not_keep_it_from_storing() -> None:
    store = Memory()
    log = InvocationLog(lambda: store, flush_every=60)
    made: list[Record] = []

    def draft() -> Record:
        made.append(a_record())
        if len(made) < 500:
            log.add(draft)
        return made[-1]

    log.add(draft)
    assert log.flush()
    assert store.batches == [made[:1]]
    assert log.flush()
    assert store.batches == [made[:1], made[1:2]]


def test_without_storage_calls_are_logged_and_nothing_waits(caplog: pytest.LogCaptureFixture) -> None:
    def no_store() -> Memory:
        raise SettingsError("AzureWebJobsStorage is not set")

    log = InvocationLog(no_store, flush_every=60)
    records = [a_record(), a_record()]
    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        for record in records:
            log.add(lambda record=record: record)  # type: ignore[misc]
            assert log.flush()
    assert caplog.text.count("AzureWebJobsStorage is not set") == 1
    assert lines_of(caplog, *records) == [record.fields() for record in records]


def test_a_calls_line_is_json_with_the_fields_of_the_record(caplog: pytest.LogCaptureFixture) -> None:
    record = a_record(owner="ana", mode="two-way", job_id="j", error="漢", outcome=Outcome.FAILED)
    store = Memory()
    log = InvocationLog(lambda: store, flush_every=60)
    with caplog.at_level(logging.INFO, "toolbox.invocation"):
        log.add(lambda: record, stored=False)
        log.flush()
    (told,) = lines_of(caplog, record)
    assert told == record.fields()
    assert told["correlationId"] == f"mcp-{record.id}"
    assert store.batches == []


def test_a_record_that_cannot_be_made_costs_no_other_one(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Record:
        raise RuntimeError("odd")

    store = Memory()
    log = InvocationLog(lambda: store, flush_every=60)
    record = a_record()
    log.add(broken)
    log.add(lambda: record)
    assert log.flush()
    assert store.batches == [[record]]
    assert "could not be recorded" in caplog.text
