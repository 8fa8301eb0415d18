"""`GET /mcp/jobs/{jobId}` and `GET /mcp/jobs/{jobId}/status`: a job as its owner sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import azure.functions as func

from shared import storage
from shared.errors import JobNotFoundError, PayloadError, SettingsError
from shared.jobs import answers as job_answers
from shared.jobs import keys
from shared.jobs.model import Status
from shared.jobs.repair import repaired
from shared.jobs.store import JobStore
from shared.settings import Settings
from shared.tool.spec import JsonObject
from shared.web import answers

_LOG = logging.getLogger(__name__)


class JobsApi:
    """The HTTP functions about jobs."""

    def __init__(self, settings: Settings, store: Callable[[], JobStore]) -> None:
        self._settings = settings
        self._store = store

    async def status(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the status body; 401, 404, 405, 503 with `{"error": …}`."""
        owner = answers.refusal(request, self._settings)
        if isinstance(owner, func.HttpResponse):
            return owner
        refused = answers.method_refusal(request, "GET")
        if refused is not None:
            return refused
        job_id = request.route_params.get("jobId", "")
        if not keys.is_job_id(job_id):
            return answers.error(404, JobNotFoundError.default)
        try:
            body = await storage.run(self._read, job_id, owner)
        except SettingsError as error:
            return answers.error(503, error.message)
        except Exception:
            _LOG.exception("job %s: could not be read", job_id)
            return answers.error(503, "The job store cannot be reached; try again.", {"Retry-After": "5"})
        if body is None:
            return answers.error(404, JobNotFoundError.default)
        return answers.json_answer(200, body)

    def _read(self, job_id: str, owner: str) -> JsonObject | None:
        store = self._store()
        found = store.with_logs(job_id)
        if found is None or found[0].owner != owner:
            return None
        job, logs = repaired(found[0], store), found[1]
        if job.status is not Status.COMPLETED:
            return job_answers.status_body(job, logs, None)
        try:
            return job_answers.status_body(job, logs, job_answers.result_of(job, store))
        except PayloadError as error:
            return {**job_answers.status_body(job, logs, None), "error": error.message}
