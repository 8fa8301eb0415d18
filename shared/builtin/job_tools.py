"""The tools `job_status`, `job_cancel` and `job_list`: jobs for agents, which have no HTTP client at hand.

They see the caller's own jobs and say what `shared.web.jobs` says over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from shared import storage
from shared.errors import JobNotFoundError
from shared.jobs import cancel, keys, listing, view
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.jobs.timings import Ending
from shared.tool import Context, ToolAnnotations, tool
from shared.tool.binding import window_schema
from shared.tool.spec import JsonObject

_JOB: Final[JsonObject] = {
    "jobId": {"type": "string"},
    "toolId": {"type": "string"},
    "toolName": {"type": "string"},
    "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "failed"]},
    "mode": {"type": "string"},
    "executionMode": {"type": "string"},
    "correlationId": {"type": "string"},
    "attempt": {"type": "integer"},
    "createdAt": {"type": "string", "format": "date-time"},
    "startedAt": {"type": "string", "format": "date-time"},
    "completedAt": {"type": "string", "format": "date-time"},
    "timeoutMs": {"type": "integer"},
    "progress": {
        "type": "object",
        "properties": {"percent": {"type": "integer"}, "message": {"type": "string"}},
    },
    "cancelRequested": {"type": "boolean"},
    "error": {"type": "string"},
    "errorCode": {"type": "string"},
    "statusUrl": {"type": "string"},
    "window": window_schema(),
}
_LINE: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "seq": {"type": "integer"},
        "timestamp": {"type": "string", "format": "date-time"},
        "level": {"type": "string"},
        "message": {"type": "string"},
    },
}
_ATTEMPT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "attempt": {"type": "integer"},
        "startedAt": {"type": "string", "format": "date-time"},
        "endedAt": {"type": "string", "format": "date-time"},
        "outcome": {"type": "string", "enum": [str(ending) for ending in Ending]},
    },
}
_SHORT: Final[JsonObject] = {"type": "object", "properties": _JOB, "required": ["jobId", "status"]}
_WHOLE: Final[JsonObject] = {
    "type": "object",
    "properties": {
        **_JOB,
        "owner": {"type": "string"},
        "inputSummary": {"type": "string", "description": "Of the arguments: redacted and cut."},
        "attempts": {"type": "array", "items": _ATTEMPT, "description": "The newest 10, oldest first."},
        "result": {"description": "What the tool returned; only of a completed job."},
        "content": {"type": "array", "description": "Content blocks of the result, where there are any."},
        "logs": {"type": "array", "items": _LINE},
        "logsDropped": {"type": "integer"},
    },
    "required": ["jobId", "status", "logs", "statusUrl"],
}
_LIST: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "jobs": {"type": "array", "items": _SHORT},
        "cursor": {"type": "string", "description": "Of the next page; absent on the last one."},
    },
    "required": ["jobs"],
}

type JobId = Annotated[str, Field(description="The jobId of the call's answer.")]


def job_tools(store: Callable[[], JobStore], sealer: Sealer) -> list[Callable[..., Any]]:
    """The three tools. `store`: made at the first call."""

    @tool(
        title="Read a job",
        result_schema=_WHOLE,
        annotations=ToolAnnotations(read_only=True, open_world=False),
    )
    async def job_status(
        context: Context,
        jobId: JobId,  # noqa: N803 - the contract's own spelling
        waitMs: Annotated[  # noqa: N803
            int,
            Field(ge=0, le=25_000, description="Wait up to so many milliseconds for the job to change or end."),
        ] = 0,
        logsAfter: Annotated[  # noqa: N803
            int, Field(ge=0, description="Only log lines behind the one with this seq.")
        ] = 0,
    ) -> dict[str, Any]:
        """Reads a job of yours: its status, progress, log, and once it has ended its result or error.

        While status is pending or in_progress, call it again; waitMs lets the call itself wait.
        """
        found = await view.watch(
            _known(jobId), context.owner, store(), wait=waitMs / 1000, logs_after=logsAfter
        )
        return await storage.run(found.body, store())

    @tool(
        title="Cancel a job",
        result_schema=_SHORT,
        annotations=ToolAnnotations(destructive=True, idempotent=True, open_world=False),
    )
    async def job_cancel(
        context: Context,
        jobId: JobId,  # noqa: N803
    ) -> dict[str, Any]:
        """Cancels a job of yours. One that waits ends at once; one that runs is asked to stop.

        A job that has ended already is an error that says how it has ended.
        """
        return listing.listed(await storage.run(cancel.cancel, _known(jobId), context.owner, store()))

    @tool(
        title="List jobs",
        result_schema=_LIST,
        annotations=ToolAnnotations(read_only=True, open_world=False),
    )
    async def job_list(
        context: Context,
        limit: Annotated[int, Field(ge=1, le=listing.MOST, description="The most jobs of one page.")] = 20,
        cursor: Annotated[str | None, Field(description="The cursor of the page before.")] = None,
        tool: Annotated[str | None, Field(description="Only jobs of this tool.")] = None,
        status: Annotated[
            Literal["pending", "in_progress", "completed", "failed"] | None,
            Field(description="Only jobs in this state."),
        ] = None,
    ) -> dict[str, Any]:
        """Lists your jobs, newest first. A page may be short and still have a cursor for the next one."""
        lister = listing.Lister(store(), sealer)
        return await storage.run(
            lister.page, context.owner, limit=limit, cursor=cursor, tool=tool, status=status
        )

    return [job_status, job_cancel, job_list]


def _known(job_id: str) -> str:
    """The id, if it can be one. Raises `JobNotFoundError` before storage is asked."""
    if not keys.is_job_id(job_id):
        raise JobNotFoundError
    return job_id
