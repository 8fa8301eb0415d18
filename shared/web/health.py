"""Whether this instance lives, and whether what it stands on does.

    GET  /healthz       anyone: 200 `{"status": "ok"}`, 503 `{"status": "unavailable"}`, and no word more.
                        No request to storage: a probe every second costs nothing, and an outage of storage is
                        no reason to restart instances.
    GET  /mcp/health    with a token: 200 or 503 with `{"status", "checks": {name: {"ok", "detail"?}}}`.
                        Details count over all owners, so only owner `default`, who runs the app, gets them.

An answer takes `SECONDS` at most, whatever storage does, but for the first one of a process, which loads
storage's clients. Looks are shared: those who ask while one is under way, or within `FRESH_SECONDS` after, get
the same, so that many monitors cost storage no more than one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import azure.functions as func

from shared.errors import SettingsError
from shared.jobs import health
from shared.jobs.health import Check, ProbeStore
from shared.jobs.model import utc_now
from shared.jobs.rows import stamp
from shared.settings import DEFAULT_OWNER, Settings
from shared.storage import error_code
from shared.tool.spec import JsonObject
from shared.tool.threads import abandoned
from shared.web import answers

_LOG = logging.getLogger(__name__)

SECONDS: Final = 5.0
FRESH_SECONDS: Final = 2.0
LOAD_SECONDS: Final = 15.0
#: One for each question to storage: a hanging one keeps no other waiting, and no job's requests either.
_THREADS: Final = 5
_OF_STORAGE: Final = ("storage", "pendingJobs", "poisonQueue", "reaper")


@dataclass(frozen=True, slots=True)
class Instance:
    """What this process knows of itself and of the app."""

    name: str
    #: False while it takes no more jobs.
    healthy: Callable[[], bool]
    tools: int
    #: Tools and files that are left out because something is wrong with them.
    faults: int
    #: Faults in the configuration of upstream servers.
    upstream_faults: Callable[[], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class _Told[T]:
    """What storage has answered, or why it has not."""

    values: tuple[T, ...] = ()
    error: str = ""

    def check(self, judge: Callable[[T], Check]) -> Check:
        return judge(*self.values) if self.values else _unknown(self.error)


class HealthApi:
    """The HTTP functions about health. `probes`: makes the store to ask; may raise `SettingsError`."""

    def __init__(
        self,
        settings: Settings,
        instance: Instance,
        probes: Callable[[], ProbeStore],
        *,
        seconds: float = SECONDS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._settings = settings
        self._instance = instance
        self._probes = probes
        self._seconds = seconds
        self._clock = clock
        self._started = clock()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="health")
        self._looking: asyncio.Task[Mapping[str, Check]] | None = None
        self._looked_at = 0.0

    async def alive(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 or 503."""
        refused = answers.method_refusal(request, "GET", "HEAD")
        if refused is not None:
            return refused
        alive = self._instance.healthy()
        return _answer(request, 200 if alive else 503, {"status": "ok" if alive else "unavailable"})

    async def health(self, request: func.HttpRequest) -> func.HttpResponse:
        """200 when all is well, else 503, with what is."""

        async def answer(owner: str) -> func.HttpResponse:
            checks = await self._looked()
            well = all(check.ok for check in checks.values())
            body: JsonObject = {"status": "ok" if well else "unavailable"}
            if owner == DEFAULT_OWNER:
                body |= {"instance": self._instance.name, "time": stamp(self._clock())}
                body["checks"] = {name: {"ok": one.ok, "detail": one.detail} for name, one in checks.items()}
            else:
                body["checks"] = {name: {"ok": one.ok} for name, one in checks.items()}
            return _answer(request, 200 if well else 503, body)

        return await answers.for_owner(request, self._settings, answer, "GET", "HEAD")

    async def _looked(self) -> Mapping[str, Check]:
        fresh = time.monotonic() - self._looked_at < FRESH_SECONDS
        if self._looking is None or (self._looking.done() and (not fresh or self._looking.cancelled())):
            self._looking = asyncio.create_task(self._look())
        # Who asked first may go away: the look goes on for the others.
        return await asyncio.shield(self._looking)

    async def _look(self) -> Mapping[str, Check]:
        try:
            of_storage, upstream = await asyncio.gather(self._of_storage(), self._of_upstream())
            return {**of_storage, **self._of_instance(), "upstream": upstream}
        finally:
            self._looked_at = time.monotonic()

    def _of_instance(self) -> dict[str, Check]:
        known, keys = self._instance, len(set(self._settings.seal_keys))
        return {
            "sealKey": Check(ok=keys > 0, detail={"keys": keys}),
            "worker": Check(ok=known.healthy(), detail={"abandonedThreads": abandoned()}),
            "tools": Check(ok=not known.faults, detail={"published": known.tools, "faults": known.faults}),
        }

    async def _of_storage(self) -> dict[str, Check]:
        try:
            store = self._probes()
        except SettingsError as error:
            return dict.fromkeys(_OF_STORAGE, _unknown(error.message))
        # Only imports, which are slow on a cold instance and are no fault of storage's.
        loaded = await self._ask(store.load, LOAD_SECONDS)
        if loaded.error:
            return dict.fromkeys(_OF_STORAGE, _unknown(loaded.error))
        until = time.monotonic() + self._seconds * 0.6
        run, queued, poisoned, bodies, waiting = await asyncio.gather(
            self._ask(lambda: health.last_run(store)),
            self._ask(store.queued),
            self._ask(store.poisoned),
            self._ask(store.reach_bodies),
            self._ask(lambda: health.waiting(store, until=until)),
        )
        now, schedule = self._clock(), self._settings.reaper_schedule
        services = {"table": run.error, "queue": queued.error, "blob": bodies.error}
        storage: JsonObject = {name: error or "ok" for name, error in services.items()}
        if queued.values:
            storage["queuedMessages"] = queued.values[0]
        return {
            "storage": Check(ok=not any(services.values()), detail=storage),
            "pendingJobs": waiting.check(lambda found: health.waiting_check(found, now)),
            "poisonQueue": poisoned.check(lambda count: Check(ok=count == 0, detail={"count": count})),
            "reaper": run.check(lambda found: health.reaper_check(found, schedule, now, self._started)),
        }

    async def _of_upstream(self) -> Check:
        try:
            async with asyncio.timeout(self._seconds):
                faults = await self._instance.upstream_faults()
        except TimeoutError:
            return _unknown(_late(self._seconds))
        except Exception as error:
            _LOG.warning("health: the configuration of upstream servers could not be read", exc_info=True)
            return _unknown(type(error).__name__)
        return Check(ok=faults == 0, detail={"faults": faults})

    async def _ask[T](self, question: Callable[[], T], seconds: float | None = None) -> _Told[T]:
        """Never raises. A thread that hangs is left to its client's own, short patience."""
        seconds = self._seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(seconds):
                return _Told((await asyncio.get_running_loop().run_in_executor(self._pool, question),))
        except TimeoutError:
            return _Told(error=_late(seconds))
        except Exception as error:
            _LOG.warning("health: storage could not be asked", exc_info=True)
            return _Told(error=_why(error))


def _unknown(error: str) -> Check:
    return Check(ok=False, detail={"error": error})


def _late(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


def _why(error: Exception) -> str:
    """Without the service's own text, which names accounts and requests."""
    if isinstance(error, SettingsError):
        return error.message
    status = getattr(error, "status_code", None)
    told = f"HTTP {status} {error_code(error)}".rstrip() if status else ""
    return told or f"cannot be reached ({type(error).__name__})"


def _answer(request: func.HttpRequest, status: int, body: JsonObject) -> func.HttpResponse:
    full = answers.json_answer(status, body)
    if request.method != "HEAD":
        return full
    return func.HttpResponse(b"", status_code=status, mimetype="application/json", headers=dict(full.headers))
