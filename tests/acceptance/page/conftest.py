"""The page in a real browser, on the running app.

The browser is Chromium: `TOOLBOX_CHROMIUM`, or `chromium` on PATH, or the one that `playwright install` has
brought. Without one the tests fail; they are never skipped. Pictures of every view go to `TOOLBOX_PICTURES`
(default: .toolbox/page).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Playwright, expect, sync_playwright

from infra.local.dev.browser import found
from shared import ids
from shared.jobs.model import Job, Status, utc_now
from shared.jobs.payload import pack_result, stored_body
from shared.jobs.table_store import TableJobStore
from shared.jobs.timings import Ending, Timing
from shared.storage import Storage
from shared.tool.result import ToolResult
from shared.tool.spec import ExecutionMode, Mode
from tests.acceptance.conftest import ROOT, TOKEN, App, start_app

APP = Path(__file__).parent / "app"
PICTURES = Path(os.environ.get("TOOLBOX_PICTURES", ROOT / ".toolbox" / "page"))
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
#: ms. Machines that run tests are slow and busy.
PATIENCE = 20_000
ONE_WAY = {"executionMode": "headless", "mode": "one-way"}
HEADLESS = {"executionMode": "headless", "mode": "two-way"}

#: (width, height) of a tab, in px.
SIZES = {"wide": (1280, 860), "phone": (390, 844)}

type Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, new_storage: Callable[[], str]) -> Iterator[App]:
    """An app of this module's own, on a storage of its own: its list is empty at first."""
    folder = tmp_path_factory.mktemp("page")
    running = start_app(folder, new_storage(), app_dir=APP)
    yield running
    assert running.stop() == 0


# Not for the session: while Playwright is there, an event loop runs in this thread, and other tests run theirs.
@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    launched = playwright.chromium.launch(executable_path=found(), args=list(FLAGS))
    yield launched
    launched.close()


@dataclass
class Site:
    """The page in a tab, and everything that went wrong in it."""

    page: Page
    app: App
    #: Errors that are expected, as parts of their texts: the browser tells of each answer of 400 and above. The
    #: first one is the page's question whether the platform has signed somebody in.
    expected: list[str] = field(default_factory=lambda: ["401"])
    faults: list[str] = field(default_factory=list)
    #: Addresses that were asked for.
    urls: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.app.port}"

    def open(self, place: str = "#/invocations", token: str | None = TOKEN) -> Page:
        """The page, signed in as somebody who types the token would be."""
        self.page.goto(f"{self.origin}/{place}")
        if token is not None:
            field_ = self.page.get_by_label("Token", exact=True)
            field_.fill(token)
            self.page.get_by_role("button", name="Open").click()
            expect(field_).to_have_count(0)
        return self.page

    def go(self, place: str) -> Page:
        """Another view, as following a link does."""
        self.page.evaluate("place => { location.hash = place }", place)
        return self.page

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def asked(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def until(self, probe: Callable[[], bool], seconds: float = 20.0) -> None:
        """Waits for a probe while the browser's events are heard, which a plain wait would hold up."""
        deadline = time.monotonic() + seconds
        while not probe():
            assert time.monotonic() < deadline, "waited in vain"
            self.page.wait_for_timeout(20)

    def check(self) -> None:
        """Nothing went wrong that was not expected, and no script of a tool's has run."""
        odd = [fault for fault in self.faults if not any(part in fault for part in self.expected)]
        assert odd == []
        assert self.page.evaluate("() => 'hit' in window") is False


@pytest.fixture
def scheme() -> Scheme:
    return "light"


@pytest.fixture
def site(browser: Browser, app: App, scheme: Scheme) -> Iterator[Site]:
    context = browser.new_context(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": 1280, "height": 860}, locale="en-GB"
    )
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    made = Site(page, app)
    page.on("console", made.heard)
    page.on("pageerror", lambda error: made.faults.append(f"raised: {error}"))
    page.on("dialog", made.asked)
    page.on("request", lambda request: made.urls.append(request.url))
    yield made
    try:
        made.check()
    finally:
        context.close()


@pytest.fixture
def open_page(browser: Browser, app: App, scheme: Scheme) -> Iterator[Callable[[str], Site]]:
    """Tabs without the page's policy, which would keep axe-core out as it does every other script."""
    contexts = []

    def opened(size: str) -> Site:
        width, height = SIZES[size]
        context = browser.new_context(
            color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": height},
            bypass_csp=True, locale="en-GB",
        )  # fmt: skip
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        return Site(context.new_page(), app)

    yield opened
    for context in contexts:
        context.close()


@dataclass
class Steps:
    """A job of the tool `steps`, and what it is to do next."""

    folder: Path
    job_id: str
    number: int = 0

    def do(self, **step: Any) -> None:
        self.number += 1
        path = self.folder / f"{self.number}.json"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(step))
        fresh.replace(path)


@pytest.fixture
def begin(app: App, tmp_path: Path) -> Iterator[Callable[[], Steps]]:
    """Starts jobs that do what they are told. Those that are left over end with the test."""
    begun: list[Steps] = []

    def start() -> Steps:
        folder = tmp_path / f"steps-{len(begun)}"
        folder.mkdir()
        accepted = app.call("steps", {"folder": str(folder)}, ONE_WAY, {"X-MCP-Auth-Token": TOKEN})
        begun.append(Steps(folder, str(accepted["structuredContent"]["jobId"])))
        return begun[-1]

    yield start
    for one in begun:
        one.do(end="over")
    for one in begun:
        app.ended(one.job_id)


def row(page: Page, job_id: str) -> Any:
    """A call's row in the list."""
    return page.locator(f'[role=row][data-id="{job_id}"]')


def tried_twice(app: App) -> str:
    """Stores a job whose first worker was lost, and whose second one has completed it; its id."""
    began = utc_now().replace(microsecond=0) - timedelta(minutes=9)
    first, second = began + timedelta(seconds=2), began + timedelta(minutes=3)
    job_id = ids.new_id(int(began.timestamp() * 1000))
    job = Job(
        job_id=job_id,
        owner="default",
        tool_id="steps",
        tool_name="steps",
        mode=Mode.ONE_WAY,
        execution_mode=ExecutionMode.HEADLESS,
        correlation_id=ids.correlation_id(job_id),
        timeout_ms=120_000,
        max_attempts=3,
        created_at=began,
        status=Status.COMPLETED,
        attempt=2,
        started_at=second,
        completed_at=second + timedelta(seconds=95),
        attempts=(
            Timing(1, first, first + timedelta(seconds=60), Ending.LOST),
            Timing(2, second, second + timedelta(seconds=95), Ending.COMPLETED),
        ),
        prefill_summary='{"folder":"reports/2026"}',
        input_at="",
        result=stored_body(pack_result(ToolResult(structured={"pages": 4}))),
    )
    TableJobStore(Storage(app.connection)).create(job, b"")
    return job_id
