"""Opens the windows of jobs, and takes what they give. All of it blocks, and may be called at once.

Every change is a conditional write of the job's row: of two that come at once one goes through, and the other
one finds the row as it is then. Costs: opening 2 storage requests, a page's file or call 1, an end 2 (3 when
the result is too large for a row, and 1 more each where the input was).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from shared.errors import (
    JobEndedError,
    JobError,
    JobNotFoundError,
    LostLeaseError,
    PayloadError,
    WindowSessionError,
    WindowTicketError,
)
from shared.jobs import keys, repair, window_moves
from shared.jobs.logs import Level, LogRing
from shared.jobs.model import INPUT_ERASED, INPUT_IN_BLOB, INPUT_IN_ROW, Job, StoredBody, utc_now
from shared.jobs.outcome import log_end
from shared.jobs.payload import Input, Sealer, pack_result, stored_body, unpack_input
from shared.jobs.store import Change, JobStore
from shared.jobs.window import new_secret
from shared.redaction import Redactor
from shared.tool.result import ToolResult

#: Tries of a change while others change the same row.
TRIES: Final = 10
#: Blobs of results are numbered by attempts; a window has none, and two that end at once must not share one.
_NUMBERS: Final = 2**31 - 1


#: Gives the job back if the caller may have it, and raises if not; None: there is no such job.
type _Check = Callable[[Job | None], Job]


@dataclass(frozen=True, slots=True)
class Inside:
    """A job as its window sees it: the row, and what the call has given."""

    job: Job
    given: Input = field(repr=False)

    @property
    def redactor(self) -> Redactor:
        return Redactor([self.given.auth_token, *self.given.secrets], arguments=lambda: self.given.arguments)


@dataclass(frozen=True, slots=True)
class WindowStore:
    """The windows of a store's jobs."""

    store: JobStore
    sealer: Sealer

    def new_ticket(self, job: Job) -> tuple[Job, str]:
        """(the job, a ticket that takes the place of its last one). Raises `JobEndedError`."""
        ticket = new_secret()

        def move(inside: Inside) -> tuple[Job, Change]:
            return window_moves.with_ticket(inside.job, ticket, utc_now()), Change()

        return self._changed(job.job_id, _check_there, move).job, ticket

    def open_with_ticket(self, job_id: str, ticket: str) -> tuple[Inside, str]:
        """(the job, a session). The ticket is used up. Raises `WindowTicketError`, `JobEndedError`."""

        def check(job: Job | None) -> Job:
            if job is None or job.window is None or not job.window.knows_ticket(ticket, utc_now()):
                raise WindowTicketError
            return job

        return self._opened(job_id, check, by_ticket=True)

    def open_for_owner(self, job_id: str, owner: str) -> tuple[Inside, str]:
        """(the job, a session), for whoever has the owner's token.

        Raises `JobNotFoundError`, also for another owner's job and one without a window, and `JobEndedError`.
        """

        def check(job: Job | None) -> Job:
            if job is None or job.owner != owner or job.window is None:
                raise JobNotFoundError
            return job

        return self._opened(job_id, check, by_ticket=False)

    def page_job(self, job_id: str, page_key: str) -> Job:
        """The job whose page has this key. One request. Raises `WindowSessionError`, `JobEndedError`."""
        job = self.store.get(job_id) if keys.is_job_id(job_id) else None
        if job is None or job.window is None or not job.window.knows_page(page_key):
            raise WindowSessionError
        return _going_on(repair.repaired(job, self.store))

    def inside(self, job_id: str, session: str) -> Inside:
        """The job of a session with its input. Raises `WindowSessionError`, `JobEndedError`, `PayloadError`."""
        return self._read(job_id, lambda job: _check_session(job, session))

    def give(self, job_id: str, session: str, checked: Callable[[Inside], ToolResult]) -> Job:
        """Completes the job with a result. Raises as `inside` does, and what `checked` raises."""

        def move(inside: Inside) -> tuple[Job, Change]:
            # Who it is comes before what is given: a stranger learns nothing of a tool's schema.
            result, redact = checked(inside), inside.redactor
            clean = replace(result, structured=redact.data(result.structured))
            return self._ended(inside.job, clean, window_moves.given, "a person has given the result")

        return self._changed(job_id, lambda job: _check_session(job, session), move).job

    def close(self, job_id: str, session: str) -> Job:
        """Completes the job without data. Raises as `inside` does."""

        def move(inside: Inside) -> tuple[Job, Change]:
            result = ToolResult(structured=window_moves.no_result(inside.job))
            return self._ended(inside.job, result, window_moves.closed, "the window was closed without data")

        return self._changed(job_id, lambda job: _check_session(job, session), move).job

    def _opened(self, job_id: str, check: _Check, *, by_ticket: bool) -> tuple[Inside, str]:
        session = new_secret()

        def move(inside: Inside) -> tuple[Job, Change]:
            how = "with its link" if by_ticket else "by its owner"
            moved = window_moves.opened(inside.job, session, utc_now(), by_ticket=by_ticket)
            return _logged(moved, f"the window was opened {how}")

        return self._changed(job_id, check, move), session

    def _ended(self, job: Job, result: ToolResult, move: Callable[..., Job], line: str) -> tuple[Job, Change]:
        data = pack_result(result)
        body: StoredBody = stored_body(data, secrets.randbelow(_NUMBERS) + 1)
        if body.in_blob:
            self.store.put_blob(keys.result_blob(job.job_id, body.attempt), data)
        moved, change = _logged(move(job, utc_now(), body), line)
        return moved, replace(change, drop_input=job.input_at == INPUT_IN_ROW)

    def _changed(
        self,
        job_id: str,
        check: _Check,
        move: Callable[[Inside], tuple[Job, Change]],
    ) -> Inside:
        """The job after a move, whoever else changes it meanwhile."""
        for _ in range(TRIES):
            inside = self._read(job_id, check)
            try:
                stored = self.store.write(*move(inside))
            except LostLeaseError:
                continue
            if stored.status.terminal:
                log_end(stored)
                repair.drop_input_blob(inside.job, self.store)
            return replace(inside, job=stored)
        raise JobError("The window changes too quickly; try again.")

    def _read(self, job_id: str, check: _Check) -> Inside:
        """The job with its input, once `check` has let the caller through. Raises `JobEndedError`."""
        opened = self.store.open(job_id) if keys.is_job_id(job_id) else None
        if opened is None:
            check(None)
            raise JobNotFoundError
        job = _going_on(repair.repaired(check(opened.job), self.store))
        sealed = opened.sealed
        if job.input_at == INPUT_IN_BLOB:
            sealed = self.store.get_blob(keys.input_blob(job_id))
        if sealed is None or job.input_at == INPUT_ERASED:
            raise PayloadError("The job's stored input is gone.")
        return Inside(job, unpack_input(self.sealer.open(job_id, sealed)))


def _check_there(job: Job | None) -> Job:
    if job is None:
        raise JobNotFoundError
    return job


def _check_session(job: Job | None, session: str) -> Job:
    if job is None or job.window is None or not job.window.knows_session(session):
        raise WindowSessionError
    return job


def _going_on(job: Job) -> Job:
    if job.status.terminal:
        raise JobEndedError(job.status)
    return job


def _logged(job: Job, text: str) -> tuple[Job, Change]:
    """The job with one more line in its log."""
    ring = LogRing(job.log_lines, job.log_chunk)
    ring.append(Level.INFO, text, utc_now())
    return replace(job, log_lines=ring.lines, log_chunk=ring.next_chunk), Change(tuple(ring.take_dirty()))
