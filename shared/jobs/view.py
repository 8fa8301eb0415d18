"""A job as its owner reads it: the status body, and a tag that changes when what is visible changes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from shared import storage
from shared.errors import JobNotFoundError, PayloadError
from shared.jobs import answers
from shared.jobs.logs import LogLine
from shared.jobs.model import Job, Status
from shared.jobs.repair import repaired
from shared.jobs.store import JobStore
from shared.tool.json_form import dumps
from shared.tool.spec import JsonObject

#: The most that a read may wait for a change, in seconds: proxies and clients give up later.
MOST_WAIT: Final = 25.0
#: Seconds between the reads of a waiting request.
FIRST_POLL: Final = 0.2
LAST_POLL: Final = 1.0


@dataclass(frozen=True, slots=True)
class View:
    """What one read has found."""

    job: Job
    logs: Sequence[LogLine]
    #: Of everything visible; lease renewals do not count.
    etag: str

    def body(self, store: JobStore) -> JsonObject:
        """The status body with the result. Blocks: a large result is a blob."""
        if self.job.result is None and self.job.status is not Status.COMPLETED:
            return answers.owners_body(self.job, self.logs, None)
        try:
            return answers.owners_body(self.job, self.logs, answers.result_of(self.job, store))
        except PayloadError as error:
            return {"error": error.message, **answers.owners_body(self.job, self.logs, None)}

    @property
    def retry_after(self) -> int | None:
        """Seconds until another read makes sense; None: the job has ended."""
        if self.job.status.terminal:
            return None
        return 1 if self.job.status is Status.IN_PROGRESS else 2


def look(job_id: str, owner: str, store: JobStore, logs_after: int = 0) -> View:
    """The job now, in one request. Blocks. Raises `JobNotFoundError`, also for another owner's job."""
    found = store.with_logs(job_id)
    if found is None or found[0].owner != owner:
        raise JobNotFoundError
    job = repaired(found[0], store)
    logs = [line for line in found[1] if line.sequence > logs_after]
    return View(job, logs, _etag(job))


async def watch(
    job_id: str, owner: str, store: JobStore, *, wait: float, seen: Collection[str] = (), logs_after: int = 0
) -> View:
    """The job once it looks different from what was seen, or after `wait` seconds.

    `seen`: tags of earlier reads; left out: what it looks like now.
    """
    deadline = time.monotonic() + min(wait, MOST_WAIT)
    pause = FIRST_POLL
    view = await storage.run(look, job_id, owner, store, logs_after)
    seen = seen or (view.etag,)
    while view.etag in seen and not view.job.status.terminal:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, LAST_POLL)
        view = await storage.run(look, job_id, owner, store, logs_after)
    return view


def _etag(job: Job) -> str:
    """The same whichever log lines are asked for, so that who follows a log can wait for the next one."""
    visible: JsonObject = {**answers.owners_body(job, (), None), "logs": job.log_lines}
    if job.result is not None:
        # Its body may lie in a blob, which is not read for this.
        inline = job.result.inline
        visible["result"] = job.result.sha256 if inline is None else hashlib.sha256(inline).hexdigest()
    return hashlib.sha256(dumps(visible).encode()).hexdigest()[:32]
