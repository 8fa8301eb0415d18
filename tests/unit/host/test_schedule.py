"""NCRONTAB expressions and time spans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.host.errors import HostError
from infra.local.host.schedule import ConstantSchedule, parse_schedule

NOW = datetime(2026, 11, 29, 10, 20, 30, 500_000, tzinfo=UTC)  # a Sunday


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("* * * * * *", ["11-29 10:20:31", "11-29 10:20:32"]),
        ("*/5 * * * * *", ["11-29 10:20:35", "11-29 10:20:40"]),
        ("0 */5 * * * *", ["11-29 10:25:00", "11-29 10:30:00"]),
        ("*/5 * * * *", ["11-29 10:25:00", "11-29 10:30:00"]),  # five fields: no seconds
        ("0 30 9 * * *", ["11-30 09:30:00", "12-01 09:30:00"]),
        ("0 0 0 * * Mon-Fri", ["11-30 00:00:00", "12-01 00:00:00"]),
        ("0 0 0 * * 1,3", ["11-30 00:00:00", "12-02 00:00:00"]),
        ("0 0 0 1 January *", ["01-01 00:00:00", "01-01 00:00:00"]),
        ("0 0 0 13 * 5", ["08-13 00:00:00", "10-13 00:00:00"]),  # Friday the 13th: both must match
        ("10-12/2 20 10 * * *", ["11-30 10:20:10", "11-30 10:20:12"]),
        ("5/20 * * * * *", ["11-29 10:20:45", "11-29 10:21:05"]),
        ("0 0 0 29 2 *", ["02-29 00:00:00", "02-29 00:00:00"]),
    ],
)
def test_occurrences(text: str, times: list[str]) -> None:
    schedule = parse_schedule(text, "here", NOW)
    first = schedule.next_after(NOW)
    second = schedule.next_after(first)
    assert [moment.strftime("%m-%d %H:%M:%S") for moment in (first, second)] == times
    assert first.tzinfo is not None


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:05:00", 300), ("1.00:00:00", 86_400), ("00:00:00.5", 0.5), ("10:30", 37_800)]
)
def test_time_spans(text: str, seconds: float) -> None:
    schedule = parse_schedule(text, "here", NOW)
    assert schedule == ConstantSchedule(timedelta(seconds=seconds))
    assert schedule.next_after(NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hourly",
        "@hourly",
        "* * * *",
        "* * * * * * *",
        "60 * * * * *",
        "* * 24 * * *",
        "* * * 0 * *",
        "* * * * 13 *",
        "* * * * * 7",
        "*/0 * * * * *",
        "5-1 * * * * *",
        "x * * * * *",
        "? * * * * *",
        "0 0 0 L * *",
        "0 0 0 * * 5#2",
        "0 0 0 30 2 *",  # never
        "00:00:00",
        "25:00:00",
        "00:61",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="here"):
        parse_schedule(text, "here", NOW)


SECONDS = st.integers(0, 59)


@given(SECONDS, SECONDS, st.integers(0, 23), st.integers(0, 10**8))
def test_next_is_later_and_fits_the_fields(second: int, minute: int, hour: int, offset: int) -> None:
    start = NOW + timedelta(seconds=offset)
    schedule = parse_schedule(f"{second} {minute} {hour} * * *", "here", NOW)
    moment = schedule.next_after(start)
    assert timedelta(0) < moment - start <= timedelta(days=1)
    assert (moment.second, moment.minute, moment.hour) == (second, minute, hour)


@given(st.text(max_size=30))
def test_any_text_is_a_schedule_or_refused(text: str) -> None:
    try:
        schedule = parse_schedule(text, "here", NOW)
    except HostError:
        return
    assert schedule.next_after(NOW) > NOW
