"""An owner's jobs, newest first, page by page: for HTTP and for the tool `job_list`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shared.jobs import answers
from shared.jobs.model import Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.repair import repaired
from shared.jobs.store import JobStore, Query
from shared.tool.spec import JsonObject

DEFAULT_LIMIT: Final = 20
MOST: Final = 100
#: Requests that one page may cost: the jobs of other owners may lie between.
SCANS: Final = 5

#: What a list leaves out of a job's status body.
_LEFT_OUT: Final = ("logs", "logsDropped")


@dataclass(frozen=True, slots=True)
class Lister:
    """Lists jobs. All of it blocks."""

    store: JobStore
    sealer: Sealer

    def page(
        self,
        owner: str,
        *,
        limit: int = DEFAULT_LIMIT,
        cursor: str | None = None,
        tool: str | None = None,
        status: str | None = None,
    ) -> JsonObject:
        """`{"jobs": […], "cursor"?}`. A page may be short, or empty, and still carry a cursor.

        Raises `InputError` for a cursor that no page of this owner gave.
        """
        token = None if cursor is None else self.sealer.token(owner, cursor)
        statuses = () if status is None else (Status(status),)
        query = Query(owner=owner, tool_name=tool, statuses=statuses)
        found: list[Job] = []
        for _ in range(SCANS):
            page = self.store.scan(query, limit - len(found), token)
            moved = [repaired(job, self.store) for job in page.jobs]
            found += [job for job in moved if not statuses or job.status in statuses]
            token = page.token
            if token is None or len(found) >= limit:
                break
        body: JsonObject = {"jobs": [listed(job) for job in found]}
        return body if token is None else {**body, "cursor": self.sealer.cursor(owner, token)}


def listed(job: Job) -> JsonObject:
    """A job in short: its status body without logs and result."""
    body = answers.status_body(job, (), None)
    return {name: value for name, value in body.items() if name not in _LEFT_OUT}
