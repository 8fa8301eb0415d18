"""Windows over HTTP: a person opens one, its page asks, and gives the result.

    POST /mcp/windows/{jobId}/session        {"ticket"}, or {} with the owner's token -> a session
    GET  /mcp/windows/{jobId}/page/{*path}   the files of the tool's page; the first part is the page's key
    POST /mcp/windows/{jobId}/call           {"api", "method", "args"?, "target"?} -> {"value"}
    POST /mcp/windows/{jobId}/return         {"data"}; 422: it does not fit, and may be corrected
    POST /mcp/windows/{jobId}/close          {}: no result

The last three take the header X-MCP-Window-Session and nothing else. A ticket is used up by the POST only: a
GET of the launch link, by whoever previews links, opens nothing. 401 is byte for byte the same for every job.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import azure.functions as func

from shared import auth, large_json, storage
from shared.apis.connections.environments import Environments
from shared.apis.launch import SOURCE
from shared.contract.tool import ContractTool
from shared.errors import (
    CallError,
    ConnectionsError,
    InputError,
    JobEndedError,
    JobError,
    JobNotFoundError,
    PayloadError,
    SettingsError,
    ToolError,
    WindowSessionError,
    WindowTicketError,
)
from shared.jobs import keys
from shared.jobs.model import Job
from shared.jobs.payload import Sealer
from shared.jobs.rows import stamp
from shared.jobs.store import JobStore
from shared.jobs.window import hash_of, is_secret, page_key
from shared.jobs.windowing import Inside, WindowStore
from shared.settings import Settings
from shared.tool.binding import ENVELOPE_KEY
from shared.tool.handler import Catalogue
from shared.tool.result import ToolResult
from shared.tool.spec import JsonObject, Mode
from shared.web import answers, window_body, window_calls, window_page
from shared.web.window_calls import NotAllowedError, WindowCalls
from shared.web.window_rate import RateError, Rates

_LOG = logging.getLogger(__name__)

SESSION_HEADER: Final = "X-MCP-Window-Session"
#: Bytes of a request.
MOST_TICKET: Final = 4 * 1024
MOST_CALL: Final = 1024 * 1024
MOST_RETURN: Final = 16 * 1024 * 1024
#: Up to here a body is read at once: it takes a few ms.
SMALL_BODY: Final = 4 * 1024


class WindowsApi:
    """The HTTP functions about windows."""

    def __init__(
        self,
        settings: Settings,
        sealer: Sealer,
        store: Callable[[], JobStore],
        catalogue: Catalogue,
        environments: Environments,
    ) -> None:
        self._settings = settings
        self._sealer = sealer
        self._store = store
        self._catalogue = catalogue
        self._environments = environments
        self._calls = WindowCalls(environments)
        self._rates = Rates()

    async def session(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the session, the page's address and what its tool is told; 401, 404, 409."""

        async def answer(job_id: str) -> func.HttpResponse:
            owner: str | func.HttpResponse | None = None
            if request.headers.get(auth.TOKEN_HEADER) is not None:
                # A token that is sent must be right, whatever else comes with it.
                owner = answers.refusal(request, self._settings)
                if isinstance(owner, func.HttpResponse):
                    return owner
            body = window_body.read(request, ("ticket",), MOST_TICKET)
            if "ticket" in body:
                ticket = body["ticket"]
                if not is_secret(ticket):
                    raise WindowTicketError
                with self._rates.asking(_rate_key(job_id, "ticket", ticket)):
                    inside, session = await storage.run(self._windows.open_with_ticket, job_id, ticket)
            else:
                owner = answers.refusal(request, self._settings) if owner is None else owner
                if isinstance(owner, func.HttpResponse):
                    return owner
                inside, session = await storage.run(self._windows.open_for_owner, job_id, owner)
            return answers.json_answer(200, await self._told(inside, session))

        return await self._answered(request, answer, "POST")

    async def page(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the file; 401 without the page's key, 404 without a file, 409 when the job has ended."""

        async def answer(job_id: str) -> func.HttpResponse:
            key, _, name = request.route_params.get("path", "").partition("/")
            with self._rates.asking(_rate_key(job_id, "page", key)):
                job = await storage.run(self._windows.page_job, job_id, key)
            folder = self._tool(job).page
            root = f"/mcp/windows/{job_id}/page/{key}/"
            found = None if folder is None else await storage.run(window_page.page_file, folder, root, name)
            if found is None:
                return answers.error(404, "The tool's page has no such file")
            headers = {**found.headers, "Content-Type": found.content_type}
            if request.method == "HEAD":
                headers["Content-Length"] = str(len(found.body))
                return func.HttpResponse(b"", status_code=200, headers=headers)
            return func.HttpResponse(found.body, status_code=200, headers=headers)

        return window_page.sandboxed(await self._answered(request, answer, "GET", "HEAD"))

    async def call(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with `{"value"}`; 403: the page may not call it; 422: it was carried out and has failed."""

        async def answer(job_id: str) -> func.HttpResponse:
            session = _session(request)
            with self._rates.running(_rate_key(job_id, "session", session)):
                inside = await storage.run(self._windows.inside, job_id, session)
                asked = window_calls.parse(await _body(request, window_calls.FIELDS, MOST_CALL))
                spec = self._tool(inside.job).spec
                value = await self._calls.run(asked, spec, inside)
            return func.HttpResponse(
                value, status_code=200, mimetype="application/json", headers=answers.SECURITY_HEADERS
            )

        return await self._answered(request, answer, "POST")

    async def give(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the job's status; 422 with the faults of data that do not fit. Null closes the window."""

        async def answer(job_id: str) -> func.HttpResponse:
            session = _session(request)
            with self._rates.asking(_rate_key(job_id, "session", session)):
                await storage.run(self._windows.inside, job_id, session)
                body = await _body(request, ("data",), MOST_RETURN)
                if "data" not in body:
                    raise InputError("data: is missing; null closes the window without a result")
                data = body["data"]
                if data is None:
                    return _ended(await storage.run(self._windows.close, job_id, session))

                def checked(inside: Inside) -> ToolResult:
                    return self._tool(inside.job).check_returned(data)

                return _ended(await storage.run(self._windows.give, job_id, session, checked))

        return await self._answered(request, answer, "POST")

    async def close(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 with the job's status: completed, with the result `no_result`."""

        async def answer(job_id: str) -> func.HttpResponse:
            session = _session(request)
            window_body.read(request, (), MOST_TICKET)
            with self._rates.asking(_rate_key(job_id, "session", session)):
                return _ended(await storage.run(self._windows.close, job_id, session))

        return await self._answered(request, answer, "POST")

    @property
    def _windows(self) -> WindowStore:
        return WindowStore(self._store(), self._sealer)

    def _tool(self, job: Job) -> ContractTool:
        """Raises `JobNotFoundError` when the app has no such tool, or no page of it, any more."""
        entry = self._catalogue.get(job.tool_name)
        if not isinstance(entry, ContractTool) or entry.page is None:
            raise JobNotFoundError
        return entry

    async def _told(self, inside: Inside, session: str) -> JsonObject:
        job, spec = inside.job, self._tool(inside.job).spec
        try:
            connections = await storage.run(
                self._environments.of_ids, inside.given.connections, job.owner, job.tool_name
            )
        except ConnectionsError:
            connections = ()  # its calls will say what is wrong
        key = page_key(hash_of("session", session))
        return {
            "session": session,
            "jobId": job.job_id,
            "toolName": job.tool_name,
            "page": f"/mcp/windows/{job.job_id}/page/{key}/{window_page.INDEX}",
            "expectsResponse": job.mode is Mode.TWO_WAY,
            "deadline": stamp(job.window_until),
            "context": launch_context(inside),
            "tool": {"toolId": job.tool_id, "toolName": job.tool_name, "title": spec.title},
            "connections": [{"id": one.id, "name": one.name, "url": one.url} for one in connections],
        }

    async def _answered(
        self, request: func.HttpRequest, answer: Callable[[str], Awaitable[func.HttpResponse]], *methods: str
    ) -> func.HttpResponse:
        refused = answers.method_refusal(request, *methods) or answers.foreign_refusal(request)
        if refused is not None:
            return refused
        try:
            return await answer(_job_id(request))
        except Exception as error:
            return _refused(error, request)


def launch_context(inside: Inside) -> JsonObject:
    """What `getLaunchContext()` gives in a window. `timeoutMs` only where the caller has named one, as in the
    original."""
    job = inside.job
    how: JsonObject = {
        "source": SOURCE,
        "mode": str(job.mode),
        "correlationId": job.correlation_id,
        "expectsResponse": job.mode is Mode.TWO_WAY,
    }
    if job.window is not None and job.window.timeout_asked:
        how["timeoutMs"] = job.timeout_ms
    return {**inside.given.arguments, ENVELOPE_KEY: how}


async def _body(request: func.HttpRequest, fields: tuple[str, ...], most: int) -> JsonObject:
    """What a window's request carries, for who has shown a session of the job: JSON of nothing but brackets
    takes seconds to read, and many times its own size in memory.
    """
    if len(request.get_body()) <= SMALL_BODY:
        return window_body.read(request, fields, most)
    return await large_json.run(window_body.read, request, fields, most)


def _session(request: func.HttpRequest) -> str:
    session: str = request.headers.get(SESSION_HEADER, "")
    if not is_secret(session):
        raise WindowSessionError
    return session


def _rate_key(job_id: str, kind: str, secret: str) -> str:
    """With the job: a session that is shown to another job is a stranger there, and stays what it is here."""
    return f"{job_id}.{hash_of(kind, secret)}"


def _job_id(request: func.HttpRequest) -> str:
    """The id as it came: what cannot be one is refused where any unknown one is."""
    job_id = request.route_params.get("jobId", "")
    return str(job_id) if keys.is_job_id(job_id) else ""


def _ended(job: Job) -> func.HttpResponse:
    is_closed = job.window is not None and job.window.closed
    return answers.json_answer(
        200, {"jobId": job.job_id, "status": str(job.status), "window": "closed" if is_closed else "done"}
    )


#: What an error is answered with; the first that fits counts.
_STATUS: Final[tuple[tuple[type[Exception], int, dict[str, str]], ...]] = (
    (WindowSessionError, 401, {}),
    (WindowTicketError, 401, {}),
    (JobNotFoundError, 404, {}),
    (PayloadError, 410, {}),
    (JobError, 503, {"Retry-After": "1"}),
    (RateError, 429, {"Retry-After": "1"}),
    (window_body.TooLargeError, 413, {}),
    (window_body.NotJsonError, 415, {"Accept": window_body.JSON_TYPE}),
    (NotAllowedError, 403, {}),
    (ConnectionsError, 422, {}),
    (CallError, 400, {}),
    (ToolError, 422, {}),
    (SettingsError, 503, {}),
)


def _refused(error: Exception, request: func.HttpRequest) -> func.HttpResponse:
    if isinstance(error, JobEndedError):
        return answers.json_answer(409, {"error": error.message, "status": error.status})
    for kind, status, headers in _STATUS:
        if isinstance(error, kind):
            return answers.error(status, str(error), headers)
    _LOG.error("%s of a window could not be answered", request.method, exc_info=error)
    return answers.error(503, "The job store cannot be reached; try again.", {"Retry-After": "5"})
