"""Tests of tools and of the engine without a storage account and without a host.

    from shared.jobs.testing import run_headless

    run = run_headless(my_tool, {"number": 4})
    assert run.result == {"result": 8}

`run_headless` takes a tool through what a headless call of it goes through: the input is checked, stored, and
given to a worker; progress and log lines are recorded; the result is checked. Only storage is in memory.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from shared import settings as app_settings
from shared.contract.envelope import Envelope, plan
from shared.errors import DeclarationError
from shared.jobs import answers, keys
from shared.jobs.logs import LogLine
from shared.jobs.memory_store import MemoryJobStore as MemoryJobStore
from shared.jobs.model import ErrorCode, Job, Status
from shared.jobs.payload import Sealer
from shared.jobs.recorder import Recorder
from shared.jobs.submit import submit
from shared.jobs.worker import Worker
from shared.tool.handler import Handler, ToolEntry
from shared.tool.spec import ExecutionMode, Isolation, JsonObject, ToolSpec

_SETTINGS: Final = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessRun:
    """How a run of a tool went."""

    #: `completed` or `failed`.
    status: Status
    #: The structured result, as the job's owner reads it; None when it failed.
    result: Any = None
    #: Content blocks beside it: images, links to artifacts.
    content: tuple[JsonObject, ...] = ()
    #: Why it failed; empty when it did not.
    error: str = ""
    error_code: ErrorCode | None = None
    #: The tool's own log lines, the newest 200: texts alone, and with level, time and number.
    log: tuple[str, ...] = ()
    lines: tuple[LogLine, ...] = ()
    #: After each report of the tool: percent and message as the job's owner may have seen them.
    progress: tuple[tuple[int, str], ...] = ()
    #: Files that the tool has left: name -> content.
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    #: The job's row in the end.
    job: Job = field(repr=False)


def run_headless(
    tool: Callable[..., Any] | ToolEntry | str | Path,
    input: JsonObject | None = None,  # noqa: A002 - the contract's own word
    *,
    timeout_ms: int | None = None,
    auth_token: str | None = None,
    owner: str = "default",
) -> HeadlessRun:
    """Runs a tool as a job, in memory, to its end. Blocks; may be called where an event loop runs.

    `tool`: a function decorated with `@tool`, or the folder of a tool with a `pptb.config.json`.
    `input`: what a caller gives. `timeout_ms`, `auth_token`: as under `__pptb`.

    A tool that fails is a run whose `status` is `failed`. What a call would be refused for is raised:
    `InputError`, `UnsupportedModeError` when the tool cannot run headless, `DeclarationError`. A decorated tool
    with `isolation: "process"` runs in this process, where a debugger finds it.
    """
    work = _run(_entry_of(tool), input or {}, timeout_ms, auth_token, owner)
    # On a thread of its own: this one may have a running event loop. What the test has set is seen there.
    with ThreadPoolExecutor(1, "run-headless") as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, work).result()


async def _run(
    entry: ToolEntry, given: JsonObject, timeout_ms: int | None, auth_token: str | None, owner: str
) -> HeadlessRun:
    asked = Envelope(execution_mode=ExecutionMode.HEADLESS, timeout_ms=timeout_ms, auth_token=auth_token)
    limits = {"max_timeout_ms": _SETTINGS.max_timeout_ms, "inline_timeout_ms": _SETTINGS.inline_timeout_ms}
    how = plan(entry.spec, asked, **limits)
    handler = entry.load()
    arguments = handler.check_input(given)
    handler.check_binding(arguments)
    store, sealer, progress = MemoryJobStore(), Sealer((bytes(32),)), _Progress()
    made = await submit(entry.spec, arguments, how, owner=owner, store=store, sealer=sealer)
    catalogue = {entry.spec.name: entry}
    await Worker(catalogue, store, sealer, _SETTINGS, recorder=progress.recorder).handle(
        store.messages.popleft()
    )
    found = store.with_logs(made.job_id)
    assert found is not None
    job, lines = found
    # Without the worker's own: the first and the last.
    own = tuple(line for line in lines if 1 < line.sequence < job.log_lines)
    result = answers.result_of(job, store) if job.status is Status.COMPLETED else None
    folder = keys.artifact_blob(job.job_id, job.attempt, "")
    return HeadlessRun(
        status=job.status,
        result=None if result is None else result.structured,
        content=() if result is None else tuple(result.content),
        error=job.error,
        error_code=job.error_code,
        log=tuple(line.message for line in own),
        lines=own,
        progress=tuple(progress.seen),
        artifacts={name.removeprefix(folder): store.blobs[name] for name in store.mime_types},
        job=job,
    )


class _Progress:
    """Keeps every report, where storage is told of one a second."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def recorder(self, *args: Any, **kwargs: Any) -> Recorder:
        seen = self.seen

        class Watched(Recorder):
            def progress(self, percent: object, message: object) -> None:
                super().progress(percent, message)
                now = self._snapshot()
                seen.append((now.progress_percent, now.progress_message))

        return Watched(*args, **kwargs)


class _Here:
    """A decorated tool that would have a process of its own, without it."""

    def __init__(self, entry: ToolEntry) -> None:
        self._entry = entry

    @property
    def spec(self) -> ToolSpec:
        spec = self._entry.spec
        return replace(spec, rules=replace(spec.rules, isolation=Isolation.THREAD))

    def load(self) -> Handler:
        return self._entry.load()


def _entry_of(tool: Callable[..., Any] | ToolEntry | str | Path) -> ToolEntry:
    from shared.contract.tool import check_contract
    from shared.tool.decorator import declared

    if isinstance(tool, str | Path):
        checked = check_contract(Path(tool), strict=True)
        if checked.errors:
            raise DeclarationError(f"{tool}: {'; '.join(checked.errors)}")
        if checked.tool is None:
            raise DeclarationError(f"{tool}: its contract exposes no tool to agents")
        return checked.tool
    entry = declared(tool)
    if entry is not None:
        return _Here(entry)
    if hasattr(tool, "spec") and hasattr(tool, "load"):
        return tool
    raise DeclarationError(
        f"run_headless: expected a function decorated with @tool or a contract's folder, not {tool!r}"[:300]
    )
