"""What a running tool is told, and how it reports back.

A decorated tool takes it as a parameter annotated `Context`; `invokeHeadless(input, context)` takes it as its
second argument. The attributes exist under snake_case names and under the contract's camelCase names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from shared.tool.call import ToolCall
from shared.tool.spec import ExecutionMode, Mode


@runtime_checkable
class Sink(Protocol):
    """Where a running tool's progress and log lines go. Called from any thread; must not block on storage."""

    @property
    def cancelled(self) -> bool: ...

    def progress(self, percent: object, message: object) -> None:
        """May raise `JobCancelledError`; never fails for an odd value."""

    def log(self, level: str, message: object) -> None: ...


class NullSink:
    """For calls that nobody watches."""

    cancelled = False

    def progress(self, percent: object, message: object) -> None:
        return None

    def log(self, level: str, message: object) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ToolLogger:
    """Lines for whoever reads the job: stored with it, redacted and bounded."""

    _sink: Sink

    def debug(self, message: object) -> None:
        self._sink.log("debug", message)

    def info(self, message: object) -> None:
        self._sink.log("info", message)

    def warn(self, message: object) -> None:
        self._sink.log("warn", message)

    def error(self, message: object) -> None:
        self._sink.log("error", message)

    warning = warn


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One invocation as its tool sees it.

    `tool_name` is the name that agents call (the slug); `tool_id` names the tool inside the app.
    """

    tool_id: str
    tool_name: str
    invocation_mode: Mode
    execution_mode: ExecutionMode
    #: The same in the launch context, the invocation log, the job row and the acceptance.
    correlation_id: str
    #: None for an inline call, which has no stored job.
    job_id: str | None = None
    #: 1 for the first run of a job, 2 after a lost worker, …
    attempt: int = 1
    timeout_ms: int
    owner: str
    auth_token: str | None = field(default=None, repr=False)
    #: Facts of the MCP call; for a job, of the call that made it.
    call: ToolCall = field(default_factory=ToolCall)
    sink: Sink = field(default_factory=NullSink, repr=False)

    @property
    def logger(self) -> ToolLogger:
        return ToolLogger(self.sink)

    @property
    def cancelled(self) -> bool:
        """True once the result is no longer wanted; the next `update_progress` raises."""
        return self.sink.cancelled

    def update_progress(self, percent: float | None = None, message: str | None = None) -> None:
        """Says how far the work is: 0 to 100, never going back, and what is being done.

        Out-of-range and odd values are clamped or ignored. Raises `JobCancelledError` when the job was
        cancelled, which a tool lets pass.
        """
        self.sink.progress(percent, message)

    # The contract's own spelling.

    @property
    def toolId(self) -> str:  # noqa: N802
        return self.tool_id

    @property
    def toolName(self) -> str:  # noqa: N802
        return self.tool_name

    @property
    def invocationMode(self) -> str:  # noqa: N802
        return self.invocation_mode

    @property
    def executionMode(self) -> str:  # noqa: N802
        return self.execution_mode

    @property
    def correlationId(self) -> str:  # noqa: N802
        return self.correlation_id

    @property
    def jobId(self) -> str | None:  # noqa: N802
        return self.job_id

    @property
    def timeoutMs(self) -> int:  # noqa: N802
        return self.timeout_ms

    @property
    def authToken(self) -> str | None:  # noqa: N802
        return self.auth_token

    def updateProgress(self, percent: Any = None, message: Any = None) -> None:  # noqa: N802
        self.update_progress(percent, message)
