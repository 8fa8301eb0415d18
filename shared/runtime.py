"""The app's parts, put together once per process. `function_app.py` hangs its triggers on them.

Nothing here touches storage or loads an SDK: that happens at the first call that needs it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import azure.functions as func

from shared import settings as app_settings
from shared.builtin import built_in
from shared.contract.tool import find_contracts
from shared.invoke import Invoker
from shared.jobs.payload import Sealer
from shared.jobs.store import JobStore, TableJobStore
from shared.jobs.worker import Worker
from shared.storage import Storage
from shared.tool import serving
from shared.tool.discovery import find_tools
from shared.tool.handler import ToolEntry
from shared.tool.prompts import DecoratedPrompt
from shared.tool.resources import DecoratedResource
from shared.web.jobs import JobsApi

_LOG = logging.getLogger(__name__)


class Runtime:
    """Everything that the triggers call. Raises `SettingsError` at once when a setting is illegal."""

    def __init__(self, tools_folder: Path) -> None:
        self.settings = app_settings.current()
        self._sealer = Sealer(self.settings.seal_keys)
        contracts = find_contracts(tools_folder, max_timeout_ms=self.settings.max_timeout_ms)
        for warning in contracts.warnings:
            _LOG.warning("tools/%s: %s", warning.folder, warning.reason)
        self.found = find_tools(
            tools_folder,
            built_in(lambda: (entry.spec for entry in self.tools)),
            contracts.entries,
            contracts.faults,
        )
        self._invoker = Invoker(self.settings, self._sealer, self.store)
        self.jobs_api = JobsApi(self.settings, self.store)

    @property
    def tools(self) -> list[ToolEntry]:
        return list(self.found.tools.values())

    @property
    def resources(self) -> list[DecoratedResource]:
        return list(self.found.resources.values())

    @property
    def prompts(self) -> list[DecoratedPrompt]:
        return list(self.found.prompts.values())

    def trigger(self, entry: ToolEntry) -> Callable[[str, func.Context], Awaitable[str]]:
        return self._invoker.trigger(entry)

    def resource_trigger(self, entry: DecoratedResource) -> Callable[[str], Awaitable[str]]:
        return serving.resource_trigger(entry, self.settings)

    def prompt_trigger(
        self, entry: DecoratedPrompt
    ) -> Callable[[func.PromptInvocationContext], Awaitable[str]]:
        return serving.prompt_trigger(entry, self.settings)

    @functools.cached_property
    def worker(self) -> Worker:
        return Worker(self.found.tools, self.store(), self._sealer, self.settings)

    @functools.cache  # noqa: B019 - lives as long as the process
    def store(self) -> JobStore:
        """Raises `SettingsError` when no storage is set."""
        return TableJobStore(Storage(self.settings.storage))
