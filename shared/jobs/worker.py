"""Runs queued jobs: one message, at most one run.

A message is only a hint. What it says is looked up; a duplicate, a late one, or one for a job that has ended or
is being run by another worker changes nothing and is done with.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from shared import storage
from shared.errors import JobCancelledError, LostLeaseError, PayloadError, ResultError, ToolboxError
from shared.jobs import keys, model, repair
from shared.jobs.logs import Level
from shared.jobs.model import INPUT_IN_BLOB, ErrorCode, Job, Status, utc_now
from shared.jobs.payload import Input, Sealer, pack_result, stored_body, unpack_input
from shared.jobs.recorder import Recorder
from shared.jobs.store import JobStore, Opened
from shared.redaction import Redactor
from shared.settings import Settings
from shared.tool.call import ToolCall
from shared.tool.context import Context
from shared.tool.execution import DeadlinePassedError, run_on_own_thread
from shared.tool.handler import Catalogue
from shared.tool.result import ToolResult

_LOG = logging.getLogger(__name__)

#: Characters of an unforeseen exception's text that a caller is told.
ERROR_LIMIT: Final = 2_000
_FOLDERS: Final = tuple(
    f"{folder.rstrip(os.sep)}{os.sep}"
    for folder in (str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix, str(Path.home()))
    if folder.strip(os.sep)
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended."""

    result: ToolResult | None = None
    error: str = ""
    code: ErrorCode = ErrorCode.TOOL_ERROR


class Worker:
    """Runs jobs of the catalogue's tools."""

    def __init__(self, catalogue: Catalogue, store: JobStore, sealer: Sealer, settings: Settings) -> None:
        self._catalogue = catalogue
        self._store = store
        self._sealer = sealer
        self._settings = settings

    async def handle(self, body: str) -> None:
        """Handles one queue message. Raises only what a later delivery may mend (storage trouble)."""
        job_id = message_job_id(body)
        if job_id is None:
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
                await self._run(claimed, given, unreadable)
        except LostLeaseError:
            _LOG.info("job %s: another worker has it", job_id)

    async def handle_poison(self, body: str) -> None:
        """A message that the host has given up: its job is failed, unless it has ended or is being run."""
        job_id = message_job_id(body)
        if job_id is None:
            return
        job = await storage.run(self._store.get, job_id)
        now = utc_now()
        if job is None or job.status.terminal:
            return
        if job.status is Status.IN_PROGRESS and not job.lease_expired(now):
            return
        error = "The job's message could not be processed and was given up."
        try:
            await storage.run(repair.end, job, model.fail(job, now, ErrorCode.POISONED, error), self._store)
        except LostLeaseError:
            _LOG.info("job %s: has moved on since its message was given up", job_id)

    async def _claim(self, job: Job) -> Job | None:
        """The job as claimed; None when there is nothing to run."""
        now = utc_now()
        if job.lease_expired(now):
            moved = model.expire(job, now)
            if moved.status.terminal:
                await storage.run(repair.end, job, moved, self._store)
                return None
            job = moved
        if job.status is not Status.PENDING:
            return None
        return await storage.run(self._store.write, model.claim(job, now, self._settings.lease_ms))

    async def _run(self, job: Job, given: Input, unreadable: Outcome | None) -> None:
        redact = Redactor([given.auth_token])
        recorder = Recorder(
            job,
            self._store,
            redact,
            lease_ms=self._settings.lease_ms,
            renew_every_ms=self._settings.lease_renew_ms,
        )
        recorder.log("info", f"running (attempt {job.attempt} of {job.max_attempts})")
        recorder.start()
        try:
            outcome = unreadable or await self._attempt(job, given, recorder, redact)
            end, last_line = await storage.run(self._ending, job, outcome, redact)
            await storage.run(recorder.finish, end, last_line)
        except LostLeaseError:
            raise
        except Exception:
            # The end could not be written: give the lease up, so that nobody waits for it to run out.
            await storage.run(recorder.release)
            raise
        finally:
            recorder.close()
        await storage.run(repair.drop_input_blob, job, self._store)

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

    async def _attempt(self, job: Job, given: Input, recorder: Recorder, redact: Redactor) -> Outcome:
        context = Context(
            tool_id=job.tool_id,
            tool_name=job.tool_name,
            invocation_mode=job.mode,
            execution_mode=job.execution_mode,
            correlation_id=job.correlation_id,
            job_id=job.job_id,
            attempt=job.attempt,
            timeout_ms=job.timeout_ms,
            owner=job.owner,
            auth_token=given.auth_token,
            call=ToolCall.from_json(given.call),
            sink=recorder,
        )
        entry = self._catalogue.get(job.tool_name)
        if entry is None:
            return Outcome(error=f"Tool not found: {job.tool_name}")
        try:
            handler = await storage.run(entry.load)
            value = await run_on_own_thread(handler, given.arguments, context)
            result = await storage.run(handler.finish, value)
        except DeadlinePassedError:
            recorder.abandon("The job's deadline has passed.")
            return Outcome(
                error=f"Headless execution timed out after {job.timeout_ms} ms", code=ErrorCode.TIMEOUT
            )
        except JobCancelledError as error:
            return Outcome(error=error.message, code=ErrorCode.CANCELLED)
        except ResultError as error:
            return Outcome(error=error.message, code=ErrorCode.INVALID_RESULT)
        except ToolboxError as error:
            return Outcome(error=error.message)
        except Exception as error:
            _LOG.warning("job %s: %s", job.job_id, redact("".join(traceback.format_exception(error))))
            return Outcome(error=describe(job.tool_name, error))
        if result.is_error:
            return Outcome(error=result.text or f"Tool '{job.tool_name}' reported an error.")
        return Outcome(result)

    def _ending(
        self, job: Job, outcome: Outcome, redact: Redactor
    ) -> tuple[Callable[[Job], Job], tuple[Level, str]]:
        """The terminal move and the log's last line. A large result is stored before."""
        if outcome.result is not None:
            try:
                data = pack_result(redacted(outcome.result, redact))
            except ResultError as error:
                outcome = Outcome(error=error.message, code=ErrorCode.INVALID_RESULT)
            else:
                body = stored_body(data, job.attempt)
                if body.in_blob:
                    self._store.put_blob(keys.result_blob(job.job_id, job.attempt), data)
                return partial(_completed, result=body), (Level.INFO, "completed")
        error_text = redact(outcome.error)
        return partial(_failed, code=outcome.code, error=error_text), (Level.ERROR, error_text)


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


def describe(tool_name: str, error: BaseException) -> str:
    """An unforeseen exception in one line: its kind and its text, no traceback."""
    try:
        text = without_paths(str(error).strip())[:ERROR_LIMIT]
    except Exception:
        text = ""  # an exception that cannot say what it is
    return f"Tool '{tool_name}' failed: {type(error).__name__}" + (f": {text}" if text else "")


def without_paths(text: str) -> str:
    """The text without the folders of this app and its Python: where things are is nobody's business."""
    for folder in _FOLDERS:
        text = text.replace(folder, "")
    return text


def redacted(result: ToolResult, redact: Redactor) -> ToolResult:
    """The result as stored: without the call's own token, which a tool may have echoed."""
    if not redact.knows_secrets:
        return result
    return replace(
        result, structured=redact.data(result.structured), content=tuple(redact.data(list(result.content)))
    )


def _completed(job: Job, *, result: model.StoredBody) -> Job:
    return model.complete(job, utc_now(), result)


def _failed(job: Job, *, code: ErrorCode, error: str) -> Job:
    return model.fail(job, utc_now(), code, error)
