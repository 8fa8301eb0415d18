"""When a timer was due last: reading an NCRONTAB expression backwards.

The host decides when the timer fires; this only tells whether it should have by now. Six fields, second minute
hour day month weekday, in UTC; a day must fit both the day and the weekday field (as in NCrontab, which the
Functions host uses). A field: `*`, a number or an English name, `a-b`, each with `/step`; several by commas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
#: (lowest, highest, names), in the order of the fields. The first name means the lowest number.
_FIELDS: Final[tuple[tuple[int, int, tuple[str, ...]], ...]] = (
    (0, 59, ()),
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_ITEM: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", re.ASCII)
#: 29 February on a given weekday comes every 28 years, or 40 across a year like 2100.
_MOST_DAYS: Final = 41 * 366


@dataclass(frozen=True, slots=True)
class Schedule:
    """The numbers that each field allows."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    #: 0 is Sunday.
    weekdays: frozenset[int]

    def due_before(self, moment: datetime) -> datetime | None:
        """The last time that is not after `moment` (aware); None for a day that never comes."""
        limit = moment.astimezone(UTC).replace(microsecond=0)
        day = limit.date()
        for _ in range(_MOST_DAYS):
            if self._fits(day):
                until = limit.time() if day == limit.date() else time.max
                found = self._last_of_day(until)
                if found is not None:
                    return datetime.combine(day, found, UTC)
            if day == date.min:
                break
            day -= timedelta(days=1)
        return None

    def _fits(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        return day.day in self.days and day.month in self.months and weekday in self.weekdays

    def _last_of_day(self, until: time) -> time | None:
        for hour in reversed(self.hours):
            if hour > until.hour:
                continue
            if hour < until.hour:
                return time(hour, self.minutes[-1], self.seconds[-1])
            for minute in reversed(self.minutes):
                if minute < until.minute:
                    return time(hour, minute, self.seconds[-1])
                if minute == until.minute:
                    second = next((one for one in reversed(self.seconds) if one <= until.second), None)
                    if second is not None:
                        return time(hour, minute, second)
        return None


def parse(text: str) -> Schedule | None:
    """None for what is no such expression: the host has its own word on that."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return None
    found = [_field(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)]
    if not all(found):
        return None
    seconds, minutes, hours, days, months, weekdays = found
    return Schedule(
        tuple(sorted(seconds)),
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        frozenset(months),
        frozenset(weekdays),
    )


def _field(text: str, low: int, high: int, names: tuple[str, ...]) -> set[int]:
    """The numbers that a field allows; none when it cannot be read."""
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            return set()
        star, first, last, step = match.groups()
        start = low if star else _number(first, low, names)
        end = high if star or (step and last is None) else _number(last or first, low, names)
        if not low <= start <= end <= high or step == "0":
            return set()
        found |= set(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    """-1 for a name that there is not."""
    if text.isdecimal():
        return int(text)
    name = text[:3].lower()
    return low + names.index(name) if name in names else -1
