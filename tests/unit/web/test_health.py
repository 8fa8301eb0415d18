"""Health as a probe and as an operator see it, on a store in memory that may hang or fail."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import azure.functions as func
import pytest
from azure.core.exceptions import HttpResponseError

from shared import settings as app_settings
from shared.errors import SettingsError
from shared.jobs.testing import MemoryJobStore
from shared.web import health as health_module
from shared.web.answers import SECURITY_HEADERS
from shared.web.health import HealthApi, Instance
from tests.unit.jobs.test_health import NOW, made, reap

TOKEN, OTHER = "token-of-default", "token-of-ana"
SETTINGS = app_settings.load(
    {
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
        "MCP_AUTH_TOKEN": TOKEN,
        "MCP_AUTH_TOKENS": json.dumps({"ana": OTHER}),
        "TOOLBOX_SEAL_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    }
)
CHECKS = {
    "storage",
    "pendingJobs",
    "poisonQueue",
    "reaper",
    "sealKey",
    "worker",
    "tools",
    "upstream",
}


class Probes(MemoryJobStore):
    """A store in memory with what health asks besides."""

    def __init__(self) -> None:
        super().__init__()
        #: What goes wrong, by the method's name: an error to raise, or an event to wait for.
        self.faults: dict[str, Exception | threading.Event] = {}

    def load(self) -> None:
        self._meet("load")

    def queued(self) -> int:
        self.requests["queued"] += 1
        self._meet("queued")
        return len(self.messages)

    def poisoned(self) -> int:
        self.requests["poisoned"] += 1
        self._meet("poisoned")
        return len(self.poison)

    def reach_bodies(self) -> None:
        self.requests["reach_bodies"] += 1
        self._meet("reach_bodies")

    def get_state(self, name: str) -> str:
        self._meet("get_state")
        return super().get_state(name)

    def _meet(self, name: str) -> None:
        fault = self.faults.get(name)
        if isinstance(fault, threading.Event):
            fault.wait(20)
        elif fault is not None:
            raise fault


class Site:
    """The two HTTP functions."""

    def __init__(self) -> None:
        self.store = Probes()
        self.healthy = True
        self.upstream: Callable[[], Awaitable[int]] = self._no_faults
        self.faults = 0
        self.settings = SETTINGS
        reap(self.store)
        self.store.requests.clear()

    async def _no_faults(self) -> int:
        return 0

    def api(self, **options: Any) -> HealthApi:
        instance = Instance(
            name="abcd1234",
            healthy=lambda: self.healthy,
            tools=7,
            faults=self.faults,
            upstream_faults=lambda: self.upstream(),
        )
        return HealthApi(self.settings, instance, lambda: self.store, clock=lambda: NOW, **options)


def request(method: str = "GET", token: str | None = TOKEN) -> func.HttpRequest:
    headers = {} if token is None else {"X-MCP-Auth-Token": token}
    return func.HttpRequest(method=method, url="http://localhost/mcp/health", headers=headers, body=b"")


def ask(site: Site, token: str | None = TOKEN, **options: Any) -> tuple[int, Any]:
    async def look() -> func.HttpResponse:
        return await site.api(**options).health(request(token=token))

    answer = asyncio.run(look())
    return answer.status_code, json.loads(answer.get_body())


def wrong(body: Any) -> set[str]:
    return {name for name, check in body["checks"].items() if not check["ok"]}


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What a thread waits for; let go at the end, so that none is left."""
    event = threading.Event()
    yield event
    event.set()


class TestAlive:
    def ask(self, site: Site, method: str = "GET") -> func.HttpResponse:
        return asyncio.run(site.api().alive(request(method, token=None)))

    def test_it_says_no_word_more(self, site: Site) -> None:
        well = self.ask(site)
        site.healthy = False
        ill = self.ask(site)
        assert (well.status_code, well.get_body()) == (200, b'{"status":"ok"}')
        assert (ill.status_code, ill.get_body()) == (503, b'{"status":"unavailable"}')
        assert all(ill.headers[name] == value for name, value in SECURITY_HEADERS.items())

    def test_head_is_the_same_without_a_body(self, site: Site) -> None:
        answer = self.ask(site, "HEAD")
        assert (answer.status_code, answer.get_body()) == (200, b"")
        assert all(answer.headers[name] == value for name, value in SECURITY_HEADERS.items())

    def test_storage_is_never_asked(self, site: Site) -> None:
        site.store.faults = dict.fromkeys(("load", "queued", "get_state"), ConnectionError("away"))
        assert self.ask(site).status_code == 200
        assert site.store.requests.total() == 0

    def test_other_verbs_are_405(self, site: Site) -> None:
        answer = self.ask(site, "POST")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


