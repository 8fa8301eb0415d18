"""Fifty jobs at once over two connections: each sees its own environment, and nothing of the others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from infra.local.dataverse.schema import stable_id
from shared import settings as app_settings
from shared.apis.connections.book import ConnectionBook
from shared.apis.connections.environments import Environments
from shared.apis.environment import use_resolver
from shared.apis.ports import use_store
from shared.contract.envelope import Envelope, plan
from shared.errors import LostLeaseError
from shared.jobs import answers
from shared.jobs.model import Status
from shared.jobs.payload import Sealer
from shared.jobs.submit import submit
from shared.jobs.testing import MemoryJobStore
from shared.jobs.worker import Worker
from shared.tool.decorator import declared
from shared.tool.spec import ExecutionMode
from tests.integration.dataverse import overlap_tools
from tests.integration.dataverse.methods_bench import connections_to, settings_for, started
from tests.integration.dataverse.methods_cases import APPS, NAMES, ROOT
from tests.integration.dataverse.overlap_tools import LOOKS, TOOLS, Meeting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.dataverse.stand_in import StandIn
    from shared.jobs.model import Job
    from shared.tool.handler import ToolEntry
    from shared.tool.spec import JsonObject

JOBS: Final = 50
#: Accounts that each environment starts with.
ACCOUNTS: Final = {"dev": 12, "uat": 13}


class SettingsInMemory:
    """A `SettingsStore`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[str, int]] = {}
        self._lock = threading.Lock()

    def read(self, owner: str, tool: str) -> tuple[JsonObject, str]:
        with self._lock:
            text, version = self._kept.get((owner, tool), ("{}", 0))
        found: JsonObject = json.loads(text)
        return found, str(version or "")

    def write(self, owner: str, tool: str, values: JsonObject, version: str) -> None:
        with self._lock:
            known = self._kept.get((owner, tool), ("{}", 0))[1]
            if version != str(known or ""):
                raise LostLeaseError
            self._kept[owner, tool] = (json.dumps(values), known + 1)


@pytest.fixture
def dataverse(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with started(ACCOUNTS) as stand_in:
        for name, value in settings_for(stand_in).items():
            monkeypatch.setenv(name, value)
        settings = SettingsInMemory()
        use_store(lambda: settings)
        yield stand_in
        use_store(None)
        use_resolver(None)


def _place(n: int) -> str:
    """The environment, and the owner, of a job."""
    return NAMES[n % 2]


def _entry(n: int) -> ToolEntry:
    """Each tool runs in both environments: 4 tools and 2 environments, in turn."""
    entry = declared(TOOLS[n // 2 % len(TOOLS)])
    assert entry is not None
    return entry


def test_overlapping_jobs_never_see_each_other(dataverse: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap_tools, "meeting", Meeting(JOBS))
    owned = [{**connection, "owners": [connection["name"]]} for connection in connections_to(dataverse)]
    environments = Environments(ConnectionBook(json.dumps(owned)))
    use_resolver(environments.resolve)
    store = MemoryJobStore()
    jobs = asyncio.run(_all(store, environments))
    for n, job in jobs.items():
        _saw_only_its_own(n, job, store, dataverse)
    _every_environment_was_asked_by_its_own_jobs(dataverse)


async def _all(store: MemoryJobStore, environments: Environments) -> dict[int, Job]:
    """The jobs by number, all of them run by one worker at the same time."""
    settings = app_settings.load({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
    sealer = Sealer((bytes(32),))
    limits = {"max_timeout_ms": settings.max_timeout_ms, "inline_timeout_ms": settings.inline_timeout_ms}
    catalogue = {entry.spec.name: entry for entry in map(_entry, range(JOBS))}
    jobs: dict[int, Job] = {}
    for n in range(JOBS):
        spec, name = _entry(n).spec, _place(n)
        how = plan(spec, Envelope(execution_mode=ExecutionMode.HEADLESS), **limits)
        connections = environments.named([name], name, spec.name)
        jobs[n] = await submit(
            spec, {"n": n}, how, owner=name, store=store, sealer=sealer, connections=connections
        )
    worker = Worker(catalogue, store, sealer, settings, environments=environments)
    await asyncio.gather(*(worker.handle(message) for message in store.messages))
    return jobs


def _saw_only_its_own(n: int, made: Job, store: MemoryJobStore, dataverse: StandIn) -> None:
    found = store.with_logs(made.job_id)
    assert found is not None
    job, lines = found
    assert (job.status, job.error) == (Status.COMPLETED, "")
    result: Any = answers.result_of(job, store).structured
    name = _place(n)
    environment = dataverse.environment(name)
    assert result["seen"] == [
        {
            "n": n, "correlation": job.correlation_id, "connection": name, "active": dataverse.url(name),
            "organization": environment.organization_id, "accounts": ACCOUNTS[name],
            "first": stable_id("account", name, "1"),
            "user": stable_id("user", name, APPS[name].client_id), "echo": str(n),
        }
    ] * LOOKS  # fmt: skip
    assert (environment.record("account", result["made"]) or {})["name"] == f"job {n}"

    happened = ["settings:updated", "notification", "progress", "notification"]
    assert result["heard"] == happened
    assert [event["event"] for event in reversed(result["events"])] == happened
    told = [event["data"]["title"] for event in result["events"] if event["event"] == "notification"]
    assert told == [f"job {n}"] * 2
    (setting,) = [event["data"] for event in result["events"] if event["event"] == "settings:updated"]
    assert setting == {"key": f"n{n}", "value": n}

    same = {m for m in range(JOBS) if (_place(m), _entry(m).spec.name) == (name, job.tool_name)}
    assert result["settings"].items() <= {f"n{m}": m for m in same}.items()
    assert result["settings"][f"n{n}"] == n

    notified = [line.message for line in lines if "[Notification]" in line.message]
    assert notified == [f"[Notification] job {n}: begins", f"[Notification] job {n}: ends"]


def _every_environment_was_asked_by_its_own_jobs(dataverse: StandIn) -> None:
    """A create and, at each look, three pages, a function and a FetchXML query; with its own app's token."""
    for place, name in enumerate(NAMES):
        own = range(place, JOBS, len(NAMES))
        asked = [request for request in dataverse.requests() if request.environment == name]
        web_api = [request for request in asked if request.path.startswith(ROOT)]
        assert {request.app for request in web_api} == {APPS[name].client_id}
        by_job = Counter(request.headers["x-job"] for request in web_api if "x-job" in request.headers)
        assert by_job == {str(n): 1 + LOOKS * 5 for n in own}
        environment = dataverse.environment(name)
        names = [(environment.record("account", row) or {})["name"] for row in environment.ids("account")]
        assert sorted(one for one in names if one.startswith("job")) == sorted(f"job {n}" for n in own)
    # The Power Platform API is one place for both: there it is the token that tells them apart.
    for request in dataverse.requests("/powerplatform/"):
        assert request.app == APPS[_place(int(request.headers["x-job"]))].client_id
