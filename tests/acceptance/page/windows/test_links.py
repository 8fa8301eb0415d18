"""Launch links in the browser of somebody who has no token."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Request, expect

from tests.acceptance.conftest import TOKEN
from tests.acceptance.page.conftest import Site
from tests.acceptance.page.windows.conftest import age_ticket, launched, said, tool, tool_frame
from tests.acceptance.windows.conftest import Windows

pytestmark = pytest.mark.acceptance

type Another = Callable[[], Site]

USED = "This link has expired or was used already."


def test_a_link_opens_the_window_once_and_its_ticket_vanishes(windows: Windows, another: Another) -> None:
    job_id, link = launched(windows)
    ticket = link.rpartition(".")[2]
    visitor = another()
    page = visitor.page
    exchanged: list[Request] = []
    page.on("request", lambda asked: exchanged.append(asked) if asked.url.endswith("/session") else None)
    page.goto("about:blank")
    page.goto(link)
    frame = tool_frame(page, job_id)
    assert page.url == f"{visitor.origin}/#/windows/{job_id}"
    expect(page.get_by_role("button", name="Forget token")).to_be_hidden()
    # Once, by POST, in the body; in no address, no storage, no history, nor anywhere in the page.
    assert [(asked.method, asked.post_data_json) for asked in exchanged] == [("POST", {"ticket": ticket})]
    assert "x-mcp-auth-token" not in exchanged[0].headers
    assert [url for url in visitor.urls if ticket in url] == []
    session = exchanged[0].response()
    assert session is not None
    secrets = (ticket, session.json()["session"])
    for where in (
        page.content(),
        frame.content(),
        page.evaluate("() => JSON.stringify([history.state, name])"),
    ):
        assert not [secret for secret in secrets if secret in where]
    assert page.evaluate("() => [sessionStorage.length, localStorage.length, document.cookie]") == [0, 0, ""]
    page.go_back()
    assert page.url == "about:blank"  # no step of the history has the ticket
    page.go_forward()
    assert page.url == f"{visitor.origin}/#/windows/{job_id}"

    late = another()
    late.expected.append("401")
    late.page.goto(link)
    said(late.page, USED)
    expect(late.page.get_by_text("Ask for a new link")).to_be_visible()
    assert ticket not in late.page.url
    assert windows.app.job(job_id).json()["status"] == "pending"


def test_whoever_has_the_link_answers_without_a_token(windows: Windows, another: Another) -> None:
    job_id, link = launched(windows)
    visitor = another()
    page = visitor.page
    page.goto(link)
    expect(tool(page).locator("#fault")).to_have_text("Why?")
    tool(page).locator("#answer").fill("because")
    tool(page).get_by_role("button", name="Send").click()
    said(page, "Thank you. The answer has been sent.")
    expect(page.get_by_text("You can close this page.")).to_be_visible()
    assert windows.app.ended(job_id)["result"] == {"answer": "because"}
    # The window is all that the link opens: another place of the page asks for the token.
    visitor.go("#/invocations")
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    assert "because" not in page.content()


def test_a_link_that_is_too_old_says_so(windows: Windows, another: Another) -> None:
    job_id, link = launched(windows)
    age_ticket(windows, job_id)
    visitor = another()
    visitor.page.goto(link)
    said(visitor.page, USED)
    assert windows.app.job(job_id).json()["status"] == "pending"
    # Its owner can still open it.
    owner = another()
    owner.open(f"#/windows/{job_id}")
    expect(tool(owner.page).locator("#fault")).to_have_text("Why?")


def test_a_link_to_a_window_that_has_ended_opens_nothing(windows: Windows, another: Another) -> None:
    job_id, link = launched(windows, timeoutMs=1)
    windows.app.ended(job_id)
    visitor = another()
    visitor.page.goto(link)
    said(visitor.page, USED)
    owner = another()
    owner.expected.append("409")
    owner.open(f"#/windows/{job_id}")
    said(owner.page, "This call has ended already.")


def test_a_link_without_its_ticket_asks_for_the_token(windows: Windows, another: Another) -> None:
    job_id, link = launched(windows)
    owner = another()
    page = owner.page
    page.goto(link.rpartition(".")[0])
    page.get_by_label("Token", exact=True).fill(TOKEN)
    page.keyboard.press("Enter")
    expect(tool(page).locator("#fault")).to_have_text("Why?")
    assert page.url == f"{owner.origin}/#/windows/{job_id}"


@pytest.mark.parametrize("harm", ["<img src=x onerror=hit=1>", "A" * 43, "", "../../jobs"])
def test_a_link_that_was_tampered_with_opens_nothing(windows: Windows, another: Another, harm: str) -> None:
    _, link = launched(windows)
    visitor = another()
    page = visitor.page
    page.goto(link.rpartition(".")[0] + "." + harm)
    expect(page.locator("#view .empty-title, #token").first).to_be_visible()
    expect(page.locator("iframe")).to_have_count(0)
    assert "#window=" not in page.url
