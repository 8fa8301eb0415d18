"""Reads an owner's jobs newest first, for lists that hold other things beside them."""

from __future__ import annotations

from shared.invocations.reading import ALL_READ, NOTHING_READ
from shared.jobs import keys
from shared.jobs.model import Job, Status
from shared.jobs.repair import repaired
from shared.jobs.store import JobStore, Query


class JobReading:
    """One reading of an owner's jobs older than `before` (an id; "": from the newest on).

    `low` tells how far it has got: every job whose id is `low` or greater has been given. See
    `shared.invocations.reading`, its counterpart for the calls that are no jobs.
    """

    #: What was fetched is given at once.
    drained = True

    def __init__(
        self,
        store: JobStore,
        owner: str,
        before: str,
        token: str | None,
        *,
        tool: str | None,
        statuses: tuple[Status, ...],
        rows: int,
        requests: int,
        since_ms: int | None = None,
    ) -> None:
        """`token`: where an earlier reading of the same `before` has stopped. `rows`: of one request.

        `since_ms`: milliseconds since 1970; no job that was made earlier is looked for. None: all are.
        """
        self.before = before
        self.token = token
        self.low = NOTHING_READ
        self._store = store
        # One character more than the partition of that job: the next one on.
        start = f"{keys.partition_key(before)}0" if before else ""
        # The keys run from the newest to the oldest: what is "before" a key in a scan is younger than it.
        end = "" if since_ms is None else keys.first_partition(since_ms)
        self._query = Query(start=start, before=end, owner=owner, tool_name=tool, statuses=statuses)
        self._rows = rows
        self._requests = requests

    def more(self) -> list[Job] | None:
        """More jobs, newest first; maybe none. None: this reading has done what it may. Blocks.

        A job whose worker was lost is given as it is after the move that the worker did not make.
        """
        if self.low == ALL_READ or self._requests <= 0:
            return None
        self._requests -= 1
        page = self._store.scan(self._query, self._rows, self.token)
        self.token = page.token
        if page.token is None:
            self.low = ALL_READ
        elif page.jobs:
            self.low = page.jobs[-1].job_id
        return [repaired(job, self._store) for job in page.jobs]
