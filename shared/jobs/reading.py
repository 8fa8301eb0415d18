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
    ) -> None:
        """`token`: where an earlier reading of the same `before` has stopped. `rows`: of one request."""
        self.before = before
        self.token = token
        self.low = NOTHING_READ
        self._store = store
        # One character more than the partition of that job: the next one on.
        start = f"{keys.partition_key(before)}0" if before else ""
        self._query = Query(start=start, owner=owner, tool_name=tool, statuses=statuses)
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
