"""The app's parts, put together once per process. `function_app.py` hangs its triggers on them.

Nothing here touches storage or loads an SDK: that happens at the first call that needs it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import azure.functions as func
from shared.upstream.policy import Policy
from shared.upstream.settings import upstream_settings

from shared import settings as app_settings
from shared import storage
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.apis.toolbox.invocation import use_launcher
from shared.apis.toolbox.settings import use_store
from shared.apis.toolbox.settings_table import TableSettingsStore
from shared.builtin import built_in
from shared.contract.tool import find_contracts
from shared.invocations.log import InvocationLog
from shared.invocations.store import TableInvocationStore
from shared.invoke import Invoker
from shared.jobs.isolation.recipe import ToolHomes
from shared.jobs.model import utc_now
from shared.jobs.payload import Sealer
from shared.jobs.reaper import Reaper
from shared.jobs.store import JobStore
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.launching import ToolLauncher
from shared.tool import serving
from shared.tool.discovery import find_tools
from shared.tool.handler import ToolEntry
from shared.tool.prompts import DecoratedPrompt
from shared.tool.resources import DecoratedResource
from shared.upstream import publish
from shared.upstream.gateway import Gateway
from shared.upstream.lock import LOCK_FILE
from shared.upstream.status import Servers
from shared.web.jobs import JobsApi
from shared.web.servers import ServersApi

_LOG = logging.getLogger(__name__)


class Runtime:
    """Everything that the triggers call. Raises `SettingsError` at once when a setting is illegal."""

    def __init__(self, tools_folder: Path) -> None:
        self.settings = app_settings.current()
        self._sealer = Sealer(self.settings.seal_keys)
        contracts = find_contracts(tools_folder, max_timeout_ms=self.settings.max_timeout_ms)
        for warning in contracts.warnings:
            _LOG.warning("tools/%s: %s", warning.folder, warning.reason)
        upstream = upstream_settings(root=tools_folder.parent)
        policy = Policy.parse(upstream.policy)
        self.gateway = Gateway(upstream, policy)
        published = publish.published(tools_folder.parent / LOCK_FILE, policy, self.gateway)
        self._servers = Servers(self.gateway, published.lock)
        self.found = find_tools(
            tools_folder,
            built_in(lambda: self.tools, self.store, self._sealer, lambda: self._servers),
            [*contracts.entries, *published.tools],
            [*contracts.faults, *published.faults],
            published.prompts,
        )
        self._homes = ToolHomes(tools_folder, self.found.homes)
        self._log = InvocationLog(lambda: TableInvocationStore(self._storage()))
        self._environments = Environments(
            ConnectionBook(self.settings.connections, self._storage() if self.settings.storage else None)
        )
        use_resolver(self._environments.resolve)
        use_store(lambda: TableSettingsStore(self._storage()))
        self._invoker = Invoker(
            self.settings, self._sealer, self.store, self._log, self._environments, upstream.project_of
        )
        aliases = {tool.qualified: tool.name for tool in published.lock.tools}
        use_launcher(ToolLauncher(self.found.tools, self._invoker, aliases))
        self.jobs_api = JobsApi(self.settings, self._sealer, self.store)
        self.servers_api = ServersApi(self.settings, self._servers, upstream.project_of)

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
        return Worker(
            self.found.tools,
            self.store(),
            self._sealer,
            self.settings,
            self._log,
            self._homes,
            self._environments,
        )

    async def reap(self) -> None:
        """The timer's work. Raises nothing that the next run may mend: a timer's failure helps nobody."""
        keep = timedelta(hours=self.settings.retention_hours)
        budget = self.settings.reaper_requests

        def work() -> None:
            worker, store = self.worker, self._table_store()
            Reaper(store, retention=keep, budget=budget, on_poison=worker.give_up).run()
            before = int((utc_now() - keep).timestamp() * 1000)
            TableInvocationStore(self._storage()).purge(before, budget // 10)

        try:
            await storage.run(work)
        except Exception:
            _LOG.exception("the reaper could not do its work; its next run goes on")

    def store(self) -> JobStore:
        """Raises `SettingsError` when no storage is set."""
        return self._table_store()

    @functools.cache  # noqa: B019 - lives as long as the process
    def _table_store(self) -> TableJobStore:
        return TableJobStore(self._storage())

    @functools.cache  # noqa: B019
    def _storage(self) -> storage.Storage:
        return storage.Storage(self.settings.storage)
