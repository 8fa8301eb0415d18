"""Jobs over HTTP, as their owner sees them.

    GET  /mcp/jobs/{jobId}[/status]             the status body; `wait`, `logsAfter`, If-None-Match
    GET  /mcp/jobs                              newest first; `limit`, `cursor`, `tool`, `status`
    POST /mcp/jobs/{jobId}/cancel               200 ended, 202 asked to stop, 409 has ended already
    GET  /mcp/jobs/{jobId}/artifacts/{name}     a file, whole or by Range

All answer 401, 404, 405, 503 with `{"error": …}`; the token is looked at before anything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import azure.functions as func

from shared import storage
from shared.errors import JobEndedError, JobNotFoundError
from shared.jobs import artifacts, keys, listing, view
from shared.jobs.cancel import cancel
from shared.jobs.model import Status
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore, StoredFile
from shared.settings import Settings
from shared.web import answers, ranges
from shared.web.params import Params


class JobsApi:
    """The HTTP functions about jobs."""

    def __init__(self, settings: Settings, sealer: Sealer, store: Callable[[], JobStore]) -> None:
        self._settings = settings
        self._sealer = sealer
        self._store = store

    async def status(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the status body, 304 when it is still what If-None-Match names."""

        async def answer(owner: str, job_id: str) -> func.HttpResponse:
            params = Params(request.params)
            wait = params.seconds("wait", 0, view.MOST_WAIT)
            logs_after = params.whole("logsAfter", 0, 0, 2**40)
            params.check()
            store, known = self._store(), answers.tags_of(request)
            if wait and "*" not in known:
                found = await view.watch(job_id, owner, store, wait=wait, seen=known, logs_after=logs_after)
            else:
                found = await storage.run(view.look, job_id, owner, store, logs_after)
            headers = {"ETag": f'"{found.etag}"'}
            if found.retry_after is not None:
                headers["Retry-After"] = str(found.retry_after)
            if found.etag in known or "*" in known:
                return answers.not_modified(headers)
            return answers.json_answer(200, await storage.run(found.body, store), headers)

        return await self._of_job(request, answer, "GET")

    async def cancel(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the status body of a job that ended at once, 202 when its worker is asked to stop."""

        async def answer(owner: str, job_id: str) -> func.HttpResponse:
            try:
                job = await storage.run(cancel, job_id, owner, self._store())
            except JobEndedError as error:
                return answers.json_answer(409, {"error": error.message, "status": error.status})
            return answers.json_answer(200 if job.status.terminal else 202, listing.listed(job))

        return await self._of_job(request, answer, "POST")

    async def list(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with `{"jobs": [status bodies without logs and results], "cursor"?}`."""

        async def answer(owner: str) -> func.HttpResponse:
            params = Params(request.params)
            limit = params.whole("limit", listing.DEFAULT_LIMIT, 1, listing.MOST)
            cursor, tool = params.text("cursor", 2_000), params.text("tool")
            status = params.choice("status", [str(known) for known in Status])
            params.check()
            lister = listing.Lister(self._store(), self._sealer)
            body = await storage.run(lister.page, owner, limit=limit, cursor=cursor, tool=tool, status=status)
            return answers.json_answer(200, body)

        return await answers.for_owner(request, self._settings, answer, "GET")

    async def artifact(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the file, 206 with the part that Range names, 416 when there is no such part."""

        async def answer(owner: str, job_id: str) -> func.HttpResponse:
            name = request.route_params.get("name", "")
            asked = ranges.parse(request.headers.get("Range"))
            unless, only_head = request.headers.get("If-Range"), request.method == "HEAD"

            def read() -> ranges.Found | None:
                store = self._store()
                job = store.get(job_id)
                if job is None or job.owner != owner:
                    raise JobNotFoundError

                def get(*part: int) -> StoredFile | None:
                    return artifacts.read(job, name, store, *part)

                return ranges.read(asked, get, only_head=only_head, unless=unless)

            found = await storage.run(read)
            if found is None:
                return answers.error(404, "Artifact not found")
            return ranges.answer(found, name, with_body=not only_head)

        return await self._of_job(request, answer, "GET", "HEAD")

    async def _of_job(
        self,
        request: func.HttpRequest,
        answer: Callable[[str, str], Awaitable[func.HttpResponse]],
        *methods: str,
    ) -> func.HttpResponse:
        async def checked(owner: str) -> func.HttpResponse:
            job_id = request.route_params.get("jobId", "")
            if not keys.is_job_id(job_id):
                raise JobNotFoundError
            return await answer(owner, job_id)

        return await answers.for_owner(request, self._settings, checked, *methods)
