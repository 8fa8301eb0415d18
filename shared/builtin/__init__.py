"""What every app offers besides its own tools: tools for its jobs, documentation, files of jobs, a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shared.builtin.artifact_files import artifact_files
from shared.builtin.job_polling import job_polling
from shared.builtin.job_tools import job_tools
from shared.builtin.tool_docs import tool_docs
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore
from shared.tool.spec import ToolSpec


def built_in(
    tools: Callable[[], Iterable[ToolSpec]], store: Callable[[], JobStore], sealer: Sealer
) -> list[Callable[..., Any]]:
    """The decorated functions. `tools` is asked at each read, since the tools are found later than this."""
    return [*job_tools(store, sealer), *tool_docs(tools), artifact_files(store), job_polling(tools)]
