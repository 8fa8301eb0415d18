"""One invocation, drilled into."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Route, expect

from shared import ids
from shared.jobs.model import utc_now
from shared.jobs.rows import stamp
from tests.acceptance.conftest import TOKEN, App, wait_until
from tests.acceptance.page.conftest import HEADLESS, Site, Steps, row, tried_twice

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
    """A link to it costs one question, however many calls came since."""
    app.call("many", {"name": "seen inline", "amount": 500, "colour": "red", "place": {"city": "Ulm"}})
    page = site.open()
    page.locator("[role=row][data-id]").filter(has_text="must be at most 100").first.get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("The call was refused; the tool did not run.")
    expect(page.locator("main")).to_contain_text("seen inline")
    call = page.url.rpartition("/")[2]
    site.urls.clear()
    # Nothing is answered with 404, and no older page of the list is read.
    page.reload()
    expect(page.locator("main")).to_contain_text("The call was refused; the tool did not run.")
    expect(page.locator("main")).to_contain_text("seen inline")
    asked = [url for url in site.urls if "/mcp/invocations" in url or "/mcp/jobs" in url]
    assert [url for url in asked if url.endswith(call)] == [f"{site.origin}/mcp/invocations/{call}"]
    assert [url for url in asked if "cursor" in url or "/mcp/jobs" in url] == []


def test_a_link_to_a_job_shows_whose_it_is_and_what_it_was_given(
    site: Site, begin: Callable[[], Steps]
) -> None:
    steps = begin()
    site.page.route("**/mcp/invocations?**", lambda route: route.fulfill(json={"invocations": []}))
    page = site.open(f"#/invocations/{steps.job_id}")
    facts = page.get_by_role("complementary", name="Facts")
    expect(facts).to_contain_text("Ownerdefault")
    expect(page.get_by_role("region", name="Input")).to_contain_text(steps.folder.name)


def test_a_call_that_is_not_stored_yet_is_waited_for(site: Site, app: App) -> None:
    site.expected.append("404")
    job_id = app.call("nasty", {}, HEADLESS)["_meta"]["toolbox/jobId"]
    fresh = ids.new_id()
    told = app.http.get(f"/mcp/invocations/{job_id}", headers={"X-MCP-Auth-Token": TOKEN}).json()
    answers = [404, 200]

    def answer(route: Route) -> None:
        status = answers.pop(0) if len(answers) > 1 else answers[0]
        inline = {"id": fresh, "toolName": "late", "status": "completed", "createdAt": told["createdAt"]}
        route.fulfill(status=status, json=inline if status == 200 else {"error": "Invocation not found"})

    site.page.route(f"**/mcp/invocations/{fresh}", answer)
    page = site.open(f"#/invocations/{fresh}")
    expect(page.get_by_text("Loading…")).to_be_visible()
    expect(page.get_by_role("heading", name="late")).to_be_visible()


def test_an_inline_call_that_has_left_a_file_is_followed_to_its_end(site: Site) -> None:
    """It may run for minutes yet: the record of its file does not say how it goes, and its own comes last."""
    began = utc_now() - timedelta(minutes=1)
    call = ids.new_id(int(began.timestamp() * 1000))
    known = {"id": call, "jobId": call, "executionMode": "inline", "mode": "two-way", "createdAt": stamp(began)}
    answers = [
        {**known, "status": "completed", "timeoutMs": 210_000},
        {**known, "status": "failed", "error": "out of paper"},
    ]

    def answer(route: Route) -> None:
        route.fulfill(json=answers.pop(0) if len(answers) > 1 else answers[0])

    site.page.route(f"**/mcp/invocations/{call}", answer)
    page = site.open(f"#/invocations/{call}")
    expect(page.locator("main")).to_contain_text("out of paper")


def test_a_one_way_inline_call_is_a_job_with_its_log(site: Site, app: App) -> None:
    told = app.call("report", {}, {"executionMode": "inline", "mode": "one-way"})["structuredContent"]
    page = site.open(f"#/invocations/{told['jobId']}")
    expect(page.locator(".title-line")).to_contain_text("Completed")
    expect(page.get_by_role("log")).to_contain_text("running (attempt 1 of 1)")
    expect(page.locator(".tree")).to_contain_text("title: Quarter")


def test_times_of_every_attempt_are_told(site: Site, app: App) -> None:
    """The row tells them: its log may have lost the lines of the first attempts long ago."""
    job_id = tried_twice(app)
    page = site.open(f"#/invocations/{job_id}")
    rows = page.get_by_role("region", name="Times of the attempts").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text(re.compile(r"^1Worker lost.*2\.0 s1 min$"))
    # It waited from the end of the first one's lease on.
    expect(rows.nth(2)).to_contain_text(re.compile(r"^2Completed.*1 min 58 s1 min 35 s$"))


def test_times_of_an_older_release_are_told_as_far_as_they_are_known(
    site: Site, begin: Callable[[], Steps], app: App
) -> None:
    steps = begin()
    steps.do(end="done")
    app.ended(steps.job_id)

    def older(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        assert told.pop("attempts")
        route.fulfill(response=answer, json=told)

    site.page.route(f"**/mcp/jobs/{steps.job_id}**", older)
    page = site.open(f"#/invocations/{steps.job_id}")
    facts = page.get_by_role("complementary", name="Facts")
    for fact in ("Queued for", "Started", "Ran for"):
        expect(facts.get_by_text(fact, exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Attempts")).to_be_hidden()


def test_files_that_a_result_names_can_be_kept_and_no_other_address_gets_the_token(
    site: Site, app: App
) -> None:
    answer = app.call("files", {}, HEADLESS)
    job_id = answer["_meta"]["toolbox/jobId"]
    page = site.open(f"#/invocations/{job_id}")
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url) if "x-mcp-auth-token" in one.headers else None)
    buttons = page.get_by_role("button", name="Download")
    expect(buttons).to_have_count(2)
    expect(page.locator(".file").filter(has_text="rows.csv")).to_contain_text("text/csv, 21 B")
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download rows.csv").click()
    assert caught.value.suggested_filename == "rows.csv"
    assert caught.value.path().read_text() == "name,amount\nparts,31\n"
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download notes.txt").click()
    assert caught.value.path().read_text() == "all is well"
    files = [url for url in sent if "artifacts" in url]
    assert files == [f"{site.origin}/mcp/jobs/{job_id}/artifacts/{name}" for name in ("rows.csv", "notes.txt")]
    # What only looks like a file of this job is text: there is nothing to click.
    main = page.locator("main")
    expect(main.get_by_text("another job's")).to_be_visible()
    links = main.get_by_role("link").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#/")] == []


def test_a_call_that_is_not_heard_of_is_called_stale_though_the_list_answers(
    site: Site, begin: Callable[[], Steps]
) -> None:
    """The list's rounds go on, and say nothing about the call that is looked at."""
    site.expected += ["net::ERR_FAILED"]
    steps = begin()
    page = site.open(f"#/invocations/{steps.job_id}")
    expect(page.locator(".title-line")).to_contain_text("Running")
    expect(page.locator("#live")).to_contain_text("Live")
    page.route("**/mcp/jobs/**", lambda route: route.abort())
    stale = page.locator("#stale")
    expect(stale).to_contain_text("may be out of date")
    answered: list[str] = []
    page.on("response", lambda one: answered.append(one.url) if "/mcp/invocations" in one.url else None)
    page.evaluate("""() => {
        window.hidden = 0;
        const bar = document.getElementById('stale');
        new MutationObserver(() => { hidden += bar.hidden; }).observe(bar, { attributes: true });
    }""")
    site.until(lambda: len(answered) >= 2)
    expect(stale).to_be_visible()
    expect(page.locator("#live")).to_contain_text("Not up to date")
    assert page.evaluate("() => window.hidden") == 0
    # What another view shows does not suffer from it.
    site.go("#/invocations")
    expect(row(page, steps.job_id)).to_contain_text("Running")
    expect(page.locator("#live")).to_contain_text("Live")
    expect(stale).to_be_hidden()


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
