"""The timer's work: what no call and no read has put right.

    every run      jobs of the last day that nobody finished: expired leases, lost messages
                   messages given up that the host cannot decode
                   retention: jobs that ended before the cutoff go, with all that belongs to them
                   a row that says when this was: `shared.jobs.last_run`
    once a day     the same for older jobs, and stored bodies that belong to no job

Every move is a conditional write that a read might have made as well, so any number of instances may run it at
once. A run asks storage a bounded number of times; what is left over is for the next one, which goes on from
where this one stopped (daily work) or finds the rest by itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from shared import telemetry
from shared.errors import InputError
from shared.jobs import keys, repair
from shared.jobs.daily import Daily, Report, remove_orphans
from shared.jobs.last_run import STATE as LAST_RUN
from shared.jobs.last_run import LastRun, waiting_since
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.store import Query, UpkeepStore

_LOG = logging.getLogger(__name__)

#: What every run looks at, and what is left to the daily one.
RECENT: Final = timedelta(hours=24)
PAGE: Final = 200
#: Requests that one repair and one purge take at most, near enough for the budget.
REPAIR_COST: Final = 3
PURGE_COST: Final = 5

_OPEN: Final = (Status.PENDING, Status.IN_PROGRESS)
_ENDED: Final = (Status.COMPLETED, Status.FAILED)
_STATE: Final = "daily"


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
        """One run. Blocks. What goes wrong with one job or one step is logged, and keeps no other waiting."""
        report = Report(budget=self._budget - 1)  # the last one writes the row of this run
        now = self._clock()
        for step in (self._recent, self._drain, self._retention_over, self._daily):
            try:
                step(now, report)
            except Exception:
                _LOG.exception("reaper: a step could not be finished; the next run goes on")
        if report.repaired or report.purged or report.orphans or report.poison:
            _LOG.info("reaper: %s", report)
        if report.spent():
            _LOG.warning("reaper: out of requests for this run; the next one goes on")
        try:
            self._store.put_state(LAST_RUN, LastRun.of(now, report).to_text())
        except Exception:
            _LOG.exception("reaper: its run could not be noted; health will tell of an earlier one")
        telemetry.queue_looked_at(None if report.waiting is None else report.waiting[0], now)
        return report

    def _recent(self, now: datetime, report: Report) -> None:
        self._repair(Query(before=_partition(now - RECENT), statuses=_OPEN), now, report)

    def _repair(
        self, query: Query, now: datetime, report: Report, token: str | None = None
    ) -> tuple[bool, str | None]:
        """Makes the moves that are due. (Whether all jobs were looked at, where to go on if not.)"""
        while not report.spent():
            report.budget -= 1
            page = self._store.scan(query, PAGE, token)
            for job in page.jobs:
                if (since := waiting_since(job)) is not None:
                    report.waiting = min(report.waiting or (since, job.job_id), (since, job.job_id))
                if not repair.due(job, now):
                    continue
                if report.spent():
                    return False, token
                report.budget -= REPAIR_COST
                report.repaired += self._each(job, lambda job: repair.repaired(job, self._store, now))
            token = page.token
            if token is None:
                return True, None
        return False, token

    def _retention_over(self, now: datetime, report: Report) -> None:
        cutoff = now - self._retention
        query = Query(start=_partition(cutoff), statuses=_ENDED)
        token: str | None = None

        def purge(job: Job) -> None:
            report.budget -= PURGE_COST
            report.budget -= max(self._store.purge(job) - PURGE_COST, 0)

        while not report.spent():
            report.budget -= 1
            page = self._store.scan(query, PAGE, token)
            for job in page.jobs:
                if report.spent():
                    return
                if job.completed_at is not None and job.completed_at < cutoff:
                    report.purged += self._each(job, purge)
            token = page.token
            if token is None:
                return

    def _drain(self, _: datetime, report: Report) -> None:
        report.budget -= 1
        while not report.spent() and (dealt := self._store.drain_poison(self._given_up)):
            report.poison += dealt
            report.budget -= 1 + (1 + REPAIR_COST) * dealt

    def _given_up(self, stored: str) -> bool:
        """Whether a message was dealt with; if not, the next run finds it again."""
        body = _decoded(stored)
        if body is None:
            digest = hashlib.sha256(stored.encode("utf-8", "replace")).hexdigest()[:16]
            _LOG.error(
                "a message that is no base64 was removed (SHA-256 %s, %d characters)", digest, len(stored)
            )
            return True
        try:
            self._on_poison(body)
        except Exception:
            _LOG.exception("a message that was given up could not be dealt with yet")
            return False
        return True

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
        try:
            daily = self._carried_on(daily, now, report)
        except InputError:
            # The place where it stopped means nothing to this storage (any more).
            daily = Daily(now)
        if daily.to_text() != before:
            report.budget -= 1
            self._store.put_state(_STATE, daily.to_text())

    def _carried_on(self, daily: Daily, now: datetime, report: Report) -> Daily:
        if not daily.jobs_done:
            # The range is that of the beginning: a token goes on with the same scan only.
            query = Query(start=_partition(daily.started - RECENT), statuses=_OPEN)
            jobs_done, token = self._repair(query, now, report, daily.token)
            daily = replace(daily, jobs_done=jobs_done, token=token)
        if daily.jobs_done and not report.spent():
            daily = replace(daily, marker=remove_orphans(self._store, daily.marker, now, report))
        return daily

    def _each(self, job: Job, work: Callable[[Job], object]) -> bool:
        try:
            work(job)
        except Exception:
            _LOG.exception("job %s: the reaper could not deal with it", job.job_id)
            return False
        return True


def _partition(moment: datetime) -> str:
    return keys.first_partition(max(int(moment.astimezone(UTC).timestamp() * 1000), 0))


def _decoded(stored: str) -> str | None:
    """A message's text; None when the host could not decode it."""
    try:
        return base64.b64decode(stored, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
