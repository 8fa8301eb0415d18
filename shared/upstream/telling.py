"""What is told of a running call: its progress and log to the job, its start and end to the invocation log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from shared import telemetry
from shared.errors import JobCancelledError
from shared.invocations.log import LINES
from shared.tool.context import Context
from shared.tool.json_form import dumps
from shared.tool.spec import JsonObject
from shared.upstream.lock import LockedTool


def progress_to(context: Context) -> Callable[[float, float | None, str | None], None]:
    """Passes a server's progress on: a part of a total as percent, anything else as text only."""

    def report(progress: float, total: float | None, message: str | None) -> None:
        percent = None if not total or total <= 0 else progress / total * 100
        if percent is None and message is None:
            message = f"{progress:g}"
        # A cancelled attempt is ended by its worker; what the server still says is nobody's business.
        with contextlib.suppress(JobCancelledError):
            context.update_progress(percent, message)

    return report


def log_to(context: Context) -> Callable[[str, str], None]:
    return context.sink.log


class Span:
    """The time that a call spends with its server, as two lines of the invocation log.

    Both, and the record of the call itself, have the same correlation id.
    """

    def __init__(self, tool: LockedTool, context: Context, transport: str) -> None:
        self._tool = tool
        self._context = context
        self._started = time.monotonic()
        self._trace = telemetry.upstream(tool.server, tool.tool, transport)
        self.outcome = "failed"

    def __enter__(self) -> Self:
        self._tell("start")
        self._trace.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        telemetry.upstream_answered(self._trace, error, success=self.outcome == "completed")
        self._trace.__exit__(kind, error, trace)
        duration = round((time.monotonic() - self._started) * 1000)
        self._tell("end", outcome=self.outcome, durationMs=duration)

    def _tell(self, event: str, **more: object) -> None:
        """The line is written when the loop gets to it: neither the request nor its answer waits for that."""
        if LINES.isEnabledFor(logging.INFO):
            line: JsonObject = {
                "event": f"upstream.{event}",
                "correlationId": self._context.correlation_id,
                "server": self._tool.server,
                "tool": self._tool.tool,
                **more,
            }
            asyncio.get_running_loop().call_soon(_write, line)


def _write(line: JsonObject) -> None:
    LINES.info("%s", dumps(line))
