"""The move that a lost worker did not make. Made by whoever notices: a delivery, or a read of the job.

A worker that is killed leaves its job in progress until its lease runs out. A read then gives the job back to
the queue, or ends it, and shows what it wrote; so nobody waits for a timer to find out.
"""

from __future__ import annotations

import logging

from shared.errors import LostLeaseError
from shared.jobs import keys, model
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job, Status, utc_now
from shared.jobs.store import Change, JobStore

_LOG = logging.getLogger(__name__)


def repaired(job: Job, store: JobStore) -> Job:
    """The job, after its lost attempt was given back or ended if its lease has run out. Blocks."""
    now = utc_now()
    if not job.lease_expired(now):
        return job
    try:
        stored = end(job, model.expire(job, now), store)
    except LostLeaseError:
        return store.get(job.job_id) or job  # somebody else was quicker
    if stored.status is Status.PENDING:
        store.send(stored.job_id)
    return stored


def end(job: Job, moved: Job, store: JobStore) -> Job:
    """Writes a move made outside of an attempt. A terminal one erases the input. Raises `LostLeaseError`."""
    if not moved.status.terminal:
        return store.write(moved)
    stored = store.write(moved, Change(drop_input=job.input_at == INPUT_IN_ROW))
    drop_input_blob(job, store)
    return stored


def drop_input_blob(job: Job, store: JobStore) -> None:
    """Deletes the sealed input of a job that has ended. Never raises: retention comes by later."""
    if job.input_at != INPUT_IN_BLOB:
        return
    try:
        store.delete_blob(keys.input_blob(job.job_id))
    except Exception:
        _LOG.warning("job %s: its sealed input could not be deleted yet", job.job_id, exc_info=True)