class TestHealth:
    def test_all_is_well(self, site: Site) -> None:
        status, body = ask(site)
        assert (status, body["status"], body["instance"]) == (200, "ok", "abcd1234")
        assert set(body["checks"]) == CHECKS
        assert body["checks"]["storage"]["detail"] == {
            "table": "ok",
            "queue": "ok",
            "blob": "ok",
            "queuedMessages": 0,
        }
        assert body["checks"]["reaper"]["detail"]["lastRun"] == NOW.isoformat().replace("+00:00", ".000Z")
        assert body["checks"]["tools"]["detail"] == {"published": 7, "faults": 0}
        assert site.store.requests.total() == 5

    def test_nobody_without_a_token_is_told_anything(self, site: Site) -> None:
        for token in (None, "wrong", ""):
            status, body = ask(site, token)
            assert (status, body) == (401, {"error": "Unauthorized: valid MCP access token required"})
        assert site.store.requests.total() == 0

    def test_other_owners_see_flags_and_no_counts(self, site: Site) -> None:
        made(site.store, 40)
        status, body = ask(site, OTHER)
        assert status == 503
        assert body == {
            "status": "unavailable",
            "checks": {name: {"ok": name != "pendingJobs"} for name in CHECKS},
        }

    def test_each_ill_is_told_by_its_name(self, site: Site) -> None:
        made(site.store, 40, owner="ana")
        site.store.poison.append("x")
        site.store.rows.pop(("state", "reaper"))
        site.store.put_state("reaper", '{"at": "2020-01-01T00:00:00Z", "oldestPending": null}')
        site.settings = SETTINGS._replace(seal_keys=())
        site.healthy, site.faults = False, 2

        async def three() -> int:
            return 3

        site.upstream = three
        status, body = ask(site)
        assert status == 503
        assert wrong(body) == CHECKS - {"storage"}
        details = {name: check["detail"] for name, check in body["checks"].items()}
        assert (details["pendingJobs"]["count"], details["pendingJobs"]["oldestSeconds"]) == (1, 2400)
        assert details["poisonQueue"] == {"count": 1}
        assert details["upstream"] == {"faults": 3}
        assert details["sealKey"] == {"keys": 0}

    def test_storage_that_hangs_is_told_in_time(self, site: Site, stuck: threading.Event) -> None:
        site.store.faults = dict.fromkeys(("queued", "poisoned", "get_state", "reach_bodies"), stuck)
        began = time.monotonic()
        status, body = ask_and_let_go(site, stuck, seconds=0.2)
        assert time.monotonic() - began < 5
        assert status == 503
        assert wrong(body) == {"storage", "poisonQueue", "reaper"}
        assert body["checks"]["storage"]["detail"] == dict.fromkeys(
            ("table", "queue", "blob"), "no answer within 0.2 s"
        )
        assert body["checks"]["poisonQueue"]["detail"] == {"error": "no answer within 0.2 s"}

    def test_storage_that_refuses_is_told_without_its_words(self, site: Site) -> None:
        refused = HttpResponseError("account 'sentinel' says no")
        refused.status_code = 403
        refused.error_code = "AuthorizationFailure"  # type: ignore[attr-defined]
        site.store.faults = {"queued": refused, "get_state": ConnectionError("sentinel")}
        _, body = ask(site)
        detail = body["checks"]["storage"]["detail"]
        assert detail["queue"] == "HTTP 403 AuthorizationFailure"
        assert detail["table"] == "cannot be reached (ConnectionError)"
        assert "sentinel" not in json.dumps(body)

    def test_clients_that_cannot_be_made_are_an_ill_of_storage(self, site: Site) -> None:
        site.store.faults = {"load": ValueError("AccountKey=sentinel")}
        status, body = ask(site)
        assert status == 503
        assert wrong(body) == {"storage", "pendingJobs", "poisonQueue", "reaper"}
        assert "sentinel" not in json.dumps(body)

    def test_without_storage_the_setting_is_named(self, site: Site) -> None:
        def none() -> Probes:
            raise SettingsError("AzureWebJobsStorage is not set")

        api = HealthApi(SETTINGS, site.api()._instance, none, clock=lambda: NOW)
        answer = asyncio.run(api.health(request()))
        checks = json.loads(answer.get_body())["checks"]
        assert checks["storage"] == {"ok": False, "detail": {"error": "AzureWebJobsStorage is not set"}}
        assert checks["worker"]["ok"]

    def test_upstream_that_hangs_or_fails_is_told(self, site: Site) -> None:
        async def hangs() -> int:
            await asyncio.Event().wait()
            return 0

        async def fails() -> int:
            raise OSError("/secret/path")

        for upstream, said in ((hangs, "no answer within 0.1 s"), (fails, "OSError")):
            site.upstream = upstream
            _, body = ask(site, seconds=0.1)
            assert body["checks"]["upstream"] == {"ok": False, "detail": {"error": said}}

    def test_many_who_ask_at_once_cost_one_look(self, site: Site) -> None:
        async def crowd() -> list[func.HttpResponse]:
            api = site.api()
            first = await asyncio.gather(*(api.health(request()) for _ in range(20)))
            return [*first, await api.health(request(token=OTHER))]

        assert {answer.status_code for answer in asyncio.run(crowd())} == {200}
        assert site.store.requests.total() == 5

    def test_a_look_is_soon_taken_anew(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(health_module, "FRESH_SECONDS", 0.0)

        async def twice() -> list[int]:
            api = site.api()
            before = await api.health(request())
            site.store.poison.append("x")
            return [before.status_code, (await api.health(request())).status_code]

        assert asyncio.run(twice()) == [200, 503]

    def test_who_goes_away_takes_no_answer_from_the_others(self, site: Site, stuck: threading.Event) -> None:
        site.store.faults = {"queued": stuck}

        async def both() -> func.HttpResponse:
            api = site.api()
            leaver = asyncio.create_task(api.health(request()))
            stayer = asyncio.create_task(api.health(request()))
            while not site.store.requests["queued"]:
                await asyncio.sleep(0)
            leaver.cancel()
            stuck.set()
            return await stayer

        assert asyncio.run(both()).status_code == 200

    def test_head_has_no_body(self, site: Site) -> None:
        answer = asyncio.run(site.api().health(request("HEAD")))
        assert (answer.status_code, answer.get_body()) == (200, b"")


def ask_and_let_go(site: Site, stuck: threading.Event, **options: Any) -> tuple[int, Any]:
    """`asyncio.run` waits for no thread of ours; the event lets them go after the answer."""
    try:
        return ask(site, **options)
    finally:
        stuck.set()
