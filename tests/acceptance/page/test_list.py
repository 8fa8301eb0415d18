"""The list of invocations, as somebody sees it who keeps it open."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Response, Route, expect

from shared import ids
from shared.jobs.model import utc_now
from shared.jobs.rows import stamp
from tests.acceptance.conftest import OTHER_TOKEN, TOKEN, App, wait_until
from tests.acceptance.page.conftest import HEADLESS, Site, Steps, row, tried_twice

pytestmark = pytest.mark.acceptance


def test_the_list_fills_live_while_jobs_run(site: Site, app: App, begin: Callable[[], Steps]) -> None:
    page = site.open()
    first = begin()
    expect(row(page, first.job_id)).to_contain_text("Running")
    second = begin()
    first.do(progress=[40, "column 4 of 10"])
    expect(row(page, second.job_id)).to_contain_text("Running")
    expect(row(page, first.job_id).get_by_role("progressbar")).to_have_js_property("value", 40)
    expect(row(page, first.job_id)).to_contain_text("column 4 of 10")
    ids = page.locator("[role=row][data-id]").evaluate_all("rows => rows.map(row => row.dataset.id)")
    assert ids.index(second.job_id) < ids.index(first.job_id)

    first.do(end="done")
    second.do(fail="out of paper")
    expect(row(page, first.job_id)).to_contain_text("Completed")
    expect(row(page, first.job_id).get_by_role("progressbar")).to_be_hidden()
    expect(row(page, second.job_id)).to_contain_text("Failed")
    expect(row(page, second.job_id)).to_contain_text("out of paper")


def test_a_row_stays_the_same_element_while_its_job_goes_on(site: Site, begin: Callable[[], Steps]) -> None:
    page, steps = site.open(), begin()
    link = row(page, steps.job_id).get_by_role("link")
    link.focus()
    height = row(page, steps.job_id).bounding_box()
    steps.do(
        progress=[70, "a rather long message that does not fit into the column at all, whatever the width"]
    )
    expect(row(page, steps.job_id)).to_contain_text("70%")
    # What has the focus keeps it, and nothing below is pushed about.
    expect(link).to_be_focused()
    steps.do(end="done")
    expect(row(page, steps.job_id)).to_contain_text("Completed")
    expect(link).to_be_focused()
    after = row(page, steps.job_id).bounding_box()
    assert height is not None
    assert after is not None
    assert after["height"] == height["height"]


def test_it_polls_with_etags_and_draws_nothing_when_nothing_has_changed(site: Site) -> None:
    page = site.open()
    answers: list[tuple[str | None, int]] = []

    def told(answer: Response) -> None:
        if "/mcp/invocations" in answer.url:
            answers.append((answer.request.headers.get("if-none-match"), answer.status))

    page.on("response", told)
    expect(page.locator("#live")).to_contain_text("Live")
    site.until(lambda: sum(status == 304 for _, status in answers) >= 2)
    assert all(tag is not None for tag, status in answers if status == 304)


def test_filters_ask_the_server_and_stand_in_the_address(site: Site, app: App) -> None:
    app.call("report", {})
    app.call("nasty", {"how": "raise"}, HEADLESS)
    page = site.open()
    rows = page.locator("[role=row][data-id]")
    expect(rows.filter(has_text="report").first).to_be_visible()
    page.get_by_label("Status").select_option("failed")
    expect(rows.filter(has_text="report")).to_have_count(0)
    expect(rows.filter(has_text="Failed").first).to_be_visible()
    assert "status=failed" in page.url
    page.reload()
    expect(page.get_by_label("Status")).to_have_value("failed")
    expect(rows.filter(has_text="Completed")).to_have_count(0)
    page.get_by_role("button", name="Clear filters").click()
    expect(rows.filter(has_text="report").first).to_be_visible()
    assert "status" not in page.url


def test_a_row_goes_when_its_status_is_no_longer_the_one_asked_for(
    site: Site, begin: Callable[[], Steps]
) -> None:
    page, goes_on, ends = site.open("#/invocations?status=in_progress"), begin(), begin()
    for steps in (goes_on, ends):
        expect(row(page, steps.job_id)).to_contain_text("Running")
    ends.do(end="done")
    expect(row(page, ends.job_id)).to_have_count(0)
    expect(row(page, goes_on.job_id)).to_contain_text("Running")
    goes_on.do(fail="out of paper")
    expect(row(page, goes_on.job_id)).to_have_count(0)
    expect(page.get_by_text("No call fits these filters.")).to_be_visible()


def test_calls_that_nobody_waits_for_can_be_filtered(site: Site, app: App, begin: Callable[[], Steps]) -> None:
    app.call("report", {}, HEADLESS)
    steps = begin()
    page = site.open()
    reports = page.locator("[role=row][data-id]").filter(
        has=page.get_by_role("link", name="report", exact=True)
    )
    mode = page.get_by_label("Mode", exact=True)
    expect(reports.first).to_be_visible()
    mode.select_option(label="one-way (nobody waits)")
    expect(reports).to_have_count(0)
    expect(row(page, steps.job_id)).to_contain_text("headless, one-way")
    assert page.url.endswith("#/invocations?mode=one-way")
    page.reload()
    expect(mode).to_have_value("one-way")
    expect(row(page, steps.job_id)).to_be_visible()
    expect(reports).to_have_count(0)
    mode.select_option(label="two-way (the caller waits)")
    expect(reports.first).to_be_visible()
    expect(row(page, steps.job_id)).to_have_count(0)
    mode.select_option("inline")
    expect(page).to_have_url(re.compile(r"#/invocations\?executionMode=inline$"))


@pytest.mark.parametrize("width", [390, 1000])
def test_where_there_is_little_room_the_second_line_tells_owner_and_attempt(
    site: Site, app: App, begin: Callable[[], Steps], width: int
) -> None:
    twice, once = tried_twice(app), begin()
    # The tool's own list: other tests leave many newer calls.
    page = site.open("#/invocations?tool=steps")
    both = row(page, twice).get_by_text("attempt 2 · default")
    expect(row(page, twice).locator(".owner")).to_have_text("default")
    expect(row(page, twice).locator(".attempt")).to_have_text("2")
    expect(both).to_be_hidden()
    page.set_viewport_size({"width": width, "height": 844})
    expect(both).to_be_visible()
    expect(row(page, twice).locator(".owner")).to_be_hidden()
    expect(row(page, once.job_id).get_by_text("default", exact=True)).to_have_count(2)
    for job_id in (twice, once.job_id):
        line, whole = row(page, job_id).locator(".also").bounding_box(), row(page, job_id).bounding_box()
        assert line is not None
        assert whole is not None
        assert line["x"] + line["width"] <= whole["x"] + whole["width"]


def test_a_text_search_says_what_it_has_looked_at(site: Site, app: App) -> None:
    app.call("many", {"name": "a needle in here", "amount": 1, "colour": "red", "place": {"city": "Ulm"}})
    page = site.open()
    expect(page.locator("[role=row][data-id]").filter(has_text="needle").first).to_be_visible()
    page.get_by_role("searchbox").fill("NEEDLE")
    expect(page.get_by_text("1,000 at most")).to_be_visible()
    expect(page.locator("[role=row][data-id]")).to_have_count(1)
    page.get_by_role("searchbox").fill("there is no such call")
    expect(page.get_by_text("No call fits these filters.")).to_be_visible()


def test_a_text_search_looks_at_the_newest_thousand_and_no_further(site: Site) -> None:
    """However many the pages bring: the last one goes beyond."""
    now = utc_now()
    newest = int(now.timestamp() * 1000)
    calls = [
        {
            "id": ids.new_id(newest - place * 1000),
            "toolName": "routed",
            "status": "completed",
            "executionMode": "inline",
            "mode": "two-way",
            "createdAt": stamp(now),
            "durationMs": 5,
            "inputSummary": f"needle {place}" if place in (1_000, 1_001, 1_020) else "hay",
        }
        for place in range(1, 1_201)
    ]

    def answer(route: Route) -> None:
        asked = parse_qs(urlsplit(route.request.url).query)
        begin, limit = int(asked.get("cursor", ["0"])[0]), int(asked["limit"][0])
        route.fulfill(json={"invocations": calls[begin : begin + limit], "cursor": f"{begin + limit}"})

    site.page.route("**/mcp/invocations?**", answer)
    page = site.open("#/invocations?text=needle")
    said = "1 match among the newest 1,000 calls; a search looks at 1,000 at most."
    expect(page.get_by_text(said)).to_be_visible()
    rows = page.locator("[role=row][data-id]")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("needle 1000")
    expect(page.get_by_role("button", name="Load older calls")).to_be_hidden()


def test_older_calls_come_as_one_scrolls_and_new_ones_do_not_push_them_away(site: Site, app: App) -> None:
    for number in range(130):
        app.call("many", {"name": f"call {number}", "amount": 1, "colour": "red", "place": {"city": "Ulm"}})

    def stored() -> bool:
        answer = app.http.get("/mcp/invocations?limit=1", headers={"X-MCP-Auth-Token": TOKEN}).json()
        return "call 129" in str(answer)

    wait_until(stored)
    page = site.open()
    rows = page.locator("[role=row][data-id]")
    expect(rows.filter(has_text='"call 129"')).to_be_visible()
    for _ in range(20):
        page.mouse.wheel(0, 5_000)
        page.wait_for_timeout(50)
        if rows.filter(has_text='"call 0"').count():
            break
    oldest = rows.filter(has_text='"call 0"')
    oldest.scroll_into_view_if_needed()
    expect(oldest).to_be_visible()
    before = oldest.bounding_box()

    app.call("many", {"name": "one more", "amount": 1, "colour": "red", "place": {"city": "Ulm"}})
    news = page.get_by_role("button", name="1 new call")
    expect(news).to_be_visible()
    expect(rows.filter(has_text="one more")).to_have_count(0)
    assert oldest.bounding_box() == before
    news.click()
    expect(rows.first).to_contain_text("one more")
    expect(news).to_be_hidden()


def test_another_owners_calls_are_not_shown(site: Site, app: App) -> None:
    app.call("nasty", {"words": "a secret of ana"}, HEADLESS, {"X-MCP-Auth-Token": OTHER_TOKEN})
    app.call("nasty", {"words": "a call of default"}, HEADLESS, {"X-MCP-Auth-Token": TOKEN})
    page = site.open()
    expect(page.locator("[role=row][data-id]").filter(has_text="a call of default")).to_be_visible()
    expect(page.get_by_text("a secret of ana")).to_have_count(0)


def test_what_is_shown_is_called_stale_when_the_app_does_not_answer(site: Site) -> None:
    page = site.open()
    site.expected += ["net::ERR_FAILED"]
    expect(page.locator("#live")).to_contain_text("Live")
    page.route("**/mcp/**", lambda route: route.abort())
    expect(page.locator("#live")).to_contain_text("Not up to date")
    expect(page.locator("#stale")).to_contain_text("may be out of date")
    page.unroute("**/mcp/**")
    expect(page.locator("#stale")).to_be_hidden()
    expect(page.locator("#live")).to_contain_text("Live")


def test_a_hidden_page_asks_seldom_and_at_once_when_it_is_seen_again(site: Site) -> None:
    page = site.open()
    expect(page.locator("#live")).to_contain_text("Live")
    hide = """state => {
        Object.defineProperty(document, 'visibilityState', { get: () => state, configurable: true });
        Object.defineProperty(document, 'hidden', { get: () => state === 'hidden', configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""

    def asked() -> int:
        return sum("/mcp/invocations" in url for url in site.urls)

    page.evaluate(hide, "hidden")
    expect(page.locator("#live")).to_contain_text("Paused")
    page.wait_for_timeout(2_500)  # the round that was due may still run
    before = asked()
    page.wait_for_timeout(4_500)  # two rounds of a page that is seen
    assert asked() == before
    page.evaluate(hide, "visible")
    site.until(lambda: asked() > before, seconds=2)
    expect(page.locator("#live")).to_contain_text("Live")
