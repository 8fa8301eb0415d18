from __future__ import annotations

import re
import time
import uuid
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.jobs import keys, rows
from shared.jobs.model import ErrorCode, Job, Status, StoredBody
from shared.jobs.timings import Ending, Timing, Timings
from shared.jobs.window import Window
from shared.tool.spec import ExecutionMode, Mode

MOMENT = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2200, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def a_job(**values: Any) -> Job:
    return Job(
        **{
            "job_id": keys.new_job_id(),
            "owner": "default",
            "tool_id": "t",
            "tool_name": "t",
            "mode": Mode.TWO_WAY,
            "execution_mode": ExecutionMode.HEADLESS,
            "correlation_id": "mcp-x",
            "timeout_ms": 1000,
            "max_attempts": 3,
            "created_at": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
            **values,
        }
    )


def test_an_id_is_a_version_7_uuid_of_now() -> None:
    before = time.time_ns() // 1_000_000
    found = uuid.UUID(keys.new_job_id())
    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert before <= found.int >> 80 <= time.time_ns() // 1_000_000
    assert len({keys.new_job_id() for _ in range(1000)}) == 1000


@given(st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=20, unique=True))
def test_newer_jobs_sort_first(moments: list[int]) -> None:
    ids = [keys.new_job_id(moment) for moment in sorted(moments)]
    partitions = [keys.partition_key(job_id) for job_id in ids]
    assert partitions == sorted(partitions, reverse=True)
    assert [keys.job_id_of(partition) for partition in partitions] == ids


@given(st.integers(0, 2**48 - 1))
def test_keys_hold_nothing_that_table_storage_forbids(moment: int) -> None:
    job_id = keys.new_job_id(moment)
    for key in (keys.partition_key(job_id), keys.JOB_ROW, keys.INPUT_ROW, keys.log_row(19)):
        assert re.fullmatch(r"[0-9a-z-]{1,1024}", key)


def test_one_range_read_gives_a_job_with_its_log_and_without_its_input() -> None:
    assert keys.CHECKPOINT_ROW < keys.INPUT_ROW < keys.JOB_ROW < keys.log_row(0) < keys.log_row(19)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "../x",
        "01a229b6-94ec-75fd-a4a6-1becea00c57",
        "01a229b6-94ec-75fd-a4a6-1becea00c5722",
        "01A229B6-94EC-75FD-A4A6-1BECEA00C572",
        "01a229b6-94ec-45fd-a4a6-1becea00c572",
        "01a229b6-94ec-75fd-24a6-1becea00c572",
        "01a229b6-94ec-75fd-a4a6-1becea00c572\n",
        "01a229b6-94ec-75fd-a4a6-1becea00c57\u0662",
        None,
        5,
    ],
)
def test_anything_else_is_no_job_id(text: object) -> None:
    assert not keys.is_job_id(text)
    assert keys.is_job_id(keys.new_job_id())


@given(
    status=st.sampled_from(Status),
    started=st.none() | MOMENT,
    completed=st.none() | MOMENT,
    lease=st.none() | MOMENT,
    created=MOMENT,
    message=TEXT,
    error=TEXT,
    code=st.none() | st.sampled_from(ErrorCode),
    result=st.none()
    | st.binary(max_size=100).map(lambda data: StoredBody(len(data), inline=data))
    | st.just(StoredBody(70_000, "ab" * 32)),
    counters=st.tuples(*[st.integers(0, 2**31 - 1)] * 4),
    token=st.booleans(),
    attempts=st.lists(
        st.builds(Timing, st.integers(1, 99), MOMENT)
        | st.builds(Timing, st.integers(1, 99), MOMENT, MOMENT, st.sampled_from(Ending)),
        max_size=10,
    ).map(tuple),
)
def test_a_job_survives_its_row(
    status: Status,
    started: datetime | None,
    completed: datetime | None,
    lease: datetime | None,
    created: datetime,
    message: str,
    error: str,
    code: ErrorCode | None,
    result: StoredBody | None,
    counters: tuple[int, int, int, int],
    token: bool,
    attempts: Timings,
) -> None:
    job = a_job(
        attempts=attempts,
        status=status,
        created_at=created,
        started_at=started,
        completed_at=completed,
        lease_until=lease,
        progress_message=message,
        error=error,
        error_code=code,
        result=result,
        attempt=counters[0],
        progress_percent=counters[1],
        log_lines=counters[2],
        log_chunk=counters[3],
        has_auth_token=token,
        nonce="n",
    )
    assert rows.job_of(rows.job_entity(job), "e") == replace(job, etag="e")


def test_whether_time_was_asked_for_costs_a_row_nothing_unless_it_was() -> None:
    plain, asked = (rows.job_entity(a_job(timeout_asked=asked)) for asked in (False, True))
    assert set(asked) - set(plain) == {"timeoutAsked"}
    assert [rows.job_of(entity, "e").timeout_asked for entity in (plain, asked)] == [False, True]


def test_long_texts_are_cut_below_what_a_property_holds() -> None:
    entity = rows.job_entity(a_job(error="\U0001f600" * 40_000, progress_message="x" * 40_000))
    for name in ("error", "progressMessage"):
        assert len(entity[name].encode("utf-16-le")) // 2 <= 32_000


def test_times_are_aware() -> None:
    with pytest.raises(ValueError, match="aware"):
        a_job(created_at=datetime(2026, 1, 1))
    assert rows.stamp(datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)) == "2026-01-02T03:04:05.678Z"
    zone = datetime(2026, 1, 2, 3, tzinfo=UTC).astimezone() + timedelta(0)
    assert rows.stamp(zone) == "2026-01-02T03:00:00.000Z"


def test_a_window_is_kept_whole() -> None:
    until = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    full = Window(
        base="https://b", timeout_asked=True, ticket="t", ticket_until=until, sessions=("s", "r"), closed=True
    )
    for window in (Window(), full):
        assert rows.job_of(rows.job_entity(a_job(window=window)), "e").window == window


def test_a_scan_reads_every_property_but_the_result_body() -> None:
    """What a scan did not read would be lost when the reaper writes the row."""
    now = datetime.now(UTC)
    job = a_job(
        started_at=now,
        completed_at=now,
        attempts=(Timing(1, now, now, Ending.LOST),),
        lease_until=now,
        sent_at=now,
        result=StoredBody(3, "digest", 2, b"{}"),
        error="e",
        error_code=ErrorCode.TIMEOUT,
        prefill_summary="{}",
        connection_name="Prod",
        timeout_asked=True,
        sends=2,
        cancel_requested=True,
        kept=True,
        idempotency="k",
        delivery_error="d",
        window=Window(base="https://b", ticket="t", ticket_until=now, sessions=("s",), closed=True),
        traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01",
    )
    defaults = a_job()
    left = [field.name for field in fields(Job) if getattr(job, field.name) == getattr(defaults, field.name)]
    assert set(rows.job_entity(job)) == {*rows.LIGHT, "result"}, left
