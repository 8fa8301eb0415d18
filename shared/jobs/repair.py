"""The move that a lost worker did not make. Made by whoever notices: a delivery, a read, or the timer.

A worker that is killed leaves its job in progress until its lease runs out. A read then gives the job back to
the queue, or ends it, and shows what it wrote; so nobody waits for a timer to find out.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from shared import telemetry
from shared.errors import LostLeaseError
from shared.jobs import keys, model, window_moves
from shared.jobs.idempotency import is_tied
from shared.jobs.model import INPUT_IN_BLOB, INPUT_IN_ROW, Job, Status, utc_now
from shared.jobs.outcome import log_end
from shared.jobs.store import Change, JobStore
from shared.jobs.submit import send

_LOG = logging.getLogger(__name__)


#: A pending job's message counts as lost when nobody has taken it for so long.
RESEND_AFTER: Final = timedelta(minutes=15)


def due(job: Job, now: datetime) -> bool:
    """Whether somebody has failed to make a move by now."""
    return job.lease_expired(now) or job.window_over(now) or job.resend_due(now, RESEND_AFTER)


def repaired(job: Job, store: JobStore, now: datetime | None = None) -> Job:
    """The job, after the move that somebody failed to make. Blocks.

    A lost attempt is given back or ended when its lease has run out; a message that seems lost is sent again; a
    window whose time is up is closed.
    `now`: the time to go by (the clock's when absent).
    """
    now = now or utc_now()
    if not due(job, now):
        return job
    try:
        if job.window is not None:
            return _timed_out(job, store, now)
        if job.status is Status.PENDING:
            return _sent_again(job, store, now)
        stored = end(job, model.expire(job, now), store)
        telemetry.worker_lost(job)
    except LostLeaseError:
        return store.get(job.job_id) or job  # somebody else was quicker
    if stored.status is Status.PENDING:
        send(stored, store)
    return stored


def _timed_out(job: Job, store: JobStore, now: datetime) -> Job:
    moved = window_moves.expired(job, now)
    if is_tied(job, store):
        return end(job, moved, store)
    store.purge(job)  # as below: nobody was told of it
    return moved


def _sent_again(job: Job, store: JobStore, now: datetime) -> Job:
    if not is_tied(job, store):
        # Its call was cut off before the idempotency key was its own: nobody knows of it, and it must not run.
        store.purge(job)
        return job
    stored = store.write(model.resend(job, now))
    send(stored, store)
    return stored


def end(job: Job, moved: Job, store: JobStore) -> Job:
    """Writes a move that no attempt makes; a terminal one erases what is sealed. Raises `LostLeaseError`."""
    if not moved.status.terminal:
        return store.write(moved)
    stored = store.write(moved, Change(drop_input=job.input_at == INPUT_IN_ROW, drop_kept=job.kept))
    log_end(stored)
    drop_input_blob(job, store)
    if job.kept:
        drop_parts(job, store)
    return stored


def drop_input_blob(job: Job, store: JobStore) -> None:
    """Deletes the sealed input of a job that has ended. Never raises: retention comes by later."""
    if job.input_at != INPUT_IN_BLOB:
        return
    try:
        store.delete_blob(keys.input_blob(job.job_id))
    except Exception:
        _LOG.warning("job %s: its sealed input could not be deleted yet", job.job_id, exc_info=True)


def drop_parts(job: Job, store: JobStore) -> None:
    """Deletes what the attempts of a job that has ended have kept. Never raises: retention comes by later."""
    try:
        store.delete_parts(job.job_id)
    except Exception:
        _LOG.warning("job %s: its kept parts could not be deleted yet", job.job_id, exc_info=True)


def drop_ended_bodies(job: Job, store: JobStore, *, has_parts: bool) -> None:
    """The same for the sealed input and for parts, if the job has ended meanwhile. Never raises."""
    if job.input_at != INPUT_IN_BLOB and not has_parts:
        return
    try:
        stored = store.get(job.job_id)
    except Exception:
        return  # retention comes by later
    if stored is not None and stored.status.terminal:
        drop_input_blob(job, store)
        if has_parts:
            drop_parts(job, store)
