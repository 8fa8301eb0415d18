"""Four tools that look at everything an invocation has, each with another kind of concurrency.

Every one waits first until all jobs of the test run, then looks twice, from wherever its code runs.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final

from shared.apis import dataverseAPI, powerplatformAPI, toolboxAPI
from shared.tool import Context, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.tool.spec import JsonObject

LOOKS: Final = 2
#: Seconds until a job that waits for the others gives up.
PATIENCE: Final = 30.0
WHO: Final = {"operationName": "WhoAmI", "operationType": "function"}
QUERY: Final = "accounts?$select=accountnumber&$filter=startswith(accountnumber,'A-')&$orderby=accountnumber"
FETCH: Final = "<fetch top='1'><entity name='systemuser'><attribute name='applicationid'/></entity></fetch>"


class Meeting:
    """Opens once as many have come as are expected."""

    def __init__(self, expected: int) -> None:
        self._missing = expected
        self._lock = threading.Lock()
        self._open = threading.Event()

    def come(self) -> None:
        with self._lock:
            self._missing -= 1
            if self._missing == 0:
                self._open.set()

    def wait(self) -> None:
        """Blocks; by then the job has come. Fewer threads than jobs are enough for all to wait."""
        if not self._open.wait(PATIENCE):
            raise TimeoutError(f"{self._missing} jobs have not come")


#: Set by the test, for its number of jobs.
meeting = Meeting(0)


def _headers() -> dict[str, str | None]:
    """Who asks, by the launch context of the code that asks."""
    launch = toolboxAPI.invocation.getLaunchContext()
    assert launch is not None
    return {"x-job": str(launch["n"])}


def _facts(who: Any, rows: list[Any], user: Any, echo: Any, active: Any) -> JsonObject:
    launch = toolboxAPI.invocation.getLaunchContext()
    assert launch is not None
    return {
        "n": launch["n"], "correlation": launch["__pptb"]["correlationId"],
        "connection": toolboxAPI.getToolContext()["connectionName"], "active": active["url"],
        "organization": who["OrganizationId"], "accounts": len(rows), "first": rows[0]["accountid"],
        "user": user["value"][0]["systemuserid"], "echo": echo["body"]["n"],
    }  # fmt: skip


async def look() -> JsonObject:
    n = _headers()["x-job"]
    who, user, echo = await asyncio.gather(
        dataverseAPI.execute(WHO, None, _headers()),
        asyncio.create_task(dataverseAPI.fetchXmlQuery(FETCH, additionalHeaders=_headers())),
        powerplatformAPI.Governance.Post("rules", {"n": n}, None, _headers()),
    )
    rows = [row async for row in dataverseAPI.iterateQuery(QUERY, 5, additionalHeaders=_headers())]
    return _facts(who, rows, user, echo, await toolboxAPI.connections.getActiveConnection())


def look_blocking() -> JsonObject:
    n = _headers()["x-job"]
    who = dataverseAPI.execute(WHO, None, _headers())
    user = dataverseAPI.fetch_xml_query(FETCH, additional_headers=_headers())
    echo = powerplatformAPI.governance.post("rules", {"n": n}, None, _headers())
    rows = list(dataverseAPI.iterate_query(QUERY, 5, additional_headers=_headers()))
    return _facts(who, rows, user, echo, toolboxAPI.connections.get_active_connection())


async def _awaiting(n: int, context: Context, look_often: Callable[[], Any]) -> JsonObject:
    heard: list[str] = []
    toolboxAPI.events.on(lambda event, _: heard.append(event))
    meeting.come()
    await asyncio.to_thread(meeting.wait)
    await toolboxAPI.settings.set(f"n{n}", n)
    await toolboxAPI.utils.showNotification({"title": f"job {n}", "body": "begins"})
    made = await dataverseAPI.create("account", {"name": f"job {n}"}, None, _headers())
    context.update_progress(50, f"job {n}")
    seen = await look_often()
    await toolboxAPI.utils.showNotification({"title": f"job {n}", "body": "ends"})
    events = [dict(event) for event in await toolboxAPI.events.getHistory()]
    settings = dict(await toolboxAPI.settings.getAll())
    return {"seen": seen, "made": made.id, "heard": heard, "events": events, "settings": settings}


def _blocking(n: int, context: Context, look_often: Callable[[], Any]) -> JsonObject:
    heard: list[str] = []
    toolboxAPI.events.on(lambda event, _: heard.append(event))
    meeting.come()
    meeting.wait()
    toolboxAPI.settings.set(f"n{n}", n)
    toolboxAPI.utils.show_notification({"title": f"job {n}", "body": "begins"})
    made = dataverseAPI.create("account", {"name": f"job {n}"}, None, _headers())
    context.update_progress(50, f"job {n}")
    seen = look_often()
    toolboxAPI.utils.show_notification({"title": f"job {n}", "body": "ends"})
    events = [dict(event) for event in toolboxAPI.events.get_history()]
    settings = dict(toolboxAPI.settings.get_all())
    return {"seen": seen, "made": made.id, "heard": heard, "events": events, "settings": settings}


@tool(execution_modes=("headless",))
async def with_tasks(n: int, context: Context) -> dict[str, Any]:
    """Asynchronous code, its tasks."""
    return await _awaiting(
        n, context, lambda: asyncio.gather(*(asyncio.create_task(look()) for _ in range(LOOKS)))
    )


@tool(execution_modes=("headless",))
async def with_threads(n: int, context: Context) -> dict[str, Any]:
    """Asynchronous code that gives blocking work to threads."""
    return await _awaiting(
        n, context, lambda: asyncio.gather(*(asyncio.to_thread(look_blocking) for _ in range(LOOKS)))
    )


@tool(execution_modes=("headless",))
def one_by_one(n: int, context: Context) -> dict[str, Any]:
    """Synchronous code, one thing after the other."""
    return _blocking(n, context, lambda: [look_blocking() for _ in range(LOOKS)])


@tool(execution_modes=("headless",))
def in_parallel(n: int, context: Context) -> dict[str, Any]:
    """Synchronous code, on threads of `executeParallel`."""
    return _blocking(n, context, lambda: toolboxAPI.utils.executeParallel(*[look_blocking] * LOOKS))


TOOLS: Final = (with_tasks, with_threads, one_by_one, in_parallel)
