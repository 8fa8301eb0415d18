"""What every app offers besides its own tools: tools for its jobs, documentation, files of jobs, a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shared.builtin.artifact_files import artifact_files
from shared.builtin.job_polling import job_polling
from shared.builtin.job_tools import job_tools
from shared.builtin.server_tools import server_tools
from shared.builtin.tool_docs import tool_docs
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.tool.handler import ToolEntry
from shared.tool.spec import ToolSpec
from shared.upstream.status import Servers


def built_in(
    tools: Callable[[], Iterable[ToolEntry]],
    store: Callable[[], JobStore],
    sealer: Sealer,
    servers: Callable[[], Servers],
) -> list[Callable[..., Any]]:
    """The decorated functions. All but `sealer` is asked at each call: it is known later than this."""

    def specs() -> Iterable[ToolSpec]:
        return [entry.spec for entry in tools()]

    return [
        *job_tools(store, sealer),
        *server_tools(servers, tools),
        *tool_docs(specs),
        artifact_files(store),
        job_polling(specs),
    ]
