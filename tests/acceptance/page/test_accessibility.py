"""Every view: no serious fault that axe-core finds, by day and by night; and a picture of it to look at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from shared import ids
from tests.acceptance.conftest import App
from tests.acceptance.page.conftest import (
    AXE,
    HEADLESS,
    ONE_WAY,
    PICTURES,
    SIZES,
    Scheme,
    Site,
    Steps,
    row,
    tried_twice,
)

pytestmark = pytest.mark.acceptance

VIEWS = (
    "sign-in", "invocations", "invocations-empty", "running", "result", "files", "attempts", "failed",
    "rejected", "missing", "tools", "tool", "tool-faults", "tool-result", "servers", "numbers", "connect",
    "stale",
)  # fmt: skip


@pytest.fixture
def scene(app: App, begin: Callable[[], Steps]) -> dict[str, str]:
    """Something of every kind to look at: view -> place."""
    app.call("many", {"name": "Ulm", "amount": 500, "colour": "red", "place": {"city": "Ulm"}})
    failed = app.call("nasty", {"how": "raise"}, ONE_WAY)["structuredContent"]["jobId"]
    app.ended(failed)
    done = app.call("report", {}, HEADLESS)["_meta"]
    job_id = next(value for name, value in done.items() if name.endswith("jobId"))
    files = app.call("files", {}, HEADLESS)["_meta"]["toolbox/jobId"]
    steps = begin()
    for number, level in enumerate(("debug", "info", "info", "warning", "error", "info")):
        steps.do(log=[level, f"Part {number} of the file was read, with 4,200 of its rows in order"])
    steps.do(progress=[42, "reading rows 4,200 of 10,000"])
    return {
        "running": f"#/invocations/{steps.job_id}",
        "result": f"#/invocations/{job_id}",
        "failed": f"#/invocations/{failed}",
        "files": f"#/invocations/{files}",
        "attempts": f"#/invocations/{tried_twice(app)}",
        "missing": f"#/invocations/{ids.new_id(1_780_000_000_000)}",
        "tool": "#/tools/many",
        "tool-faults": "#/tools/many",
        "tool-result": "#/tools/report",
        "invocations-empty": "#/invocations?text=there+is+no+such+call",
        "stale": "#/invocations",
        "sign-in": "",
    }


def prepare(view: str, page: Page) -> None:
    """Brings a view to where there is something to see."""
    ready = {
        "invocations": "[data-running] progress",
        "running": ".log li[data-rank='3']",
        "result": "img.media",
        "files": ".file",
        "attempts": "tbody tr",
        "missing": ".empty-title",
        "failed": ".note.error",
        "rejected": ".note.error",
        "tools": ".card.link",
        "numbers": ".bars rect",
        "connect": ".configs",
        "servers": ".empty, .cards",
        "invocations-empty": ".empty-title",
    }
    if view == "rejected":
        page.locator("[role=row][data-id]").filter(has_text="Rejected").first.get_by_role("link").click()
    if view == "tool-faults":
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_text("fields to mend")).to_be_visible()
    if view == "tool-result":
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator("img.media")).to_be_visible()
    if view == "stale":
        expect(page.locator("[role=row][data-id]").first).to_be_visible()
        page.route("**/mcp/**", lambda route: route.abort())
        # A minute later by the page's clock; that it takes a while, test_list looks at.
        page.clock.set_fixed_time(datetime.now(UTC) + timedelta(minutes=1))
        expect(page.locator("#stale")).to_be_visible()
    if view in ready:
        expect(page.locator(ready[view]).first).to_be_visible()


def faults(page: Page) -> list[str]:
    """What axe-core calls serious or critical."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    ran = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    found: list[dict[str, Any]] = ran["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_view_has_a_serious_fault(
    scene: dict[str, str], open_page: Callable[[str], Site], scheme: Scheme, size: str
) -> None:
    site = open_page(size)
    PICTURES.mkdir(parents=True, exist_ok=True)
    wrong: dict[str, list[str]] = {}
    page = site.open("", token=None)
    for view in VIEWS:
        if view == "invocations":
            site.open("")
        if view != "sign-in":
            site.go(scene.get(view, f"#/{view if view != 'rejected' else 'invocations'}"))
        prepare(view, page)
        if found := faults(page):
            wrong[view] = found
        overflow = page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if overflow > 0:
            wrong.setdefault(view, []).append(f"wider than the window by {overflow} px")
        picture(page, PICTURES / f"{view}-{size}-{scheme}.png")
    assert wrong == {}


def picture(page: Page, path: Path) -> None:
    # Rows out of sight are not drawn, of which a picture of the whole page would have many.
    # By script, since the page's policy takes no style from elsewhere.
    page.evaluate("""() => {
        const drawn = new CSSStyleSheet();
        drawn.insertRule('.calls .row { content-visibility: visible !important }');
        document.adoptedStyleSheets = [drawn];
    }""")
    page.screenshot(path=path, full_page=True)
    assert path.stat().st_size > 5_000


def test_the_page_can_be_used_with_the_keyboard_alone(site: Site, begin: Callable[[], Steps]) -> None:
    steps = begin()
    page = site.open()
    expect(row(page, steps.job_id)).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.locator(".skip").focus()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    assert page.url.endswith("#/invocations")  # the skip link is no place
    row(page, steps.job_id).get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="steps")).to_be_focused()
    steps.do(progress=[10, "on"])
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible()
    cancel.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Yes, stop it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(cancel).to_be_focused()
    page.go_back()
    expect(page.get_by_role("heading", name="Invocations")).to_be_focused()


def test_changes_are_said_and_progress_is_not(site: Site, begin: Callable[[], Steps]) -> None:
    page, steps = site.open(), begin()
    site.go(f"#/invocations/{steps.job_id}")
    expect(page.locator(".title-line")).to_contain_text("Running")
    page.evaluate("""() => {
        window.said = [];
        const region = document.getElementById('said');
        const heard = () => region.textContent && said.push(region.textContent);
        new MutationObserver(heard).observe(region, { childList: true });
    }""")
    for number in range(1, 4):
        steps.do(log=["info", f"line {number}"], progress=[number, f"step {number}"])
        expect(page.get_by_role("log")).to_contain_text(f"line {number}")
    steps.do(end="done")
    expect(page.locator("#said")).to_have_text("steps: Completed")
    assert page.evaluate("() => said") == ["steps: Completed"]
