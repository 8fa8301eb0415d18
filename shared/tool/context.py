"""What a running tool is told, and how it reports back.

A decorated tool takes it as a parameter annotated `Context`; `invokeHeadless(input, context)` takes it as its
second argument. The attributes exist under snake_case names and under the contract's camelCase names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, runtime_checkable

from shared.errors import ArtifactError
from shared.tool.call import ToolCall
from shared.tool.spec import ExecutionMode, JsonObject, Mode

if TYPE_CHECKING:
    from shared.tool.content import McpResourceLinkContent

_LOG = logging.getLogger(__name__)

#: Key of the function in an invocation's state that hears of its progress.
PROGRESS_WATCHER: Final = "progress watcher"
#: Key of the data that a tool gave by `returnData`.
RETURNED: Final = "returned"


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


class Artifacts(Protocol):
    """Where a running tool puts files for its caller."""

    def write(
        self, name: str, data: bytes | str | BinaryIO | Iterable[bytes], mime_type: str | None = None
    ) -> McpResourceLinkContent:
        """Stores a file under the job, or the inline call, and gives the link that a result may hold. Blocks.

        `name`: 1 to 128 of `A-Z a-z 0-9 _ . -`, no dot at its beginning; the same name again replaces the file.
        `data`: text is stored as UTF-8; a binary file or an iterable of bytes is read to its end.
        `mime_type`: guessed from the name when left out. Raises `ArtifactError`, and `JobCancelledError` when
        the job is no longer wanted.
        """


class Checkpoint(Protocol):
    """What a job keeps for its next attempt, should its worker be lost: where to go on, and what is done.

    Only a tool that may run again (`idempotent`, `readOnly`, or more than one attempt) has a use for it.
    """

    @property
    def value(self) -> JsonObject | None:
        """What an earlier attempt of this job has saved last; None when nothing was."""

    def parts(self) -> Iterator[bytes]:
        """The parts that were saved up to that value, in their order. Each is read when asked for. Blocks.

        Raises `ToolError` when one cannot be read: `clear`, and begin anew.
        """

    def save(self, value: JsonObject, part: bytes = b"") -> None:
        """Keeps `value` in the place of the one before, and `part` behind the parts before; both or neither.

        Kept with the job's next write, a second later at most; what is behind is done again after a kill.
        `value`: JSON of at most 48 KiB. `part`: at most 32 MiB; storing one blocks. Both are stored sealed and
        removed when the job ends. Raises `ToolError`, and `JobCancelledError` when the job is no longer wanted.
        """

    def clear(self) -> None:
        """Forgets everything: the next attempt begins anew, as this one now does."""


class NoCheckpoint:
    """For calls that have one attempt and no job."""

    value: JsonObject | None = None

    def parts(self) -> Iterator[bytes]:
        return iter(())

    def save(self, value: JsonObject, part: bytes = b"") -> None:
        return None

    def clear(self) -> None:
        return None


class NoArtifacts:
    """For code that runs outside of a call and of a job: there is nothing to keep a file under."""

    def write(
        self, name: str, data: bytes | str | BinaryIO | Iterable[bytes], mime_type: str | None = None
    ) -> McpResourceLinkContent:
        raise ArtifactError("Artifacts are kept with a call or a job, and this code runs in neither.")


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


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """A saved connection as a tool may know it."""

    id: str
    name: str
    url: str
    #: The connection itself, for the APIs.
    origin: object = field(default=None, repr=False, compare=False)

    @property
    def words(self) -> tuple[str, ...]:
        """What tells which one it is, to be taken out of what others may read."""
        return self.name, self.id, self.url


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
    #: Whether the caller has named that time: nothing that is only configured shortens it then.
    timeout_asked: bool = False
    owner: str
    #: The call's arguments, as they came.
    arguments: JsonObject = field(default_factory=dict, repr=False)
    auth_token: str | None = field(default=None, repr=False)
    #: The saved connections that the call names, by slot: primary, secondary, …
    connections: tuple[ConnectionInfo, ...] = ()
    #: How many tools' calls this one is within: 0 for a client's own.
    depth: int = 0
    #: The project that the call was made in: the one it names, else its owner's own; None where there is none.
    project: str | None = None
    #: When the attempt ends, on the clock of `time.monotonic()`.
    deadline: float | None = None
    #: Facts of the MCP call; for a job, of the call that made it.
    call: ToolCall = field(default_factory=ToolCall)
    sink: Sink = field(default_factory=NullSink, repr=False)
    #: What the APIs keep for this invocation, and nobody else looks at.
    state: dict[str, Any] = field(default_factory=dict, repr=False)
    #: `context.artifacts.write(name, data, mime_type)`; in asynchronous code by `asyncio.to_thread`.
    artifacts: Artifacts = field(default_factory=NoArtifacts, repr=False)
    #: `context.checkpoint.save(value, part)`; in asynchronous code by `asyncio.to_thread`.
    checkpoint: Checkpoint = field(default_factory=NoCheckpoint, repr=False)

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
        watcher = self.state.get(PROGRESS_WATCHER)
        if watcher is not None:
            watcher(percent, message)

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
    def connectionId(self) -> str | None:  # noqa: N802
        return self.connections[0].id if self.connections else None

    @property
    def connectionName(self) -> str | None:  # noqa: N802
        return self.connections[0].name if self.connections else None

    @property
    def connectionUrl(self) -> str | None:  # noqa: N802
        return self.connections[0].url if self.connections else None

    @property
    def connectionIds(self) -> list[str]:  # noqa: N802
        return [connection.id for connection in self.connections]

    @property
    def connectionNames(self) -> list[str]:  # noqa: N802
        return [connection.name for connection in self.connections]

    @property
    def connectionUrls(self) -> list[str]:  # noqa: N802
        return [connection.url for connection in self.connections]

    @property
    def authToken(self) -> str | None:  # noqa: N802
        return self.auth_token

    def updateProgress(self, percent: Any = None, message: Any = None) -> None:  # noqa: N802
        self.update_progress(percent, message)


#: The invocation that runs here: seen by everything that a tool's code calls, awaits or starts with
#: `asyncio.to_thread`. Made when asked for, since most tools never ask.
_running: ContextVar[Callable[[], Context] | None] = ContextVar("toolbox_invocation", default=None)


def running(make: Callable[[], Context]) -> None:
    """From here on, in this task or this thread's context, `running_context` gives what `make` makes."""
    _running.set(make)


def at_end(context: Context, clean_up: Callable[[], object]) -> None:
    """Calls `clean_up` when the invocation has ended, however it did."""
    context.state.setdefault("at end", []).append(clean_up)


def end(context: Context) -> None:
    """Called by whoever ran the invocation. Never raises: what cannot be cleaned up is left."""
    for clean_up in reversed(context.state.pop("at end", [])):
        try:
            clean_up()
        except Exception:
            _LOG.warning("an invocation left something behind", exc_info=True)


def running_context() -> Context | None:
    """The context of the invocation that the calling code belongs to; None outside of one."""
    make = _running.get()
    return None if make is None else make()
