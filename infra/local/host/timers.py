"""Timer triggers: firing on a schedule, never twice at once, with the timer information of the real host."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from infra.local.host.schedule import parse_schedule
from infra.local.host.settings import resolve
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from infra.local.host.invoker import Invoker
    from infra.local.host.schedule import Schedule
    from infra.local.host.values import Binding, Function

_NEVER: Final = "0001-01-01T00:00:00+00:00"  # .NET's default DateTime
_LONGEST_SLEEP: Final = 60.0  # seconds; the clock may be set, or the machine may sleep, meanwhile
_MONITORED_FROM: Final = timedelta(minutes=1)


class TimerListener:
    """Fires one function on its schedule."""

    def __init__(
        self,
        function: Function,
        schedule: Schedule,
        invoker: Invoker,
        *,
        run_on_startup: bool = False,
        use_monitor: bool = True,
    ) -> None:
        self.name = function.name
        self._function = function
        self._schedule = schedule
        self._invoker = invoker
        self._run_on_startup = run_on_startup
        self._use_monitor = use_monitor
        self._last: datetime | None = None
        self._updated: datetime | None = None
        self._next = datetime.min.replace(tzinfo=UTC)
        self._stopping = asyncio.Event()
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to count; fires at once when the function runs on start-up."""
        now = datetime.now(UTC)
        self._next = self._schedule.next_after(now)
        if self._use_monitor:
            # As the real host: a schedule of less than a minute keeps no status.
            self._use_monitor = self._schedule.next_after(self._next) - self._next >= _MONITORED_FROM
        self._spawn(self._run())

    async def stop(self) -> None:
        """Stop counting and wait for a run under way."""
        self._stopping.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def fire_now(self) -> None:
        """Run once outside the schedule, after a run under way."""
        self._spawn(self._fire())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        if self._run_on_startup:
            await self._fire()
            self._next = self._schedule.next_after(datetime.now(UTC))
        while not self._stopping.is_set():
            due = self._next
            wait = (due - datetime.now(UTC)).total_seconds()
            if wait > 0:
                try:
                    async with asyncio.timeout(min(wait, _LONGEST_SLEEP)):
                        await self._stopping.wait()
                except TimeoutError:
                    continue
                return
            await self._fire()
            # Occurrences that passed during a long run are skipped, and one is never fired twice.
            now = max(datetime.now(UTC), due)
            self._last, self._updated, self._next = due, now, self._schedule.next_after(now)

    async def _fire(self) -> None:
        async with self._lock:
            now = datetime.now(UTC)
            value = Value(Kind.JSON, json.dumps(self.information()))
            await self._invoker.run(self._function, value, reason=f"Timer fired at {now.isoformat()}")

    def information(self) -> dict[str, object]:
        """The trigger value. IsPastDue is always false: this host keeps no status while it is stopped."""
        status = None
        if self._use_monitor:
            status = {
                "Last": _stamp(self._last),
                "LastUpdated": _stamp(self._updated),
                "Next": _stamp(self._next),
            }
        return {
            "Schedule": {"AdjustForDST": self._schedule.adjust_for_dst},
            "ScheduleStatus": status,
            "IsPastDue": False,
        }


def build_timers(
    triggers: list[tuple[Function, Binding]], invoker: Invoker, environment: Mapping[str, str]
) -> list[TimerListener]:
    """One listener for each timer trigger. Raises HostError for a schedule that cannot be read."""
    now = datetime.now(UTC)
    timers = []
    for function, binding in triggers:
        where = f"schedule of function '{function.name}'"
        schedule = parse_schedule(resolve(binding.text("schedule"), environment, where), where, now)
        timers.append(
            TimerListener(
                function,
                schedule,
                invoker,
                run_on_startup=binding.fields.get("runOnStartup") is True,
                use_monitor=binding.fields.get("useMonitor") is not False,
            )
        )
    return timers


def _stamp(moment: datetime | None) -> str:
    return _NEVER if moment is None else moment.isoformat(timespec="seconds")
