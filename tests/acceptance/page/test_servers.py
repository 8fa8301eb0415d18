"""Other servers on the page: how they stand, what is wrong with them, and which of their tools have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.conftest import App, start_app
from tests.acceptance.page.conftest import PICTURES, SIZES, Scheme, Site
from tests.acceptance.page.test_accessibility import faults, picture
from tests.acceptance.upstream.calls import names
from tests.support.upstream_app import Folder, app_folder, tool

pytestmark = pytest.mark.acceptance

ECHO = tool("echo", {"text": {"type": "string"}}, description="Gives its arguments back.")
SAME, GONE, OFF = tool("same"), tool("gone"), tool("off")
MARKUP = "<img src=x onerror='window.hit = 1'>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Two servers: one that has changed since it was locked, one that cannot be used."""
    made = app_folder(tmp_path_factory.mktemp("servers") / "app")
    one = made.plain("one", [ECHO, SAME, GONE, OFF], description=MARKUP, disabled_tools=["off"])
    secret = {"Authorization": "Bearer ${NO_SUCH}"}
    made.configure({"one": one, "broken": {"url": "https://example.com/mcp", "headers": secret}})
    assert [fault["server"] for fault in made.sync()["faults"]] == ["broken"]
    made.plain("one", [{**ECHO, "description": MARKUP}, SAME, OFF])
    return made


@pytest.fixture(scope="module")
def app(folder: Folder, new_storage: Callable[[], str]) -> Iterator[App]:
    """In the place of the app that the other tests of the page share."""
    place: Path = folder.path.parent
    running = start_app(place, new_storage(), app_dir=folder.path, **folder.settings)
    yield running
    assert running.stop() == 0


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=name, exact=True))


def entry(page: Page, name: str) -> Locator:
    """A server's tool, folded in."""
    return page.locator(f'details[data-name="{name}"]')


def test_every_server_is_shown_with_its_state_and_its_fault(site: Site, app: App, folder: Folder) -> None:
    app.call(names(folder)["one.same"], {})
    page = site.open("#/servers")
    expect(card(page, "one")).to_contain_text("connected")
    expect(card(page, "one")).to_contain_text(MARKUP)
    expect(card(page, "one")).to_contain_text("stdio · global · 3 tools")
    expect(card(page, "broken")).to_contain_text("error")
    expect(card(page, "broken")).to_contain_text("NO_SUCH")
    card(page, "broken").get_by_role("link").click()
    expect(page.get_by_text("It cannot be used.")).to_be_visible()
    expect(page.get_by_role("heading", name="broken")).to_be_visible()


def test_a_tool_that_has_changed_or_gone_at_its_server_says_so(site: Site, app: App, folder: Folder) -> None:
    app.call(names(folder)["one.same"], {})
    page = site.open("#/servers/one")
    for name, said in (("echo", "changed"), ("same", "locked"), ("gone", "gone"), ("off", "disabled")):
        expect(entry(page, name).locator(".chip").first).to_have_text(said)
    expect(page.get_by_role("region", name="What it has written")).to_contain_text("a plain server speaks")
    entry(page, "off").locator("> summary").click()
    expect(entry(page, "off").get_by_role("link")).to_have_count(0)
    entry(page, "echo").locator("> summary").click()
    entry(page, "echo").get_by_role("link", name=names(folder)["one.echo"]).click()
    page.get_by_label("text").fill("over there")
    page.get_by_role("button", name="Run", exact=True).click()
    came = page.get_by_role("region", name="What came of it")
    expect(came).to_contain_text("over there")
    expect(came).to_contain_text("has changed at its server since it was published")


def test_a_server_that_nobody_has_called_says_so(site: Site) -> None:
    """`created` is the app's word for it, and would tell a reader nothing."""
    quiet = {"name": "quiet", "type": "stdio", "scope": "global", "state": "created", "connected": False}
    site.page.route("**/mcp/servers", lambda route: route.fulfill(json={"servers": [quiet]}))
    page = site.open("#/servers")
    expect(card(page, "quiet")).to_contain_text("not called yet")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_view_of_servers_has_a_serious_fault(
    open_page: Callable[[str], Site], app: App, folder: Folder, scheme: Scheme, size: str
) -> None:
    """The cards of all servers; one that has tools of every state, opened; one that cannot be used."""
    app.call(names(folder)["one.same"], {})
    site = open_page(size)
    page = site.open("#/servers")
    wrong: dict[str, list[str]] = {}

    def look(view: str) -> None:
        found = faults(page)
        overflow = page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if overflow > 0:
            found.append(f"wider than the window by {overflow} px")
        if found:
            wrong[view] = found
        picture(page, PICTURES / f"{view}-{size}-{scheme}.png")

    expect(card(page, "one")).to_contain_text("connected")
    expect(card(page, "broken")).to_contain_text("NO_SUCH")
    look("servers-two")
    site.go("#/servers/one")
    expect(page.get_by_role("region", name="What it has written")).to_contain_text("a plain server speaks")
    for name in ("echo", "off"):
        entry(page, name).locator("> summary").click()
    expect(entry(page, "echo").locator(".tree")).to_be_visible()
    look("server")
    site.go("#/servers/broken")
    expect(page.get_by_text("It cannot be used.")).to_be_visible()
    look("server-broken")
    site.go("#/servers/nowhere")
    expect(page.get_by_text("There is no such server.")).to_be_visible()
    look("server-missing")
    assert wrong == {}
