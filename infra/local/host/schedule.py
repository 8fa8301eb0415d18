"""Timer schedules: NCRONTAB expressions with six or five fields, and constant time spans. All in UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from infra.local.host.config import parse_timespan
from infra.local.host.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
# (name, lowest, highest, names), in NCRONTAB's order
_FIELDS: Final[tuple[tuple[str, int, int, Mapping[str, int]], ...]] = (
    ("second", 0, 59, {}),
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_ITEM: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", re.ASCII)


class Schedule(Protocol):
    """When a timer fires."""

    @property
    def adjust_for_dst(self) -> bool:
        """What the timer information says about daylight saving."""
        ...

    def next_after(self, moment: datetime) -> datetime:
        """The first time after ``moment`` (both aware, UTC)."""
        ...


@dataclass(frozen=True, slots=True)
class ConstantSchedule:
    """Every so often, counted from the start of the host."""

    interval: timedelta
    adjust_for_dst: bool = False

    def next_after(self, moment: datetime) -> datetime:
        """See Schedule."""
        return moment + self.interval


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A six-field expression that has been checked; a day must match both the day and the day of week field."""

    expression: str
    adjust_for_dst: bool = True

    def next_after(self, moment: datetime) -> datetime:
        """See Schedule. Raises ValueError when the expression names no day that ever comes."""
        from croniter import croniter

        return croniter(
            self.expression, moment, ret_type=datetime, day_or=False, second_at_beginning=True
        ).get_next(datetime)


def parse_schedule(text: str, where: str, now: datetime) -> Schedule:
    """A schedule from a binding. Raises HostError that names the place and the field."""
    fields = text.split()
    if len(fields) == 1 and ":" in text:
        seconds = parse_timespan(text, where)
        if seconds <= 0:
            raise HostError(f"{where} must be longer than nothing.")
        return ConstantSchedule(timedelta(seconds=seconds))
    if len(fields) == 5:
        fields = ["0", *fields]
    if len(fields) != 6:
        raise HostError(f"{where} must have 6 (or 5) fields or be a time span, not {text!r}.")
    checked = (_field(value, *limits, where) for value, limits in zip(fields, _FIELDS, strict=True))
    schedule = CronSchedule(" ".join(checked))
    try:
        schedule.next_after(now)
    except ValueError:
        raise HostError(f"{where} never fires: {text!r}.") from None
    return schedule


def _field(text: str, name: str, low: int, high: int, names: Mapping[str, int], where: str) -> str:
    """One field with names replaced by numbers and ``5/15`` written out as ``5-59/15``."""
    items = []
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise HostError(f"{where}: {item!r} is not a valid {name}.")
        star, first, last, step = match.groups()
        if step is not None and int(step) < 1:
            raise HostError(f"{where}: the step of {item!r} must be at least 1.")
        if star:
            span = f"{low}-{high}" if step else "*"
        else:
            start = _number(first, name, low, high, names, where)
            end = high if step else start
            if last is not None:
                end = _number(last, name, low, high, names, where)
            if end < start:
                raise HostError(f"{where}: {item!r} runs backwards.")
            span = str(start) if end == start and not step else f"{start}-{end}"
        items.append(span + (f"/{step}" if step else ""))
    return ",".join(items)


def _number(text: str, name: str, low: int, high: int, names: Mapping[str, int], where: str) -> int:
    number = int(text) if text.isdigit() else names.get(text[:3].lower())
    if number is None or not low <= number <= high:
        raise HostError(f"{where}: {text!r} is not a valid {name}.")
    return number
