"""`first_paint`: how long the list takes to show with 5,000 invocations stored, half of them jobs.

    python -m tests.acceptance.page.first_paint

Counted are ms from the start of the navigation, in a fresh browser profile that holds a token, to the frame
that shows the first row; and the storage requests that the page's first list costs: one to each table. Then the
list is scrolled to its end, and the longest frame while it polls is told. Bound: under 1,000 ms on two cores.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from infra.local.azurite import Azurite
from infra.local.dev.browser import found
from shared import ids
from shared.invocations.record import Line, Outcome, Record
from shared.invocations.store import TableInvocationStore
from shared.jobs.model import Job, Status
from shared.jobs.payload import pack_result, stored_body
from shared.jobs.table_store import TableJobStore
from shared.storage import Storage
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, Mode
from tests.acceptance.conftest import TOKEN, App, start_app
from tests.acceptance.page.conftest import APP, FLAGS
from tests.benchmarks.measure import median, report
from tests.support.fault_proxy import FaultProxy

STORED = 5_000
ROUNDS = 7
#: ms between two calls: an hour and a half in all.
APART = 1_000


def seed(connection: str) -> None:
    """Stores the calls as the app would: inline ones many in a row, jobs a row each."""
    storage = Storage(connection)
    newest = time.time_ns() // 1_000_000 - 1_000
    moments = [newest - number * APART for number in reversed(range(STORED))]
    lines = [Line(one.id, one.line()) for one in map(record, moments[::2])]
    for begin in range(0, len(lines), 20):
        TableInvocationStore(storage).write(lines[begin : begin + 20])
    jobs = TableJobStore(storage)
    for moment in moments[1::2]:
        jobs.create(job(moment), b"")


def record(moment: int) -> Record:
    return Record(
        id=ids.new_id(moment),
        tool_id="csv_profile",
        tool_name="csv_profile",
        outcome=Outcome.COMPLETED if moment % 7 else Outcome.FAILED,
        duration_ms=moment % 900,
        owner="default",
        mode="two-way",
        execution_mode="inline",
        prefill_summary='{"csv":"name,amount,paid\\nparts,31,true"}',
        error="" if moment % 7 else "The file has no header.",
    )


def job(moment: int) -> Job:
    identifier = ids.new_id(moment)
    came = datetime.fromtimestamp(moment / 1000, UTC)
    return Job(
        job_id=identifier,
        owner="default",
        tool_id="dataverse_query",
        tool_name="dataverse_query",
        mode=Mode.TWO_WAY,
        execution_mode=ExecutionMode.HEADLESS,
        correlation_id=ids.correlation_id(identifier),
        timeout_ms=120_000,
        max_attempts=1,
        created_at=came,
        status=Status.COMPLETED,
        attempt=1,
        started_at=came,
        completed_at=came,
        result=stored_body(pack_result(ToolResult((), {"rows": 3}))),
        prefill_summary='{"query":"accounts?$top=3"}',
        input_at="",
    )


def first_row(browser: Browser, app: App) -> dict[str, Any]:
    """One visit."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    origin = f"http://127.0.0.1:{app.port}"
    context.add_init_script(f"""
        if (location.origin === '{origin}') sessionStorage.setItem('toolbox.token', '{TOKEN}');
        const seen = new MutationObserver(() => {{
            if (!document.querySelector('[role=row][data-id]')) return;
            seen.disconnect();
            const shown = () => {{ window.firstRow = performance.now(); }};
            requestAnimationFrame(() => requestAnimationFrame(shown));
        }});
        seen.observe(document, {{ childList: true, subtree: true }});
    """)
    page = context.new_page()
    page.goto(f"{origin}/")
    page.locator("[role=row][data-id]").first.wait_for()
    page.wait_for_timeout(200)
    shown = float(page.evaluate("() => window.firstRow"))
    list_ms = float(
        page.evaluate(
            """() => performance.getEntriesByType('resource')
                .find(one => one.name.includes('/mcp/invocations')).duration"""
        )
    )
    context.close()
    return {"first_row_ms": shown, "list_request_ms": list_ms}


def scrolled(browser: Browser, app: App) -> dict[str, Any]:
    """All rows in the page at once."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.add_init_script(f"sessionStorage.setItem('toolbox.token', '{TOKEN}')")
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{app.port}/")
    page.locator("[role=row][data-id]").first.wait_for()
    started = time.perf_counter()
    while page.locator("[role=row][data-id]").count() < STORED:
        page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(20)
    loaded = time.perf_counter() - started
    longest = page.evaluate("""() => new Promise((resolve) => {
        const began = performance.now();
        let last = began, longest = 0;
        const frame = (now) => {
            longest = Math.max(longest, now - last);
            last = now;
            scrollBy(0, -400);
            if (now - began < 6000) requestAnimationFrame(frame); else resolve(longest);
        };
        requestAnimationFrame(frame);
    })""")
    context.close()
    return {"seconds_to_load_all": round(loaded, 1), "longest_frame_ms": round(longest, 1)}


@contextmanager
def own_azurite() -> Iterator[Azurite]:
    folder = Path(tempfile.mkdtemp(prefix="toolbox-paint-"))
    try:
        with Azurite.start(folder, free_ports=True) as azurite:
            yield azurite
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    with own_azurite() as azurite, FaultProxy(azurite.ports) as proxy, sync_playwright() as playwright:
        seed(azurite.connection_string)
        app = start_app(azurite.data_dir, proxy.connection_string, app_dir=APP)
        browser = playwright.chromium.launch(executable_path=found(), args=list(FLAGS))
        try:
            first_row(browser, app)  # imports, connections
            proxy.forget()
            app.http.get("/mcp/invocations?limit=50", headers={"X-MCP-Auth-Token": TOKEN})
            asked = Counter(f"{one.method} {one.operation}" for one in proxy.seen() if one.service == "table")
            visits = [first_row(browser, app) for _ in range(ROUNDS)]
            report(
                "first_paint",
                stored=STORED,
                first_row_ms=median([one["first_row_ms"] for one in visits]),
                slowest_ms=round(max(one["first_row_ms"] for one in visits), 1),
                list_request_ms=median([one["list_request_ms"] for one in visits]),
                table_requests=dict(asked),
                **scrolled(browser, app),
            )
        finally:
            browser.close()
            app.stop()


if __name__ == "__main__":
    main()
