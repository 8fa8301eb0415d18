"""The app's parts, put together once per process, by `shared.toolbox`: at the first call where a lock file says
what is registered, else when the app starts.

Nothing here touches storage or loads an SDK: that happens at the first call that needs it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import azure.functions as func

from shared import settings as app_settings
from shared import startup, storage, telemetry
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
from shared.jobs.table_probes import TableProbes
from shared.jobs.table_store import TableJobStore
from shared.jobs.worker import Worker
from shared.launching import ToolLauncher
from shared.lockfile.entries import LockedApp
from shared.lockfile.reading import Registration, ToolsLock
from shared.tool import serving
from shared.tool.binding import trigger_fields
from shared.tool.discovery import Found, find_tools
from shared.tool.handler import ToolEntry
from shared.tool.prompts import DecoratedPrompt, PromptSpec
from shared.tool.resolving import resolver
from shared.tool.resources import DecoratedResource, ResourceSpec
from shared.tool.spec import ToolSpec
from shared.upstream import publish
from shared.upstream.gateway import Gateway
from shared.upstream.lock import LOCK_FILE
from shared.upstream.policy import Policy
from shared.upstream.publish import Published
from shared.upstream.settings import upstream_settings
from shared.upstream.status import INSTANCE, Servers
from shared.web.health import HealthApi, Instance
from shared.web.invocations import InvocationsApi
from shared.web.jobs import JobsApi
from shared.web.page import PageApi
from shared.web.servers import ServersApi
from shared.web.tools import ToolsApi
from shared.web.windows import WindowsApi

_LOG = logging.getLogger(__name__)


class Runtime:
    """Everything that the triggers call. Raises `SettingsError` at once when a setting is illegal."""

    def __init__(self, tools_folder: Path, lock: ToolsLock | None = None) -> None:
        """`lock`: what is registered already; None: every tool is imported, to learn what it declares."""
        self.settings = app_settings.current()
        telemetry.start(self.settings.seal_keys)
        self._sealer = Sealer(self.settings.seal_keys)
        upstream = upstream_settings(root=tools_folder.parent)
        if upstream.commands:
            names = ", ".join(upstream.commands)
            _LOG.warning("upstream servers may be started by npx, uvx, docker and these commands: %s", names)
        policy = Policy.parse(upstream.policy)
        self.gateway = Gateway(upstream, policy)
        published = publish.published(tools_folder.parent / LOCK_FILE, policy, self.gateway)
        self._servers = Servers(self.gateway, published.lock)
        self._locked = None if lock is None else LockedApp(lock, tools_folder, self._built_in, published)
        self.found = self._find(tools_folder, published) if self._locked is None else self._locked.found
        self._homes = ToolHomes(tools_folder, self.found.homes)
        self._log = InvocationLog(self._records)
        self._environments = Environments(
            ConnectionBook(self.settings.connections, self._storage() if self.settings.storage else None)
        )
        use_resolver(self._environments.resolve)
        use_store(lambda: TableSettingsStore(self._storage()))
        self._invoker = Invoker(
            self.settings, self._sealer, self.store, self._log, self._environments, upstream.project_of
        )
        find = resolver(self.found.tools, published.aliases)
        use_launcher(ToolLauncher(self.found.tools, self._invoker, find))
        self.jobs_api = JobsApi(self.settings, self._sealer, self.store)
        self.invocations_api = InvocationsApi(self.settings, self._sealer, self._records, self.store)
        self.tools_api = ToolsApi(
            self.settings,
            self.found.tools,
            self.found.faults,
            self.found.homes,
            self._invoker,
            find,
            lambda entry, owner: self._servers.may_call(entry, owner, upstream.project_of(owner)),
        )
        self.page_api = PageApi()
        self.windows_api = WindowsApi(
            self.settings, self._sealer, self.store, self.found.tools, self._environments
        )
        self.servers_api = ServersApi(self.settings, self._servers, upstream.project_of)
        self.health_api = HealthApi(self.settings, self._instance(), self._probes)

    @property
    def tools(self) -> list[ToolEntry]:
        return list(self.found.tools.values())

    def _built_in(self) -> list[Callable[..., Any]]:
        return built_in(lambda: self.tools, self.store, self._sealer, lambda: self._servers)

    def _find(self, tools_folder: Path, published: Published) -> Found:
        """What there is, by reading and importing all of it."""
        contracts = find_contracts(tools_folder, max_timeout_ms=self.settings.max_timeout_ms)
        for warning in contracts.warnings:
            _LOG.warning("tools/%s: %s", warning.folder, warning.reason)
        found = find_tools(
            tools_folder,
            self._built_in(),
            [*contracts.entries, *published.tools],
            [*contracts.faults, *published.faults],
            published.prompts,
        )
        startup.check_jobs(self.settings, [entry.spec for entry in found.tools.values()])
        return found

    def registrations(self) -> tuple[list[Registration], list[Registration], list[Registration]]:
        """What the triggers of tools, resources and prompts are declared with, where no lock file says it."""
        found = self.found
        return (
            [_registration(entry.spec, trigger_fields(entry.spec)) for entry in self.tools],
            [_registration(entry.spec, entry.spec.trigger_fields()) for entry in found.resources.values()],
            [_registration(entry.spec, entry.spec.trigger_fields()) for entry in found.prompts.values()],
        )

    def tool_trigger(self, name: str) -> Callable[[str, func.Context], Awaitable[str]]:
        return self._invoker.trigger(self.found.tools[name])

    def resource_trigger(self, name: str) -> Callable[[str], Awaitable[str]]:
        return serving.resource_trigger(self._resource(name), self.settings)

    def prompt_trigger(self, name: str) -> Callable[[func.PromptInvocationContext], Awaitable[str]]:
        return serving.prompt_trigger(self._prompt(name), self.settings)

    def _resource(self, name: str) -> DecoratedResource:
        return self.found.resources[name] if self._locked is None else self._locked.resource(name)

    def _prompt(self, name: str) -> DecoratedPrompt:
        return self.found.prompts[name] if self._locked is None else self._locked.prompt(name)

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
            self._records().purge(before, budget // 10)

        try:
            await storage.run(work)
        except Exception:
            _LOG.exception("the reaper could not do its work; its next run goes on")

    def store(self) -> JobStore:
        """Raises `SettingsError` when no storage is set."""
        return self._table_store()

    def _instance(self) -> Instance:
        return Instance(
            name=INSTANCE,
            healthy=lambda: not self.settings.storage or self.worker.healthy,
            tools=len(self.found.tools),
            faults=len(self.found.faults),
            upstream_faults=self._upstream_faults,
        )

    async def _upstream_faults(self) -> int:
        """Over all scopes; a fault that several of them show counts once."""
        scopes = (None, *self.gateway.settings.known_projects())
        return len({fault for scope in scopes for fault in (await self.gateway.loaded(scope)).faults})

    @functools.cache  # noqa: B019 - lives as long as the process
    def _probes(self) -> TableProbes:
        return TableProbes(storage.Storage(self.settings.storage, storage.QUICK))

    def _records(self) -> TableInvocationStore:
        return TableInvocationStore(self._storage())

    @functools.cache  # noqa: B019 - lives as long as the process
    def _table_store(self) -> TableJobStore:
        return TableJobStore(self._storage())

    @functools.cache  # noqa: B019
    def _storage(self) -> storage.Storage:
        return storage.Storage(self.settings.storage)


def _registration(spec: ToolSpec | ResourceSpec | PromptSpec, fields: Mapping[str, Any]) -> Registration:
    return Registration(spec.function_name, spec.name, "", fields)
