"""What can be told of the job store in a few bounded requests.

    storage      table, queue and container each answer
    pendingJobs  how long the oldest job has waited for a worker
    poisonQueue  messages that were given up and that nobody has dealt with
    reaper       when the timer ran last

One look takes at most `MOST_REQUESTS` requests, and five as a rule. Newer jobs sort first, so a scan comes to
the oldest one last and may be cut before; then the answer says so, and the job that the reaper found to wait
longest is looked at by its key.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from shared.jobs import repair, schedule
from shared.jobs.last_run import STATE, LastRun, waiting_since
from shared.jobs.model import Job, Status
from shared.jobs.rows import stamp
from shared.jobs.store import Query, UpkeepStore
from shared.tool.spec import JsonObject

#: Pages of the scan for pending jobs, and their size: the most that the table service gives.
SCANS: Final = 4
PAGE: Final = 1_000
#: Table 1, queues 2, container 1, the scan, and where it was cut the reaper's row and its oldest job.
MOST_REQUESTS: Final = 4 + SCANS + 2
#: By then the job's message was sent a second time, and there was still no worker for it.
PENDING_TOO_LONG: Final = 2 * repair.RESEND_AFTER
#: How late the timer may be, its run included, before it counts as stopped.
TIMER_GRACE: Final = timedelta(minutes=10)
CLOCKS_APART: Final = timedelta(seconds=30)


class ProbeStore(UpkeepStore, Protocol):
    """What health asks beyond what the timer does."""

    def load(self) -> None:
        """Loads the clients, without a request: the first look in a process pays for their imports."""

    def queued(self) -> int:
        """Messages of the job queue, near enough. One request."""

    def poisoned(self) -> int:
        """Messages of the poison queue, near enough. One request."""

    def reach_bodies(self) -> None:
        """Asks for the container of bodies; that it is not there yet is an answer too. One request."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is well, or is not."""

    ok: bool
    detail: JsonObject


@dataclass(frozen=True, slots=True)
class Waiting:
    """Jobs that wait for a worker. `since`: the oldest one; None: there is none."""

    count: int = 0
    since: datetime | None = None
    job_id: str = ""
    #: Whether all jobs were looked at; if not, `count` is a lower bound, and older jobs may wait.
    complete: bool = True

    def with_job(self, job: Job, *, counted: bool = False) -> Waiting:
        """With one job more, if that waits. `counted`: it may be among the others already."""
        since = waiting_since(job)
        if since is None:
            return self
        found = replace(self, count=max(self.count, 1) if counted else self.count + 1)
        if self.since is not None and self.since <= since:
            return found
        return replace(found, since=since, job_id=job.job_id)


def last_run(store: UpkeepStore) -> LastRun | None:
    """Blocks. One request."""
    return LastRun.from_text(store.get_state(STATE))


def waiting(store: UpkeepStore, *, until: float) -> Waiting:
    """Blocks. No request begins after `until` (of the monotonic clock), but for the first."""
    query = Query(statuses=(Status.PENDING,))
    token: str | None = None
    found = Waiting()
    for _ in range(SCANS):
        page = store.scan(query, PAGE, token)
        for job in page.jobs:
            found = found.with_job(job)
        token = page.token
        if token is None:
            return found
        if time.monotonic() >= until:
            break
    found = replace(found, complete=False)
    # The reaper looks at a whole day at each run, and at all jobs once a day.
    run = last_run(store) if time.monotonic() < until else None
    known = run.oldest_pending if run is not None else None
    longest = store.get(known) if known is not None and time.monotonic() < until else None
    return found if longest is None else found.with_job(longest, counted=True)


def waiting_check(found: Waiting, now: datetime) -> Check:
    detail: JsonObject = {"count": found.count, "complete": found.complete}
    if found.since is None:
        return Check(ok=True, detail=detail)
    waited = now - found.since
    detail |= {
        "oldestJobId": found.job_id,
        "oldestSince": stamp(found.since),
        "oldestSeconds": max(int(waited.total_seconds()), 0),
    }
    return Check(ok=waited < PENDING_TOO_LONG, detail=detail)


def reaper_check(run: LastRun | None, expression: str, now: datetime, started: datetime) -> Check:
    """`expression`: the timer's schedule. `started`: when this process did; counts where no run is known."""
    plan = schedule.parse(expression)
    due = plan.due_before(now - TIMER_GRACE) if plan is not None else None
    detail: JsonObject = {"schedule": expression}
    if run is None:
        detail["lastRun"] = None
        return Check(ok=due is None or due < started, detail=detail)
    detail |= {"lastRun": stamp(run.at), "secondsAgo": max(int((now - run.at).total_seconds()), 0), **run.did}
    # The clocks of the host and of storage's writers may be apart a little.
    return Check(ok=due is None or run.at >= due - CLOCKS_APART, detail=detail)
