"""Windows in a real browser: windowed tools, a stand-in Dataverse, and a server that must hear nothing."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Page, expect

from tests.acceptance.conftest import TOKEN, App
from tests.acceptance.page.conftest import PATIENCE, Scheme, Site
from tests.acceptance.windows.conftest import Windows, serve

HOSTILE = Path(__file__).parent / "hostile"
ONE_WAY = {"executionMode": "windowed", "mode": "one-way"}
QUESTION = {"question": "Why?"}


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[Windows]:
    folder = tmp_path_factory.mktemp("windows")
    with serve(folder, new_storage(), HOSTILE, TOOLBOX_MAX_WAIT_MS="45000") as served:
        yield served


@pytest.fixture(scope="session")
def app(windows: Windows) -> App:
    """What `site` shows."""
    return windows.app


@pytest.fixture(autouse=True)
def over(windows: Windows) -> Iterator[None]:
    """What a test leaves waiting is cancelled: the page shows it to the next one."""
    yield
    mine = {"X-MCP-Auth-Token": TOKEN}
    asked = {"status": "pending", "limit": "100"}
    for job in windows.app.http.get("/mcp/jobs", params=asked, headers=mine).json()["jobs"]:
        windows.app.http.post(f"/mcp/jobs/{job['jobId']}/cancel", headers=mine)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Where two-way calls wait while the browser is used. They end with `over`, if not before."""
    made = ThreadPoolExecutor()
    yield made
    made.shutdown(wait=False)


@pytest.fixture
def another(browser: Browser, app: App, scheme: Scheme) -> Iterator[Callable[[], Site]]:
    """Browsers of other people: no token, no storage."""
    made: list[tuple[Site, BrowserContext]] = []

    def opened() -> Site:
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", locale="en-GB")
        context.set_default_timeout(PATIENCE)
        made.append((watched(context.new_page(), app), context))
        return made[-1][0]

    yield opened
    try:
        for site, _ in made:
            site.check()
    finally:
        for _, context in made:
            context.close()


def watched(page: Page, app: App) -> Site:
    """A tab, with an eye on what goes wrong in it."""
    site = Site(page, app)
    page.on("console", site.heard)
    page.on("pageerror", lambda error: site.faults.append(f"raised: {error}"))
    page.on("dialog", site.asked)
    page.on("request", lambda request: site.urls.append(request.url))
    return site


def launched(windows: Windows, name: str = "form", arguments: Any = None, **envelope: Any) -> tuple[str, str]:
    """(job, launch link) of a one-way call."""
    answer = windows.app.call(name, arguments or QUESTION, {**ONE_WAY, **envelope})
    assert "isError" not in answer, answer
    told = answer["structuredContent"]
    return told["jobId"], told["window"]["url"]


def tool(page: Page) -> FrameLocator:
    """The tool's page in the window that is shown."""
    return page.frame_locator("iframe.tool-frame")


def tool_frame(page: Page, job_id: str) -> Frame:
    """The same as a frame, once it has been handed its port."""
    expect(page.locator("iframe.tool-frame")).to_be_visible()
    element = page.locator("iframe.tool-frame").element_handle()
    found = element.content_frame()
    assert found is not None
    found.wait_for_url(f"**/mcp/windows/{job_id}/page/**")
    found.evaluate("() => toolboxAPI.invocation.getLaunchContext()")
    return found


def said(page: Page, words: str) -> None:
    """What the window's view says in the place of the tool's page."""
    expect(page.locator("#view .empty-title")).to_have_text(words)
    expect(page.locator("iframe")).to_have_count(0)


class Listener:
    """A server of somebody else's, which notes whatever reaches it."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        listener = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def parse_request(self) -> bool:
                understood = super().parse_request()
                listener.heard.append(self.requestline)
                return understood

            def do_GET(self) -> None:
                body = listener.page.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        #: What it answers with. Without an icon of its own the browser would ask for one, at any later time.
        self.page = '<!doctype html><link rel="icon" href="data:,"><title>Elsewhere</title>'
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def elsewhere() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.stop()


def entity(windows: Windows, job_id: str) -> tuple[Any, dict[str, Any]]:
    """(table, row) of a job as it is stored."""
    from azure.data.tables import TableClient

    from shared.jobs import keys

    table = TableClient.from_connection_string(windows.app.connection, "jobs")
    return table, dict(table.get_entity(keys.partition_key(job_id), keys.JOB_ROW))


def age_ticket(windows: Windows, job_id: str) -> None:
    """Lets an hour pass for the ticket of a job that goes on."""
    table, row = entity(windows, job_id)
    with table:
        kept = json.loads(row["window"])
        assert kept["ticket"]
        assert kept["ticketUntil"]
        kept["ticketUntil"] = "2020-01-01T00:00:00+00:00"
        names = {name: row[name] for name in ("PartitionKey", "RowKey")}
        table.update_entity({**names, "window": json.dumps(kept)})
