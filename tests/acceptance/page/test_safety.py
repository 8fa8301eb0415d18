"""What tools and callers say can do nothing in the page, and the token stays where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.acceptance.conftest import TOKEN, App, wait_until
from tests.acceptance.page.conftest import HEADLESS, ONE_WAY, Site, Steps

pytestmark = pytest.mark.acceptance

#: As in the tool `nasty`.
HIT = "<img src=x onerror="


@pytest.mark.parametrize("arguments", [{}, {"how": "raise"}, {"how": "links"}], ids=str)
@pytest.mark.parametrize("envelope", [HEADLESS, {"executionMode": "inline"}], ids=["headless", "inline"])
def test_markup_in_names_logs_results_and_errors_is_text(
    site: Site, app: App, arguments: dict[str, str], envelope: dict[str, str]
) -> None:
    """`Site.check` sees to it at the end of every test that no script of it has run."""
    app.call("nasty", arguments, envelope)
    page = site.open()
    row = page.locator("[role=row][data-id]").filter(has_text="nasty").first
    expect(row).to_be_visible()
    row.get_by_role("link").click()
    expect(page.locator(".title-line")).to_contain_text("nasty")
    if envelope == HEADLESS:
        expect(page.get_by_role("log")).to_contain_text(HIT)
        expect(page.locator(".note.error" if "raise" in arguments.values() else ".part").first).to_contain_text(
            HIT
        )
    assert (
        page.locator("main").locator("script, iframe, object, embed, style, svg, img:not(.media)").count() == 0
    )


def test_markup_in_what_a_tool_declares_is_text(site: Site) -> None:
    page = site.open("#/tools")
    expect(page.get_by_role("link", name=f"Nasty {HIT}")).to_be_visible()
    expect(page.get_by_role("region", name="1 broken tool")).to_contain_text("<img src=x")
    site.go("#/tools/nasty")
    expect(page.get_by_label("words")).to_be_visible()
    assert page.get_by_label("words").input_value().startswith(HIT)
    page.get_by_label("how").select_option(index=4)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("region", name="What came of it")).to_contain_text(HIT)
    assert page.locator("main").locator("script, iframe, svg, img").count() == 0


def test_links_that_are_no_web_addresses_are_no_links(site: Site, app: App) -> None:
    accepted = app.call("nasty", {"how": "links"}, ONE_WAY)["structuredContent"]
    app.ended(accepted["jobId"])
    page = site.open(f"#/invocations/{accepted['jobId']}")
    expect(page.locator(".part").filter(has_text="vbscript:x")).to_be_visible()
    links = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
    assert links
    assert [link for link in links if not link.startswith(site.origin)] == []


@pytest.mark.parametrize(
    "place",
    [
        "#/tools/%3Cimg%20src=x%20onerror=hit=1%3E",
        "#/invocations/%3Csvg%20onload=hit=1%3E",
        "#/<script>hit=1</script>",
        "#/tools/%E0%A4%A",
        "#/constructor",
    ],
)
def test_an_address_that_somebody_sends_can_do_nothing(site: Site, place: str) -> None:
    site.expected.append("404")
    page = site.open(place)
    expect(page.locator("#view h1")).to_be_visible()
    assert page.locator("main").locator("script, svg, img").count() == 0


@pytest.mark.parametrize(
    "attempt",
    [
        "main.innerHTML = words",
        "main.outerHTML = words",
        "main.insertAdjacentHTML('beforeend', words)",
        "document.write(words)",
        "new DOMParser().parseFromString(words, 'text/html')",
        "Object.assign(document.createElement('script'), { src: '/assets/app.js' })",
        "document.createElement('iframe').srcdoc = words",
        "trustedTypes.createPolicy('mine', { createHTML: (text) => text })",
    ],
)
def test_the_browser_lets_no_text_become_markup_or_script(site: Site, attempt: str) -> None:
    """Also not by a later mistake in the page's own code."""
    page = site.open()
    site.expected += ["Trusted", "trusted"]
    script = """() => {
        const main = document.querySelector('main');
        const words = '<img src=x onerror="window.hit=7">';
        try { ATTEMPT; return 'nothing was thrown'; } catch (error) { return error.name; }
    }"""
    told = page.evaluate(script.replace("ATTEMPT", attempt))
    assert told == "TypeError"


def test_the_token_is_in_no_address_and_no_other_storage(
    site: Site, app: App, begin: Callable[[], Steps]
) -> None:
    steps = begin()
    app.call("report", {}, HEADLESS)
    page = site.open()
    for place in (
        f"#/invocations/{steps.job_id}",
        "#/tools",
        "#/tools/many",
        "#/servers",
        "#/numbers",
        "#/connect",
    ):
        site.go(place)
        expect(page.locator("#view h1")).to_be_visible()
        assert TOKEN not in page.content()
    kept = page.evaluate("""async () => ({
        local: JSON.stringify(localStorage), cookies: document.cookie, name: window.name,
        databases: (await indexedDB.databases()).length, caches: (await caches.keys()).length,
        session: JSON.stringify(sessionStorage), history: JSON.stringify(history.state),
    })""")
    assert kept.pop("session") == f'{{"toolbox.token":"{TOKEN}"}}'
    assert kept == {"local": "{}", "cookies": "", "name": "", "databases": 0, "caches": 0, "history": "null"}
    assert site.page.context.cookies() == []
    assert [url for url in site.urls if TOKEN in url] == []
    assert {url.split("/")[2] for url in site.urls if not url.startswith("blob:")} == {f"127.0.0.1:{app.port}"}


def test_a_wrong_token_is_told_plainly_and_a_right_one_works(site: Site) -> None:
    page = site.open(token=None)
    field = page.get_by_label("Token", exact=True)
    expect(field).to_be_focused()
    for wrong, said in (
        ("not-the-token", "The app does not accept this token."),
        ("", "A token is needed."),
        ("tökén", "no token has"),
    ):
        field.fill(wrong)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(said)
        expect(field).to_be_focused()
    assert page.evaluate("() => sessionStorage.length") == 0
    field.fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Invocations")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Invocations")).to_be_visible()  # asked once
    page.get_by_role("button", name="Forget token").click()
    expect(field).to_be_focused()
    assert page.evaluate("() => sessionStorage.length") == 0


def test_a_token_that_is_accepted_no_longer_is_asked_for_again(site: Site) -> None:
    page = site.open()
    expect(page.locator("#live")).to_contain_text("Live")
    page.evaluate("() => sessionStorage.setItem('toolbox.token', 'replaced')")
    expect(page.get_by_role("alert")).to_contain_text("no longer accepted")
    asked = len(site.urls)
    page.wait_for_timeout(2_500)  # longer than a round
    assert len(site.urls) == asked  # a wrong token is not tried again and again
    wait_until(lambda: page.evaluate("() => sessionStorage.length") == 0)
