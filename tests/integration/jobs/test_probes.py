"""What health asks of a storage account, on a real Azurite: healthy, hanging, away."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import azure.functions as func
import pytest

from infra.local.azurite import Azurite, connection_string
from shared import settings as app_settings
from shared.jobs import model
from shared.jobs.health import MOST_REQUESTS, last_run
from shared.jobs.reaper import Reaper
from shared.jobs.store import POISON_QUEUE
from shared.jobs.table_probes import TableProbes
from shared.jobs.table_store import TableJobStore
from shared.storage import QUICK, Storage
from shared.web import health as health_module
from shared.web.health import HealthApi, Instance
from tests.support.fault_plan import delay
from tests.support.fault_proxy import FaultProxy
from tests.unit.jobs.test_keys_and_rows import a_job

pytestmark = pytest.mark.integration

TOKEN = "token-of-default"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Azurite]:
    """Its counts are of one test's jobs alone."""
    with Azurite.start(tmp_path / "storage", free_ports=True) as azurite:
        yield azurite


def api(connection: str, **options: Any) -> HealthApi:
    settings = app_settings.load(
        {
            "AzureWebJobsStorage": connection,
            "MCP_AUTH_TOKEN": TOKEN,
            "TOOLBOX_SEAL_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        }
    )

    async def none() -> int:
        return 0

    instance = Instance("me", healthy=lambda: True, tools=1, faults=0, upstream_faults=none)
    probes = TableProbes(Storage(connection, QUICK))
    return HealthApi(settings, instance, lambda: probes, **options)


def ask(made: HealthApi) -> tuple[int, Any]:
    request = func.HttpRequest(
        method="GET", url="http://localhost/mcp/health", headers={"X-MCP-Auth-Token": TOKEN}, body=b""
    )
    answer = asyncio.run(made.health(request))
    return answer.status_code, json.loads(answer.get_body())["checks"]


def test_an_account_without_anything_in_it_is_well(own: Azurite) -> None:
    status, checks = ask(api(own.connection_string))
    assert status == 200, checks
    assert checks["storage"]["detail"] == {"table": "ok", "queue": "ok", "blob": "ok", "queuedMessages": 0}
    assert checks["poisonQueue"]["detail"] == {"count": 0}
    assert checks["pendingJobs"]["detail"] == {"count": 0, "complete": True}
    assert checks["reaper"]["detail"]["lastRun"] is None


def test_what_is_there_is_counted_in_few_requests(own: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_module, "FRESH_SECONDS", 0.0)
    with FaultProxy(own.ports) as proxy:
        storage = Storage(own.connection_string)
        store = TableJobStore(storage)
        made = api(proxy.connection_string)
        old = model.utc_now() - timedelta(hours=2)
        job = store.create(a_job(created_at=old), b"sealed")
        store.send(job.job_id)
        poison = storage.queue(POISON_QUEUE)
        poison.create_queue()
        poison.send_message("x")
        Reaper(store, retention=timedelta(days=7), budget=100, on_poison=_refuse).run()
        status, checks = ask(made)
        assert status == 503
        assert {name for name, check in checks.items() if not check["ok"]} == {"pendingJobs", "poisonQueue"}
        assert checks["pendingJobs"]["detail"]["oldestJobId"] == job.job_id
        assert checks["pendingJobs"]["detail"]["oldestSeconds"] >= 7_200
        assert checks["storage"]["detail"]["queuedMessages"] >= 1
        run = last_run(store)
        assert run is not None
        assert run.oldest_pending == job.job_id
        assert len(proxy.seen()) == 5 <= MOST_REQUESTS

        poison.clear_messages()
        store.purge(store.write(model.fail(_got(store, job.job_id), old, model.ErrorCode.CANCELLED, "x")))
        status, checks = ask(made)
        assert status == 200, checks


def test_storage_that_hangs_is_told_within_seconds(own: Azurite) -> None:
    with FaultProxy(own.ports) as proxy:
        proxy.arm(delay(30), ".*", probability=1.0)
        began = time.monotonic()
        status, checks = ask(api(proxy.connection_string))
        took = time.monotonic() - began
        assert status == 503
        assert took < health_module.SECONDS + 3
        assert set(checks["storage"]["detail"]) == {"table", "queue", "blob"}
        assert all(text != "ok" for text in checks["storage"]["detail"].values())


def test_storage_that_is_away_is_told_within_seconds() -> None:
    began = time.monotonic()
    status, checks = ask(api(connection_string((1, 1, 1))))
    assert status == 503
    assert time.monotonic() - began < health_module.SECONDS + 3
    assert {name for name, check in checks.items() if not check["ok"]} == {
        "storage",
        "pendingJobs",
        "poisonQueue",
        "reaper",
    }
    assert "devstoreaccount1" not in json.dumps(checks)


def _refuse(body: str) -> None:
    raise ConnectionError("not now")


def _got(store: TableJobStore, job_id: str) -> model.Job:
    found = store.get(job_id)
    assert found is not None
    return found
