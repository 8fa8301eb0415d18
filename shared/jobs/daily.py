"""The part of the timer's work that is done once a day and may take several runs, and the account of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared import ids
from shared.jobs import keys
from shared.jobs.store import UpkeepStore

#: A body is stored before its job's row is; one without a row is an orphan only when it is older.
ORPHAN_AGE: Final = timedelta(hours=1)


@dataclass(slots=True)
class Report:
    """What a run did."""

    repaired: int = 0
    purged: int = 0
    orphans: int = 0
    poison: int = 0
    #: Requests that the run may still make; below zero: it stopped early.
    budget: int = 0
    #: (since when, its id) of the job that has waited longest for a worker, among those that were looked at.
    waiting: tuple[datetime, str] | None = None

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
            found = cls(datetime.fromisoformat(started), jobs_done, token, marker)
        except (ValueError, TypeError):
            return None  # nothing yet, or another version's
        return None if found.started.tzinfo is None else found


def remove_orphans(store: UpkeepStore, marker: str | None, now: datetime, report: Report) -> str | None:
    """Removes bodies that belong to no job, and what is sealed of jobs that have ended. Blocks.

    Where to go on; None: at the end. A page once begun is finished, so that each run comes further.
    """
    youngest = int((now - ORPHAN_AGE).timestamp() * 1000)
    while marker is not None and not report.spent():
        report.budget -= 1
        page = store.blob_page(marker)
        found: dict[str, list[str]] = {}
        for name in page.names:
            found.setdefault(name.partition("/")[0], []).append(name)
        for job_id, names in found.items():
            if ids.is_id(job_id) and ids.milliseconds_of(job_id) < youngest:
                removed = _left_over(job_id, names, store)
                report.orphans += removed
                report.budget -= 1 + removed
        marker = page.next_marker or None
    return marker


def _left_over(job_id: str, names: list[str], store: UpkeepStore) -> int:
    job = store.get(job_id)
    if job is not None:
        own_input, parts = keys.input_blob(job_id), keys.parts_prefix(job_id)
        sealed = [name for name in names if name == own_input or name.startswith(parts)]
        names = sealed if job.status.terminal else []
    for name in names:
        store.delete_blob(name)
    return len(names)
