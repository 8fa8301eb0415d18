"""`artifact://{jobId}/{name}`: what jobs have left, as MCP resources, for the owner of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared import storage
from shared.errors import JobNotFoundError, ToolError
from shared.jobs import artifacts, keys
from shared.jobs.store import JobStore
from shared.tool import McpResourceContent, resource
from shared.tool.call import caller


def artifact_files(store: Callable[[], JobStore]) -> Callable[..., Any]:
    """The resource template."""

    @resource(uri="artifact://{jobId}/{name}", title="A job's file")
    async def artifact(jobId: str, name: str) -> McpResourceContent:  # noqa: N803 - the contract's spelling
        """A file that a job of yours has left. Links to such files stand in the job's result."""
        owner = caller.get()  # here: threads of storage know nothing of whose request they serve

        def read() -> McpResourceContent:
            job = store().get(jobId) if keys.is_job_id(jobId) else None
            if job is None or job.owner != owner:
                raise JobNotFoundError
            found = artifacts.read(job, name, store())
            if found is None:
                raise ToolError("Artifact not found")
            uri, kind = artifacts.artifact_uri(jobId, name), found.mime_type
            if kind.startswith("text/"):
                try:
                    return McpResourceContent(uri=uri, mime_type=kind, text=found.data.decode())
                except UnicodeDecodeError:
                    pass
            return McpResourceContent(uri=uri, mime_type=kind, blob=found.data)

        return await storage.run(read)

    return artifact
