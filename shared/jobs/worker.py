"""Runs queued jobs: one message, at most one run.

A message is only a hint. What it says is looked up; a duplicate, a late one, or one for a job that has ended or
is being run by another worker changes nothing and is done with.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from shared import storage, telemetry
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.errors import LostLeaseError, PayloadError, ResultError
from shared.invocations.log import InvocationLog
from shared.jobs import keys, model, repair
from shared.jobs.attempt import Outcome, run_attempt
from shared.jobs.checkpoint import JobCheckpoint, Kept, open_kept
from shared.jobs.isolation.recipe import ToolHomes
from shared.jobs.logs import Level
from shared.jobs.model import INPUT_IN_BLOB, ErrorCode, Job, Status, utc_now
from shared.jobs.outcome import count_end, job_record
from shared.jobs.payload import Input, Sealer, pack_result, stored_body, unpack_input
from shared.jobs.recorder import Recorder
from shared.jobs.store import JobStore, Opened
from shared.jobs.unforeseen import ERROR_LIMIT
from shared.redaction import Redactor
from shared.settings import Settings
from shared.tool.handler import Catalogue
from shared.tool.result import ToolResult
from shared.tool.threads import abandoned

_LOG = logging.getLogger(__name__)

#: Seconds until a message is seen again that this process must not take.
POSTPONED: Final = 30
#: Threads of tools that were given up and still run; with so many, a process takes no more jobs.
MOST_ABANDONED: Final = 4


class Worker:
    """Runs jobs of the catalogue's tools."""

    def __init__(
        self,
        catalogue: Catalogue,
        store: JobStore,
        sealer: Sealer,
        settings: Settings,
        log: InvocationLog | None = None,
        homes: ToolHomes | None = None,
        environments: Environments | None = None,
        recorder: Callable[..., Recorder] = Recorder,
    ) -> None:
        self._catalogue = catalogue
        self._store = store
        self._sealer = sealer
        self._settings = settings
        self._log = log or InvocationLog()
        # Where tools with a process of their own are loaded from.
        self._homes = homes
        self._environments = environments or Environments(ConnectionBook(""))
        self._recorder = recorder

    @property
    def healthy(self) -> bool:
        """False while too many tools past their deadline cannot be stopped: a restart would end them."""
        return abandoned() < MOST_ABANDONED

    async def handle(self, body: str, invocation: object = None) -> None:
        """Handles one queue message. Raises only what a later delivery may mend (storage trouble).

        `invocation`: the host's context of the delivery.
        """
        job_id = message_job_id(body)
        if job_id is None:
            return
        if not self.healthy:
            _LOG.error(
                "job %s: left to others; %d tools that were given up still run here", job_id, abandoned()
            )
            await storage.run(partial(self._store.send, job_id, delay=POSTPONED))
            return
        opened = await storage.run(self._store.open, job_id)
        if opened is None:
            _LOG.warning("job %s: a message without a job; nothing to do", job_id)
            return
        # Before the claim: what fails here is delivered again and finds the job as it was.
        given, unreadable = await storage.run(self._input, opened.job, opened)
        try:
            claimed = await self._claim(opened.job)
            if claimed is not None:
                with telemetry.attempt(claimed, invocation) as span:
                    await self._run(claimed, given, unreadable, opened.kept, span)
        except LostLeaseError:
            _LOG.info("job %s: another worker has it", job_id)

    async def handle_poison(self, body: str) -> None:
        """A message that the host has given up: its job is failed, unless it has ended or is being run."""
        await storage.run(self.give_up, body)

    def give_up(self, body: str) -> None:
        """The same, blocking."""
        job_id = message_job_id(body)
        if job_id is None:
            return
        job = self._store.get(job_id)
        now = utc_now()
        if job is None or job.status.terminal or job.window is not None:
            return
        if job.status is Status.IN_PROGRESS and not job.lease_expired(now):
            return
        error = "The job's message could not be processed and was given up."
        if job.delivery_error:
            error = f"{error} The last error: {job.delivery_error}"
        try:
            repair.end(job, model.fail(job, now, ErrorCode.POISONED, error), self._store)
        except LostLeaseError:
            _LOG.info("job %s: has moved on since its message was given up", job_id)

    async def _claim(self, job: Job) -> Job | None:
        """The job as claimed; None when there is nothing to run."""
        now = utc_now()
        lost = job if job.lease_expired(now) else None
        if lost is not None:
            moved = model.expire(job, now)
            if moved.status.terminal:
                await storage.run(repair.end, job, moved, self._store)
                telemetry.worker_lost(lost)
                return None
            job = moved
        if job.status is not Status.PENDING or job.window is not None:
            return None  # a window waits for a person, whatever a message says
        claimed = await storage.run(self._store.write, model.claim(job, now, self._settings.lease_ms))
        if lost is not None:
            telemetry.worker_lost(lost)
        return claimed

    async def _run(
        self, job: Job, given: Input, unreadable: Outcome | None, kept: bytes | None, span: telemetry.Span
    ) -> None:
        redact = Redactor([given.auth_token, *given.secrets], arguments=lambda: given.arguments)
        recorder = self._recorder(
            job,
            self._store,
            redact,
            lease_ms=self._settings.lease_ms,
            renew_every_ms=self._settings.lease_renew_ms,
        )
        recorder.log("info", f"running (attempt {job.attempt} of {job.max_attempts})")
        checkpoint = self._checkpoint(job, kept, recorder)
        recorder.start()
        try:
            entry = self._catalogue.get(job.tool_name)
            outcome = unreadable or await run_attempt(
                entry, job, given, recorder, redact, self._store, self._homes, self._environments, checkpoint
            )
            end, last_line = await storage.run(self._ending, job, outcome, redact)
            ended = await storage.run(recorder.finish, end, last_line)
            telemetry.end_attempt(span, ended)
            count_end(ended)
            hidden = await self._connection_words(ended, given) if ended.error else ()
            self._log.add(partial(job_record, ended, hidden), stored=False)
        except LostLeaseError:
            # Lost to another, or only the answer to our own end was: the input of an ended job goes either way.
            has_parts = checkpoint.has_parts
            await storage.run(partial(repair.drop_ended_bodies, job, self._store, has_parts=has_parts))
            raise
        except Exception as error:
            # The end could not be written: give the lease up, so that nobody waits for it to run out.
            await storage.run(recorder.release, f"{type(error).__name__}: {str(error)[:ERROR_LIMIT]}")
            raise
        finally:
            recorder.close()
        await storage.run(repair.drop_input_blob, job, self._store)
        if checkpoint.has_parts:
            await storage.run(repair.drop_parts, job, self._store)

    async def _connection_words(self, job: Job, given: Input) -> tuple[str, ...]:
        """What tells which connections the call named: its error may, and the log is not its owner's alone."""
        if not given.connections:
            return ()
        try:
            found = await storage.run(self._environments.of_ids, given.connections, job.owner, job.tool_name)
        except Exception:
            # The job has ended: nothing that is asked for its log line may change that.
            return (job.connection_name, *given.connections)
        return tuple(word for one in found for word in one.words)

    def _checkpoint(self, job: Job, sealed: bytes | None, recorder: Recorder) -> JobCheckpoint:
        found = Kept()
        try:
            found = open_kept(job, sealed, self._sealer)
        except PayloadError as error:
            # Only time is lost by it.
            recorder.log("warn", f"what an earlier attempt has kept cannot be read: {error.message}")
        return JobCheckpoint(job, self._store, self._sealer, found, recorder.keep, lambda: recorder.over)

    def _input(self, job: Job, opened: Opened) -> tuple[Input, Outcome | None]:
        """The job's input, or why it cannot be read."""
        if job.input_at == model.INPUT_ERASED:
            return Input({}), None  # it has ended: nothing will be run
        try:
            sealed = opened.sealed
            if job.input_at == INPUT_IN_BLOB:
                sealed = self._store.get_blob(keys.input_blob(job.job_id))
            if sealed is None:
                raise PayloadError("The job's stored input is gone.")
            return unpack_input(self._sealer.open(job.job_id, sealed)), None
        except PayloadError as error:
            return Input({}), Outcome(error=error.message)

    def _ending(
        self, job: Job, outcome: Outcome, redact: Redactor
    ) -> tuple[Callable[[Job], Job], tuple[Level, str]]:
        """The terminal move and the log's last line. A large result is stored before."""
        body = None
        if outcome.result is not None:
            try:
                data = pack_result(redacted(outcome.result, redact))
            except ResultError as error:
                outcome = Outcome(error=error.message, code=ErrorCode.INVALID_RESULT)
            else:
                body = stored_body(data, job.attempt)
                if body.in_blob:
                    self._store.put_blob(keys.result_blob(job.job_id, job.attempt), data)
        if body is not None and not outcome.error:
            return partial(_completed, result=body), (Level.INFO, "completed")
        text = redact(outcome.error)
        return partial(_failed, code=outcome.code, error=text, result=body), (Level.ERROR, text)


def message_job_id(body: str) -> str | None:
    """The job that a queue message names. What cannot name one is logged by its hash, never by its text."""
    try:
        found = json.loads(body).get("jobId")
    except (ValueError, AttributeError, RecursionError):
        found = None
    if keys.is_job_id(found):
        return str(found)
    digest = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:16]
    _LOG.error("a queue message that names no job was dropped (SHA-256 %s, %d characters)", digest, len(body))
    return None


def redacted(result: ToolResult, redact: Redactor) -> ToolResult:
    """The result as stored: without the call's own token, which a tool may have echoed."""
    if not redact.knows_tokens:
        return result
    return replace(
        result, structured=redact.data(result.structured), content=tuple(redact.data(list(result.content)))
    )


def _completed(job: Job, *, result: model.StoredBody) -> Job:
    return model.complete(job, utc_now(), result)


def _failed(job: Job, *, code: ErrorCode, error: str, result: model.StoredBody | None) -> Job:
    return model.fail(job, utc_now(), code, error, result)
