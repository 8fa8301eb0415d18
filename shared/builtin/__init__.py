"""What every app offers besides its own tools: a resource that documents them, a prompt about jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shared.builtin.job_polling import job_polling
from shared.builtin.tool_docs import tool_docs
from shared.tool.spec import ToolSpec


def built_in(tools: Callable[[], Iterable[ToolSpec]]) -> list[Callable[..., Any]]:
    """The decorated functions. `tools` is asked at each read, since the tools are found later than this."""
    return [*tool_docs(tools), job_polling(tools)]
