"""What the timer's last run leaves behind, for who wants to know whether it still runs: one small row.

partition "state", row "reaper":
    {"at": when it began, "repaired", "purged", "orphans", "poison": counts, "outOfRequests": it stopped early,
     "oldestPending": id of the job that has waited longest among those it has looked at, or null}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from shared.jobs import keys
from shared.jobs.daily import Report
from shared.jobs.model import Job, Status
from shared.jobs.rows import stamp
from shared.tool.spec import JsonObject

STATE: Final = "reaper"


def waiting_since(job: Job) -> datetime | None:
    """Since when a job waits for a worker; None: it does not. A window waits for a person."""
    if job.status is not Status.PENDING or job.window is not None:
        return None
    # One that was given back has had a worker before; what it waits for began then.
    return (job.sent_at or job.created_at) if job.attempt else job.created_at


@dataclass(frozen=True, slots=True)
class LastRun:
    """One run of the timer."""

    at: datetime
    did: JsonObject
    #: Id of the job that had waited longest, if any was seen to wait.
    oldest_pending: str | None = None

    @classmethod
    def of(cls, at: datetime, report: Report) -> LastRun:
        did = {
            "repaired": report.repaired,
            "purged": report.purged,
            "orphans": report.orphans,
            "poison": report.poison,
            "outOfRequests": report.spent(),
        }
        return cls(at, did, report.waiting[1] if report.waiting else None)

    def to_text(self) -> str:
        return json.dumps({"at": stamp(self.at), **self.did, "oldestPending": self.oldest_pending})

    @classmethod
    def from_text(cls, text: str) -> LastRun | None:
        """None for no row, and for one of another version."""
        try:
            body = json.loads(text)
            at, oldest = datetime.fromisoformat(body.pop("at")), body.pop("oldestPending")
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        if at.tzinfo is None:
            return None
        return cls(at, body, oldest if keys.is_job_id(oldest) else None)
