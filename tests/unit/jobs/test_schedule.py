"""When a timer was due last: what the local host's own reading of schedules says, read backwards."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter

from infra.local.host.schedule import CronSchedule, parse_schedule
from shared.jobs.schedule import parse

NOW = datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)
EXPRESSIONS = [
    "0 */5 * * * *",
    "* * * * * *",
    "30 5/15 * * * *",
    "0 0 3 * * *",
    "0 0,30 8-17 * * MON-FRI",
    "15,45 10-50/20 */6 1,15 * *",
    "0 0 0 31 * *",
    "0 0 12 29 FEB *",
    "0 59 23 * january-mar sunday",
    "0 0 0 13 * fri",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_is_what_the_host_would_have_fired_last(expression: str) -> None:
    host = parse_schedule(expression, "schedule", NOW)
    assert isinstance(host, CronSchedule)
    plan = parse(expression)
    assert plan is not None
    chance = random.Random(expression)
    for _ in range(60):
        moment = NOW + timedelta(seconds=chance.randrange(-(10**7), 10**8))
        due = plan.due_before(moment)
        assert due is not None
        assert due <= moment
        # `get_prev` is before its argument, and a time that is due counts itself.
        expected = croniter(
            host.expression,
            moment + timedelta(seconds=1),
            ret_type=datetime,
            day_or=False,
            second_at_beginning=True,
        ).get_prev(datetime)
        assert due == expected


def test_the_moment_itself_counts_and_fractions_do_not() -> None:
    plan = parse("0 */5 * * * *")
    assert plan is not None
    five = NOW.replace(minute=5, second=0)
    assert plan.due_before(five.replace(microsecond=999_999)) == five
    assert plan.due_before(five - timedelta(microseconds=1)) == five - timedelta(minutes=5)
    elsewhere = five.astimezone(datetime.fromisoformat("2026-01-01T00:00:00+05:30").tzinfo)
    assert plan.due_before(elsewhere) == five


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * * *",
        "60 * * * * *",
        "0 0 0 0 * *",
        "0 0 0 * * 7",
        "0 0 0 * XYZ *",
        "5-1 * * * * *",
        "*/0 * * * * *",
        "a b",
    ],
)
def test_what_the_host_would_not_take_is_none(text: str) -> None:
    assert parse(text) is None


def test_a_day_that_never_comes_was_never_due() -> None:
    plan = parse("0 0 0 30 2 *")
    assert plan is not None
    assert plan.due_before(NOW) is None
