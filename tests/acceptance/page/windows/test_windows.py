"""An agent calls a tool windowed, and a person answers in the browser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mcp
import pytest
from playwright.sync_api import Frame, Page, expect

from infra.local.dataverse.faults import Fault, Kind
from tests.acceptance.conftest import TOKEN, App
from tests.acceptance.page.conftest import Site, row
from tests.acceptance.page.windows.conftest import QUESTION, launched, said, tool, tool_frame, watched
from tests.acceptance.windows.conftest import Windows

pytestmark = pytest.mark.acceptance

THANKS = "Thank you. The answer has been sent."
NO_ANSWER = "Closed without an answer."
UNFIT = "422"


def pick_by_agent(app: App, arguments: dict[str, Any]) -> Any:
    """A call of the picker by an MCP client that checks what it gets against the listed schema. Blocks."""

    async def main() -> Any:
        async with mcp.Client(app.endpoint) as client:
            await client.list_tools()
            how = {"executionMode": "windowed", "mode": "two-way", "connectionName": "Dev"}
            return await client.call_tool("entity-picker", {**arguments, "__pptb": how})

    return asyncio.run(main())


def ids(windows: Windows) -> dict[str, str]:
    """The accounts of the stand-in, name -> id."""
    dev = windows.dataverse.environment("dev")
    return {str((dev.record("account", one) or {})["name"]): one for one in dev.ids("account")}


def open_from_banner(page: Page, name: str) -> str:
    """Opens the one window that waits for a person; its job."""
    banner = page.get_by_role("region", name="Waiting for you")
    expect(banner).to_have_text(re.compile(f"{name} is waiting for you"))
    banner.get_by_role("link", name="Open").click()
    expect(page).to_have_url(re.compile("#/windows/"))
    return page.url.rpartition("/")[2]


def test_a_pick_in_the_browser_comes_back_to_the_client(
    site: Site, windows: Windows, pool: ThreadPoolExecutor
) -> None:
    page = site.open()
    expect(page.locator("#live")).to_contain_text("Live")
    page.evaluate("() => { window.stayed = true }")
    call = pool.submit(pick_by_agent, windows.app, {"entityName": "account"})
    job_id = open_from_banner(page, "entity-picker")
    assert page.evaluate("() => window.stayed") is True  # it came by itself
    expect(page.get_by_text("The caller waits for your answer.")).to_be_visible()
    expect(tool(page).get_by_role("heading", name="Account: pick one")).to_be_visible()
    search = tool(page).get_by_role("searchbox")
    search.fill("00007")
    search.press("Enter")
    expect(tool(page).get_by_text("1 record.")).to_be_visible()
    use = tool(page).get_by_role("button", name="Use it")
    expect(use).to_be_disabled()
    tool(page).get_by_label("Account 00007").check()
    use.click()
    said(page, THANKS)
    result = call.result()
    assert not result.is_error
    assert result.structured_content == {
        "selectedId": ids(windows)["Account 00007"],
        "selectedName": "Account 00007",
    }
    page.get_by_role("link", name="The invocation").click()
    expect(page.locator(".title-line")).to_contain_text("Completed")
    site.go("#/invocations")
    expect(row(page, job_id)).to_contain_text("Completed")
    expect(page.get_by_role("region", name="Waiting for you")).to_be_hidden()
    assert page.evaluate("() => window.stayed") is True


def tab_to(page: Page, wanted: Callable[[], bool], key: str = "Tab") -> None:
    """Presses Tab until what is wanted has the focus."""
    for _ in range(40):
        if wanted():
            return
        page.keyboard.press(key)
    raise AssertionError("the keyboard does not get there")


def focused(where: Page | Frame, script: str) -> bool:
    """Whether `script`, of the element with the focus `it`, holds there."""
    return bool(where.evaluate(f"() => document.hasFocus() && (it => {script})(document.activeElement)"))


def test_several_are_picked_with_the_keyboard_alone(
    site: Site, windows: Windows, pool: ThreadPoolExecutor
) -> None:
    page = site.open()
    call = pool.submit(pick_by_agent, windows.app, {"entityName": "account", "allowMultiSelect": True})
    expect(page.get_by_role("region", name="Waiting for you")).to_be_visible()
    # What waits stands above the view, which has the focus.
    tab_to(page, lambda: focused(page, "it.matches('#waiting a')"), "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/windows/"))
    frame = tool_frame(page, page.url.rpartition("/")[2])
    expect(tool(page).get_by_text("12 records.")).to_be_visible()
    tab_to(page, lambda: focused(frame, "it.id === 'search'"))
    page.keyboard.type("0000")
    page.keyboard.press("Enter")
    expect(tool(page).get_by_text("9 records.")).to_be_visible()
    for name in ("Account 00002", "Account 00004"):
        tab_to(page, lambda name=name: focused(frame, f"it.dataset.name === '{name}'"))  # type: ignore[misc]
        page.keyboard.press("Space")
    expect(tool(page).get_by_text("2 picked")).to_be_visible()
    tab_to(page, lambda: focused(frame, "it.id === 'use'"))
    page.keyboard.press("Enter")
    said(page, THANKS)
    names = ["Account 00002", "Account 00004"]
    picked = [ids(windows)[name] for name in names]
    assert call.result().structured_content == {"selectedIds": picked, "selectedNames": names}


def test_the_picker_says_what_failed_and_can_try_again(site: Site, windows: Windows) -> None:
    site.expected.append(UNFIT)
    windows.dataverse.arm(
        Fault(Kind.ERROR, path="EntityDefinitions", times=1, status=403, message="Not today.")
    )
    job_id, _ = launched(windows, "entity-picker", {"entityName": "contact"}, connectionName="Dev")
    page = site.open(f"#/windows/{job_id}")
    expect(tool(page).get_by_role("alert")).to_contain_text("Not today.")
    expect(tool(page).get_by_role("button", name="Use it")).to_be_disabled()
    tool(page).get_by_role("button", name="Search").click()
    expect(tool(page).get_by_role("heading", name="Contact: pick one")).to_be_visible()
    expect(tool(page).get_by_role("alert")).to_be_hidden()


def close_by_page(page: Page) -> None:
    """As the app's page offers it, asking back."""
    page.get_by_role("button", name="Close without an answer").click()
    sure = page.get_by_role("group", name="Close without an answer?")
    expect(sure).to_contain_text("The caller gets no answer.")
    sure.get_by_role("button", name="Go on").click()
    expect(tool(page).get_by_role("searchbox")).to_be_visible()
    page.get_by_role("button", name="Close without an answer").click()
    page.keyboard.press("Enter")  # what closes it has the focus


