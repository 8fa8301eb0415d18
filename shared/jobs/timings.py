"""When each attempt of a job began and ended, and how. Pure: no clock, no storage.

The job's row keeps them in one short text, `[[1, started, ended, "lost"], [2, started]]`, which goes with the
moves that are written anyway. Only the newest `MOST` are kept: a contract may allow more attempts than a row
should tell of.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

#: Attempts that a row tells of.
MOST: Final = 10


class Ending(StrEnum):
    """How one attempt ended, which is not always how its job did."""

    COMPLETED = "completed"
    #: The tool raised, or what it returned does not fit.
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    #: The worker was lost: nobody knows more than that its lease ran out.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Timing:
    """One attempt. Without an end it runs, or nobody has noticed yet that its worker was lost."""

    attempt: int
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Ending | None = None


type Timings = tuple[Timing, ...]


def begun(known: Timings, attempt: int, now: datetime) -> Timings:
    """With a new attempt, which begins now."""
    return (*known, Timing(attempt, now))[-MOST:]


def ended(known: Timings, attempt: int, started_at: datetime | None, now: datetime, outcome: Ending) -> Timings:
    """With the end of an attempt. One that has ended already stays as it is.

    `started_at`: of the attempt, for a row that does not tell of it: its attempt began under an older release.
    """
    if known and known[-1].attempt == attempt:
        if known[-1].ended_at is not None:
            return known
        return (*known[:-1], replace(known[-1], ended_at=now, outcome=outcome))
    if started_at is None:
        return known
    return (*known, Timing(attempt, started_at, now, outcome))[-MOST:]


def to_text(known: Timings) -> str:
    """As the row holds them; times are ISO 8601 in UTC with milliseconds, as all of a row's."""
    return json.dumps([_told(one) for one in known], separators=(",", ":"))


def of_text(text: str) -> Timings:
    """The inverse. Raises `ValueError` and `TypeError` for another text."""
    return tuple(_timing(*told) for told in json.loads(text))


def _told(one: Timing) -> list[int | str]:
    told: list[int | str] = [one.attempt, _stamp(one.started_at)]
    if one.ended_at is not None and one.outcome is not None:
        told += [_stamp(one.ended_at), str(one.outcome)]
    return told


def _timing(attempt: int, started: str, ended: str = "", outcome: str = "") -> Timing:
    begin = datetime.fromisoformat(started)
    return (
        Timing(attempt, begin, datetime.fromisoformat(ended), Ending(outcome))
        if ended
        else Timing(attempt, begin)
    )


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
