"""One invocation, drilled into."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.acceptance.conftest import TOKEN, App, wait_until
from tests.acceptance.page.conftest import HEADLESS, Site, Steps, row

pytestmark = pytest.mark.acceptance


def test_log_lines_show_as_they_come(site: Site, begin: Callable[[], Steps]) -> None:
    page, steps = site.open(), begin()
    row(page, steps.job_id).get_by_role("link").click()
    assert page.url.endswith(f"#/invocations/{steps.job_id}")
    log = page.get_by_role("log")
    for number in range(3):
        steps.do(log=["info", f"part {number} is read"], progress=[number * 10, f"part {number}"])
        expect(log).to_contain_text(f"part {number} is read")
        expect(page.locator("main").get_by_role("progressbar")).to_have_js_property("value", number * 10)
    steps.do(log=["error", "part 3 is torn"], progress=[60, "on"])
    expect(log).to_contain_text("part 3 is torn")
    seen = log.locator("li").all_inner_texts()
    assert [text for text in seen if "part 1 is read" in text] != []
    assert len(seen) == len(set(seen))  # no line twice

    page.get_by_label("Least level shown").select_option("3")
    expect(log.get_by_text("part 3 is torn")).to_be_visible()
    expect(log.get_by_text("part 1 is read")).to_be_hidden()
    page.get_by_label("Least level shown").select_option("0")

    steps.do(end={"pages": 4})
    expect(page.locator(".title-line")).to_contain_text("Completed")
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.locator(".tree")).to_contain_text("pages: 4")
    expect(page.get_by_role("button", name="Cancel")).to_be_hidden()


def test_following_stops_when_one_scrolls_up_and_goes_on_at_the_end(
    site: Site, begin: Callable[[], Steps]
) -> None:
    page, steps = site.open(), begin()
    site.go(f"#/invocations/{steps.job_id}")
    for number in range(60):
        steps.do(log=["info", f"line {number}"])
    steps.do(progress=[1, "lines"])
    log, follow = page.get_by_role("log"), page.get_by_label("Follow")
    expect(log.get_by_text("line 59", exact=True)).to_be_in_viewport()
    log.hover()
    page.mouse.wheel(0, -400)
    expect(follow).not_to_be_checked()
    top = log.evaluate("log => log.scrollTop")
    steps.do(log=["info", "one more"], progress=[2, "more"])
    expect(log).to_contain_text("one more")
    assert log.evaluate("log => log.scrollTop") == top
    page.get_by_role("button", name="To the end").click()
    expect(follow).to_be_checked()
    expect(log.get_by_text("one more", exact=True)).to_be_in_viewport()


def test_cancel_stops_the_job(site: Site, app: App, begin: Callable[[], Steps]) -> None:
    page, steps = site.open(), begin()
    steps.do(progress=[5, "begun"])
    site.go(f"#/invocations/{steps.job_id}")
    expect(page.locator("main")).to_contain_text("5% · begun")
    cancel = page.get_by_role("button", name="Cancel")
    cancel.click()
    page.get_by_role("button", name="No", exact=True).click()
    assert app.job(steps.job_id).json()["status"] == "in_progress"
    cancel.click()
    page.get_by_role("button", name="Yes, stop it").click()
    expect(page.locator(".title-line")).to_contain_text("Cancelled")
    expect(page.get_by_text("It was cancelled.")).to_be_visible()
    assert app.job(steps.job_id).json()["errorCode"] == "cancelled"
    page.get_by_role("link", name="← Invocations").click()
    expect(row(page, steps.job_id)).to_contain_text("Cancelled")


def test_every_part_of_a_result_is_shown(site: Site, app: App) -> None:
    app.call("report", {}, HEADLESS)
    page = site.open()
    page.locator("[role=row][data-id]").filter(has_text="report").filter(has_text="headless").first.get_by_role(
        "link"
    ).click()
    parts = page.locator(".part")
    expect(parts.filter(has_text="Data").locator(".tree")).to_contain_text("amount: 31")
    expect(parts.filter(has_text="Second line.")).to_be_visible()
    image = parts.get_by_role("img")
    wait_until(lambda: image.evaluate("img => img.naturalWidth") == 96)
    assert image.evaluate("img => img.src").startswith("blob:")
    expect(parts.locator("audio")).to_have_count(1)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download report.csv").click()
    assert caught.value.suggested_filename == "report.csv"
    assert caught.value.path().read_text() == "name,amount\nparts,31\n"
    # A page that a tool has left is bytes to keep, never something to open here.
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download page.html").click()
    assert "<script>" in caught.value.path().read_text()


def test_an_error_is_told_with_its_code_and_what_it_means(site: Site, begin: Callable[[], Steps]) -> None:
    page, steps = site.open(), begin()
    steps.do(fail="out of paper")
    site.go(f"#/invocations/{steps.job_id}")
    problem = page.locator(".note.error")
    expect(problem).to_contain_text("The tool raised an error.")
    expect(problem).to_contain_text("RuntimeError: out of paper")
    expect(problem).to_contain_text("tool_error")


def test_a_call_that_was_no_job_is_shown_too_and_can_be_linked_to(site: Site, app: App) -> None:
    app.call("many", {"name": "seen inline", "amount": 500, "colour": "red", "place": {"city": "Ulm"}})
    page = site.open()
    page.locator("[role=row][data-id]").filter(has_text="must be at most 100").first.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("The call was refused; the tool did not run.")
    expect(page.locator("main")).to_contain_text("seen inline")
    site.expected.append("404")
    page.reload()
    expect(page.locator("main")).to_contain_text("The call was refused; the tool did not run.")


def test_an_unknown_call_is_said_to_be_unknown(site: Site) -> None:
    site.expected.append("404")
    page = site.open("#/invocations/01a22b97-f14a-74c0-82d0-6bccd408b538")
    expect(page.get_by_text("There is no such call.")).to_be_visible()


def test_what_is_copied_is_a_command_without_the_token(site: Site, begin: Callable[[], Steps]) -> None:
    site.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page, steps = site.open(), begin()
    site.go(f"#/invocations/{steps.job_id}")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert f"{site.origin}/mcp/jobs/{steps.job_id}" in copied
    assert TOKEN not in copied