def close_by_tool(page: Page) -> None:
    tool(page).get_by_role("button", name="Cancel").click()


@pytest.mark.parametrize("close", [close_by_page, close_by_tool])
def test_closing_without_data_is_no_result(
    site: Site, windows: Windows, pool: ThreadPoolExecutor, close: Callable[[Page], None]
) -> None:
    page = site.open()
    call = pool.submit(pick_by_agent, windows.app, {"entityName": "account"})
    job_id = open_from_banner(page, "entity-picker")
    tool_frame(page, job_id)
    close(page)
    said(page, NO_ANSWER)
    result = call.result()
    assert not result.is_error
    assert result.structured_content == {
        "status": "no_result",
        "executionMode": "windowed",
        "correlationId": f"mcp-{job_id}",
        "message": "User did not complete the action — the tool window was closed without returning data.",
    }
    site.go("#/invocations")
    expect(row(page, job_id)).to_contain_text("No result")


def test_two_windows_at_once_do_not_mix(site: Site, windows: Windows, pool: ThreadPoolExecutor) -> None:
    first = site.open()
    second = watched(first.context.new_page(), windows.app)
    second.open()
    calls, jobs = {}, {}
    for name in ("form", "other"):
        calls[name] = windows.begin(pool, name, {"question": f"Question of {name}"})
        jobs[name] = windows.waiting(name)
    for tab, name in ((first, "form"), (second.page, "other")):
        tab.bring_to_front()
        banner = tab.get_by_role("region", name="Waiting for you")
        expect(banner.get_by_role("link", name="Open")).to_have_count(2)
        banner.locator(f"a[href='#/windows/{jobs[name]}']").click()
        expect(tool(tab).locator("#fault")).to_have_text(f"Question of {name}")
        # The other one still waits, and is offered.
        expect(banner.get_by_role("link", name="Open")).to_have_count(1)
    for tab, name in ((second.page, "other"), (first, "form")):
        tab.bring_to_front()  # clicks do not reach a frame of a tab that is behind another
        tool(tab).locator("#answer").fill(f"Answer of {name}")
        tool(tab).get_by_role("button", name="Send").click()
        said(tab, THANKS)
        assert calls[name].result()["structuredContent"] == {"answer": f"Answer of {name}"}
    second.check()


def test_what_does_not_fit_is_told_in_the_window_and_can_be_corrected(
    site: Site, windows: Windows, pool: ThreadPoolExecutor
) -> None:
    site.expected.append(UNFIT)
    page = site.open()
    call = windows.begin(pool, "form", QUESTION)
    job_id = open_from_banner(page, "form")
    tool_frame(page, job_id)
    tool(page).locator("#answer").fill("x")
    tool(page).get_by_role("button", name="Send").click()
    expect(tool(page).locator("#fault")).to_contain_text("$.answer")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The answer was not taken; it can be corrected.")
    expect(alert).to_contain_text("$.answer")
    assert windows.app.job(job_id).json()["status"] == "pending"
    tool(page).locator("#answer").fill("because")
    tool(page).get_by_role("button", name="Send").click()
    said(page, THANKS)
    expect(alert).to_have_count(0)
    assert call.result()["structuredContent"] == {"answer": "because"}


