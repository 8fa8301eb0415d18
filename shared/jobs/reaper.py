"""The timer's work: what no call and no read has put right.

    every run      jobs of the last day that nobody finished: expired leases, lost messages
                   messages given up that the host cannot decode
                   retention: jobs that ended before the cutoff go, with all that belongs to them
    once a day     the same for older jobs, and stored bodies that belong to no job

Every move is a conditional write that a read might have made as well, so any number of instances may run it at
once. A run asks storage a bounded number of times; what is left over is for the next one, which goes on from
where this one stopped (daily work) or finds the rest by itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from shared import ids
from shared.jobs import keys
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.repair import repaired
from shared.jobs.store import Query, UpkeepStore

_LOG = logging.getLogger(__name__)

#: What every run looks at, and what is left to the daily one.
RECENT: Final = timedelta(hours=24)
#: A body is stored before its job's row is; one without a row is an orphan only when it is older.
ORPHAN_AGE: Final = timedelta(hours=1)
PAGE: Final = 200
#: Requests that one repair and one purge take at most, near enough for the budget.
REPAIR_COST: Final = 3
PURGE_COST: Final = 5

_OPEN: Final = (Status.PENDING, Status.IN_PROGRESS)
_ENDED: Final = (Status.COMPLETED, Status.FAILED)
_STATE: Final = "daily"


@dataclass(slots=True)
class Report:
    """What a run did."""

    repaired: int = 0
    purged: int = 0
    orphans: int = 0
    poison: int = 0
    #: Requests that the run may still make; below zero: it stopped early.
    budget: int = 0

    def spent(self) -> bool:
        return self.budget <= 0


@dataclass(frozen=True, slots=True)
class Daily:
    """How far the daily work has come."""

    started: datetime
    #: Whether all jobs were looked at; the scan's token until then.
    jobs_done: bool = False
    token: str | None = None
    #: The next page of stored bodies; None: all were.
    marker: str | None = ""

    @property
    def done(self) -> bool:
        return self.jobs_done and self.marker is None

    def to_text(self) -> str:
        return json.dumps([self.started.isoformat(), self.jobs_done, self.token, self.marker])

    @classmethod
    def from_text(cls, text: str) -> Daily | None:
        try:
            started, jobs_done, token, marker = json.loads(text)
            return cls(datetime.fromisoformat(started), jobs_done, token, marker)
        except (ValueError, TypeError):
            return None  # nothing yet, or another version's


class Reaper:
    """`budget`: requests that a run may make. `on_poison`: takes the text of a message that was given up."""

    def __init__(
        self,
        store: UpkeepStore,
        *,
        retention: timedelta,
        budget: int,
        on_poison: Callable[[str], None],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = store
        self._retention = retention
        self._budget = budget
        self._on_poison = on_poison
        self._clock = clock

    def run(self) -> Report:
        """One run. Blocks. What goes wrong with one job is logged and does not keep the others waiting."""
        report = Report(budget=self._budget)
        now = self._clock()
        recent = Query(before=_partition(now - RECENT), statuses=_OPEN)
        self._repair(recent, report)
        report.poison = self._drain(report)
        self._purge(now - self._retention, report)
        self._daily(now, report)
        if report.repaired or report.purged or report.orphans or report.poison:
            _LOG.info("reaper: %s", report)
        if report.spent():
            _LOG.warning("reaper: out of requests for this run; the next one goes on")
        return report

    def _repair(self, query: Query, report: Report, token: str | None = None) -> tuple[bool, str | None]:
        """Makes the moves that are due. (Whether all jobs were looked at, where to go on if not.)"""
        while not report.spent():
            report.budget -= 1
            page = self._store.scan(query, PAGE, token)
            for job in page.jobs:
                report.repaired += self._each(job, self._repaired, report)
            token = page.token
            if token is None:
                return True, None
        return False, token

    def _repaired(self, job: Job, report: Report) -> bool:
        moved = repaired(job, self._store)
        if moved is job:
            return False
        report.budget -= REPAIR_COST
        return True

    def _purge(self, cutoff: datetime, report: Report) -> None:
        query = Query(start=_partition(cutoff), statuses=_ENDED)
        token: str | None = None
        while not report.spent():
            report.budget -= 1
            page = self._store.scan(query, PAGE, token)
            for job in page.jobs:
                if report.spent():
                    return
                if job.completed_at is not None and job.completed_at < cutoff:
                    report.purged += self._each(job, self._purged, report)
            token = page.token
            if token is None:
                return

    def _purged(self, job: Job, report: Report) -> bool:
        report.budget -= PURGE_COST
        self._store.purge(job)
        return True

    def _drain(self, report: Report) -> int:
        report.budget -= 1
        taken = self._store.take_poison()
        for stored in taken:
            body = _decoded(stored)
            if body is None:
                digest = hashlib.sha256(stored.encode("utf-8", "replace")).hexdigest()[:16]
                _LOG.error(
                    "a message that is no base64 was removed (SHA-256 %s, %d bytes)", digest, len(stored)
                )
                continue
            report.budget -= REPAIR_COST
            try:
                self._on_poison(body)
            except Exception:
                _LOG.exception("a message that was given up could not be dealt with")
        return len(taken)

    def _daily(self, now: datetime, report: Report) -> None:
        if report.spent():
            return
        report.budget -= 1
        before = self._store.get_state(_STATE)
        daily = Daily.from_text(before)
        if daily is None or (daily.done and now - daily.started >= RECENT):
            daily = Daily(now)
        if daily.done:
            return
        if not daily.jobs_done:
            # The range is that of the beginning: a token goes on with the same scan only.
            query = Query(start=_partition(daily.started - RECENT), statuses=_OPEN)
            jobs_done, token = self._repair(query, report, daily.token)
            daily = replace(daily, jobs_done=jobs_done, token=token)
        if daily.jobs_done and not report.spent():
            daily = replace(daily, marker=self._orphans(daily.marker, now, report))
        if daily.to_text() != before:
            report.budget -= 1
            self._store.put_state(_STATE, daily.to_text())

    def _orphans(self, marker: str | None, now: datetime, report: Report) -> str | None:
        """Removes bodies that belong to no job, or to one that has ended. Where to go on; None: at the end."""
        youngest = int((now - ORPHAN_AGE).timestamp() * 1000)
        while marker is not None and not report.spent():
            report.budget -= 1
            page = self._store.blob_page(marker)
            found: dict[str, list[str]] = {}
            for name in page.names:
                found.setdefault(name.partition("/")[0], []).append(name)
            for job_id, names in found.items():
                if ids.is_id(job_id) and ids.milliseconds_of(job_id) < youngest:
                    report.budget -= 1
                    report.orphans += self._without_job(job_id, names)
            marker = page.next_marker or None
        return marker

    def _without_job(self, job_id: str, names: list[str]) -> int:
        job = self._store.get(job_id)
        if job is None:
            for name in names:
                self._store.delete_blob(name)
            return len(names)
        if job.status.terminal and keys.input_blob(job_id) in names:
            self._store.delete_blob(keys.input_blob(job_id))
            return 1
        return 0

    def _each(self, job: Job, work: Callable[[Job, Report], bool], report: Report) -> bool:
        try:
            return work(job, report)
        except Exception:
            _LOG.exception("job %s: the reaper could not deal with it", job.job_id)
            return False


def _partition(moment: datetime) -> str:
    return keys.first_partition(max(int(moment.astimezone(UTC).timestamp() * 1000), 0))


def _decoded(stored: str) -> str | None:
    """A message's text; None when the host could not decode it."""
    try:
        return base64.b64decode(stored, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