def test_a_page_that_returns_twice_at_once_sends_one_answer(site: Site, windows: Windows) -> None:
    """Both calls hear what came of the first: a form that is sent by a key and a click at once does so."""
    site.expected.append(UNFIT)
    job_id, _ = launched(windows)
    page = site.open(f"#/windows/{job_id}")
    frame = tool_frame(page, job_id)
    script = """([first, second]) => Promise.race([
        Promise.allSettled([first, second].map((answer) => toolboxAPI.invocation.returnData({ answer })))
            .then((both) => both.map(({ status, reason }) => [status, reason?.message ?? ''])),
        new Promise((resolve) => setTimeout(resolve, 8000, 'one of the two was never answered')),
    ])"""
    one, other = frame.evaluate(script, ["x", "y"])
    assert one == other
    assert one[0] == "rejected"
    assert "$.answer" in one[1]
    assert sum(url.endswith("/return") for url in site.urls) == 1
    # The page is gone once it is answered, so that nothing is waited for in it.
    frame.evaluate(f"(both) => {{ ({script})(both); }}", ["first", "second"])
    said(page, THANKS)
    assert windows.app.ended(job_id)["result"] == {"answer": "first"}
    assert sum(url.endswith("/return") for url in site.urls) == 2


def test_a_window_that_has_ended_leaves_a_filtered_list_and_the_banner(site: Site, windows: Windows) -> None:
    job_id, _ = launched(windows)
    page = site.open("#/invocations?status=pending")
    expect(row(page, job_id)).to_contain_text("Waiting for you")
    banner = page.get_by_role("region", name="Waiting for you")
    expect(banner.locator(f"a[href='#/windows/{job_id}']")).to_be_visible()
    session = windows.open_as_owner(job_id)["session"]
    assert windows.gives(session, job_id, {"answer": "elsewhere"}).status_code == 200
    expect(row(page, job_id)).to_have_count(0)
    expect(banner.locator(f"a[href='#/windows/{job_id}']")).to_have_count(0)


def test_later_answers_are_ignored(site: Site, windows: Windows) -> None:
    """The same window in two tabs: the first answer counts, and the second person is told."""
    site.expected.append("409")
    job_id, _ = launched(windows)
    tabs = [site.open(f"#/windows/{job_id}"), site.page.context.new_page()]
    other = watched(tabs[1], windows.app)
    other.expected.append("409")
    other.open(f"#/windows/{job_id}")
    for tab in tabs:
        expect(tool(tab).locator("#fault")).to_have_text("Why?")
        expect(tab.get_by_text("Nobody waits for an answer; one may be given.")).to_be_visible()
    # One right after the other: a tab that has heard of the end takes its form away. Which comes first is open.
    for tab, answer in zip(tabs, ("one", "other"), strict=True):
        tab.bring_to_front()
        tool(tab).locator("#answer").fill(answer)
        tool(tab).get_by_role("button", name="Send").click()
    counted = windows.app.ended(job_id)["result"]["answer"]
    assert counted in ("one", "other")
    first, second = tabs if counted == "one" else reversed(tabs)
    said(first, THANKS)
    said(second, "This call has ended already.")
    other.check()


def test_a_window_that_ends_elsewhere_takes_nothing_more(site: Site, windows: Windows) -> None:
    site.expected.append("409")
    job_id, _ = launched(windows)
    page = site.open(f"#/windows/{job_id}")
    tool(page).locator("#answer").fill("too late")
    windows.app.http.post(f"/mcp/jobs/{job_id}/cancel", headers={"X-MCP-Auth-Token": TOKEN})
    tool(page).get_by_role("button", name="Send").click()
    said(page, "This call has ended already.")
    assert windows.app.ended(job_id)["errorCode"] == "cancelled"


def test_a_tool_that_also_runs_headless_offers_both(site: Site, windows: Windows) -> None:
    site.expected.append(UNFIT)  # without a connection its page cannot ask
    page = site.open("#/tools/entity-picker")
    modes = page.get_by_role("group", name="Run it")
    expect(modes.get_by_role("radio", name="headless")).to_be_checked()
    windowed = modes.get_by_role("radio", name="windowed")
    expect(windowed).to_be_visible()
    expect(page.get_by_text("headless (default), windowed")).to_be_visible()
    page.get_by_label("entityName").fill("account")
    windowed.check()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile("#/windows/"))
    expect(tool(page).get_by_role("alert")).to_contain_text("Call the tool with a saved connectionName")
    tool(page).get_by_role("button", name="Cancel").click()
    said(page, NO_ANSWER)
    job_id = page.url.rpartition("/")[2]
    assert windows.app.ended(job_id)["executionMode"] == "windowed"


def test_leaving_the_view_leaves_the_call_waiting(site: Site, windows: Windows) -> None:
    """Another view is no answer; the window can be opened again, from the call's own view too."""
    job_id, _ = launched(windows)
    page = site.open(f"#/windows/{job_id}")
    tool(page).locator("#answer").fill("half an answer")
    site.go(f"#/invocations/{job_id}")
    expect(page.get_by_text("This call waits for you.")).to_be_visible()
    expect(page.locator("iframe")).to_have_count(0)
    page.get_by_role("link", name="Open the window").click()
    tool(page).locator("#answer").fill("the whole answer")
    tool(page).get_by_role("button", name="Send").click()
    said(page, THANKS)
    assert windows.app.ended(job_id)["result"] == {"answer": "the whole answer"}
