"""Tools, their forms, and what is broken."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from shared import ids
from tests.acceptance.conftest import App, wait_until
from tests.acceptance.page.conftest import Site

pytestmark = pytest.mark.acceptance


def test_broken_tools_are_shown_with_every_fault(site: Site) -> None:
    page = site.open("#/tools")
    broken = page.get_by_role("region", name="1 broken tool")
    expect(broken).to_contain_text("tools/broken")
    expect(broken).to_contain_text("$.agents.version: is required")
    expect(broken).to_contain_text("$.invocation: must be a JSON object")
    expect(page.get_by_role("link", name="Tools 1 broken")).to_be_visible()


def test_tools_can_be_searched(site: Site) -> None:
    page = site.open("#/tools")
    expect(page.get_by_role("link", name="Report", exact=True)).to_be_visible()
    page.get_by_role("searchbox").fill("every kind")
    expect(page.get_by_role("link", name="Report", exact=True)).to_have_count(0)
    page.get_by_role("searchbox").fill("of which kind")
    expect(page.get_by_role("link", name="Many arguments")).to_be_visible()


def test_a_tool_says_what_it_takes_gives_and_does(site: Site, app: App) -> None:
    (listed,) = [tool for tool in app.rpc("tools/list")["result"]["tools"] if tool["name"] == "many"]
    page = site.open("#/tools/many")
    chips = page.get_by_role("list", name="What it does to its surroundings").get_by_role("listitem")
    expect(chips).to_have_text(["read-only", "idempotent"])
    # Closed at first, and by the same words as MCP clients are told.
    for title, words in (("Input schema", "inputSchema"), ("Output schema", "outputSchema")):
        part = page.locator("details.schema").filter(has=page.get_by_role("heading", name=title))
        expect(part.locator(".tree")).to_be_hidden()
        part.get_by_role("heading", name=title).click()
        expect(part.locator(".tree")).to_be_visible()
        for name in listed[words].get("properties", {}):
            expect(part.get_by_role("rowheader", name=name, exact=True)).to_have_count(1)
    given = page.locator("details.schema").filter(has=page.get_by_role("heading", name="Input schema"))
    for name, told in (
        ("amount", ["whole number", "always", "How many."]),
        ("colour", ['one of "red", "blue"', "always", ""]),
        ("day", ["text (date)", "maybe", ""]),
        ("numbers", ["list of whole number", "maybe", ""]),
    ):
        line = given.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))
        expect(line.get_by_role("cell")).to_have_text(told)


@pytest.mark.parametrize(
    ("name", "runs", "modes", "chips"),
    [
        ("many", "inline", "two-way", ["inline", "read-only", "idempotent"]),
        ("report", "inline (default), headless", "one-way, two-way (default)", ["inline", "headless"]),
    ],
)
def test_a_tool_says_how_it_runs(site: Site, name: str, runs: str, modes: str, chips: list[str]) -> None:
    page = site.open("#/tools")
    card = page.get_by_role("listitem").filter(has=page.locator(f'a[href$="#/tools/{name}"]'))
    shown = card.first.get_by_role("list", name="How it runs").get_by_role("listitem")
    expect(shown).to_have_text(chips)
    card.first.get_by_role("link").first.click()
    facts = page.get_by_role("complementary", name="Facts")
    for term, told in (("Runs", runs), ("Modes", modes), ("From", f"tools/{name}")):
        line = facts.locator("dl > div").filter(has=page.get_by_role("term").filter(has_text=term))
        expect(line.first.get_by_role("definition")).to_have_text(told)


def fill(page: Page) -> None:
    page.get_by_label("name required").fill("two\nlines")
    page.get_by_label("amount required").fill("42")
    page.get_by_label("colour required").select_option(label="blue")
    page.get_by_label("city required").fill("Ulm")


def test_a_form_makes_arguments_of_every_kind(site: Site) -> None:
    page = site.open("#/tools/many")
    fill(page)
    page.get_by_label("share").fill("0.25")
    page.get_by_label("loud").select_option(label="No")
    page.get_by_label("day").fill("2026-01-31")
    for value in ("3", "5"):
        page.get_by_role("button", name="Add to numbers").click()
        page.get_by_role("group", name="numbers").get_by_role("textbox").last.fill(value)
    page.get_by_role("button", name="Add to numbers").click()
    page.get_by_role("button", name="Remove this entry of numbers").last.click()
    page.get_by_label("Kind of animal").select_option(label="cat")
    page.get_by_label("lives required").fill("9")
    tree = page.get_by_role("group", name="tree", exact=True)
    tree.get_by_label("value required").first.fill("1")
    tree.get_by_role("button", name="Add to children").first.click()
    tree.get_by_label("value required").last.fill("2")
    page.get_by_label("extra").fill('{"a": [1, null]}')
    with page.expect_request("**/mcp/tools/many") as sent:
        page.get_by_role("button", name="Run", exact=True).click()
    asked = sent.value.post_data_json
    assert asked is not None
    assert asked.pop("__pptb")["executionMode"] == "inline"
    assert asked == {
        "name": "two\nlines", "amount": 42, "colour": "blue", "place": {"city": "Ulm"}, "share": 0.25,
        "loud": False, "day": "2026-01-31", "numbers": [3, 5], "animal": {"kind": "cat", "lives": 9},
        "tree": {"value": 1, "children": [{"value": 2}]}, "extra": {"a": [1, None]},
    }  # fmt: skip
    expect(page.get_by_role("region", name="What came of it")).to_contain_text("city: Ulm")


def test_faults_of_a_form_are_told_beside_the_fields(site: Site) -> None:
    page = site.open("#/tools/many")
    fill(page)
    page.get_by_label("amount required").fill("many")
    page.get_by_label("city required").fill("")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("2 fields to mend")).to_be_visible()
    amount = page.get_by_label("amount required")
    expect(amount).to_be_focused()
    expect(amount).to_have_attribute("aria-invalid", "true")
    expect(amount).to_have_accessible_description("How many. · 0 to 100 Must be a number")
    assert not any(url.endswith("/mcp/tools/many") for url in site.urls)


def test_what_the_server_refuses_is_shown(site: Site) -> None:
    page = site.open("#/tools/many")
    fill(page)
    page.get_by_label("amount required").fill("500")
    page.get_by_role("button", name="Run", exact=True).click()
    came = page.get_by_role("region", name="What came of it")
    expect(came).to_contain_text("Failed")
    expect(came).to_contain_text("$.amount: must be at most 100")


def test_a_call_names_a_connection_and_a_project(site: Site) -> None:
    page = site.open("#/tools/many")
    fill(page)
    page.get_by_text("Connection and project").click()
    connection = page.get_by_label("Connection connectionName")
    expect(connection).to_have_accessible_description("A saved connection for the tool to use.")
    connection.fill(" Nowhere ")
    with page.expect_request("**/mcp/tools/many") as sent:
        page.get_by_role("button", name="Run", exact=True).click()
    asked = sent.value.post_data_json
    assert asked is not None
    # What was left empty is not sent.
    assert asked["__pptb"] == {"executionMode": "inline", "mode": "two-way", "connectionName": "Nowhere"}
    came = page.get_by_role("region", name="What came of it")
    expect(came).to_contain_text("No saved connection found with name 'Nowhere'.")
    connection.fill("")
    page.get_by_label("Project project").fill("nothing")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(came).to_contain_text("__pptb.project: there is no such project for you")


def test_options_that_stand_in_the_json_are_sent(site: Site) -> None:
    page = site.open("#/tools/nasty")
    page.get_by_role("button", name="Edit as JSON").click()
    editor = page.get_by_label("Arguments, as JSON")
    editor.fill('{"words": "mine", "__pptb": {"executionMode": "headless", "idempotencyKey": "once"}}')
    with page.expect_request("**/mcp/tools/nasty") as sent:
        page.get_by_role("button", name="Run", exact=True).click()
    asked = sent.value.post_data_json
    assert asked is not None
    assert asked["__pptb"] == {"executionMode": "headless", "mode": "one-way", "idempotencyKey": "once"}
    expect(page.locator(".title-line")).to_contain_text("Completed")


def test_the_form_goes_over_to_json_and_back(site: Site) -> None:
    page = site.open("#/tools/many")
    fill(page)
    page.get_by_role("button", name="Edit as JSON").click()
    editor = page.get_by_label("Arguments, as JSON")
    assert '"city": "Ulm"' in editor.input_value()
    editor.fill(editor.input_value().replace('"amount": 42', '"amount": 43'))
    page.get_by_role("button", name="Back to the form").click()
    expect(page.get_by_label("amount required")).to_have_value("43")
    page.get_by_role("button", name="Edit as JSON").click()
    editor.fill("[1]")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(editor).to_have_accessible_description("Must be a JSON object")


def test_a_headless_run_opens_its_invocation(site: Site, app: App) -> None:
    page = site.open("#/tools/nasty")
    page.get_by_label("words").fill("run as a job")
    page.get_by_role("radio", name="headless").check()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".title-line")).to_contain_text("Completed")
    job_id = page.url.rpartition("/")[2]
    body = app.ended(job_id)
    assert (body["toolName"], body["mode"], body["executionMode"]) == ("nasty", "one-way", "headless")
    expect(page.get_by_role("log")).to_contain_text("run as a job")


def test_the_configurations_name_this_app_and_hold_no_token(site: Site) -> None:
    page = site.open("#/connect")
    for client in ("VS Code", "Claude Desktop", "Cursor", "MCP Inspector"):
        shown = page.get_by_label(f"Configuration for {client}", exact=True)
        expect(shown).to_contain_text(f"{site.origin}/runtime/webhooks/mcp")
        expect(shown).to_contain_text("X-MCP-Auth-Token")
        expect(shown).not_to_contain_text("x-functions-key")
    page.get_by_label("x-functions-key").check()
    expect(page.get_by_label("Configuration for VS Code", exact=True)).to_contain_text(
        '"x-functions-key": "${input:toolbox-key}"'
    )


def header_of(client: str, entry: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """(the endpoint, header -> what is sent in it) of a server as a client's configuration has it."""
    if client != "Claude Desktop":
        return entry["url"], entry.get("headers", {})
    # mcp-remote: the endpoint is its first argument, each header one of the form NAME:VALUE.
    assert entry["command"] == "npx"
    program, endpoint, *rest = [one for one in entry["args"] if one != "-y"]
    assert program == "mcp-remote"
    pairs = itertools.pairwise(rest)
    headers = dict(value.split(":", 1) for flag, value in pairs if flag == "--header")
    # What a header refers to is there to be filled in.
    assert {f"${{{name}}}" for name in entry.get("env", {})} == set(headers.values())
    return endpoint, headers


@pytest.mark.parametrize(
    ("client", "servers", "sent"),
    [
        ("VS Code", "servers", "${{input:toolbox-{}}}"),
        ("Claude Desktop", "mcpServers", "${{TOOLBOX_{}}}"),
        ("Cursor", "mcpServers", "${{env:TOOLBOX_{}}}"),
    ],
)
def test_a_configuration_is_json_with_the_endpoint_and_the_headers(
    site: Site, app: App, client: str, servers: str, sent: str
) -> None:
    page = site.open("#/connect")

    def found() -> tuple[str, dict[str, str]]:
        told = json.loads(page.get_by_label(f"Configuration for {client}", exact=True).inner_text())
        (entry,) = told[servers].values()
        if client == "VS Code":
            # What is asked for is what the headers refer to, and not shown while it is typed.
            asked = {f"${{input:{one['id']}}}": one["password"] for one in told.get("inputs", [])}
            assert asked == dict.fromkeys(entry.get("headers", {}).values(), True)
            assert entry["type"] == "http"
        return header_of(client, entry)

    def value(name: str) -> str:
        return sent.format(name.lower() if client == "VS Code" else name)

    token = {"X-MCP-Auth-Token": value("TOKEN")}
    assert found() == (app.endpoint, token)
    page.get_by_label("x-functions-key").check()
    assert found() == (app.endpoint, {"x-functions-key": value("KEY"), **token})
    for name in ("x-functions-key", "X-MCP-Auth-Token"):
        page.get_by_label(name).uncheck()
    assert found() == (app.endpoint, {})


def test_numbers_count_what_is_loaded(site: Site, app: App) -> None:
    for _ in range(3):
        app.call("report", {})
    page = site.open("#/numbers")
    line = page.get_by_role("row", name="report")

    def calls() -> int:
        page.wait_for_timeout(50)
        return int(line.get_by_role("cell").first.inner_text())

    expect(line).to_be_visible()
    before = calls()
    app.call("report", {})
    wait_until(lambda: calls() == before + 1)
    expect(page.get_by_text("Over all")).to_be_visible()


def test_numbers_lead_to_the_calls_that_went_wrong(site: Site, app: App) -> None:
    app.call("nasty", {"how": "raise", "words": "out of paper"})
    app.call("nasty", {"how": 5})
    page = site.open("#/numbers")
    line = page.get_by_role("row", name="nasty")
    line.get_by_role("link", name=re.compile(r"^\d+ rejected$")).click()
    rows = page.locator("[role=row][data-id]")
    expect(page.get_by_label("Status")).to_have_value("rejected")
    expect(page.get_by_label("Tool", exact=True)).to_have_value("nasty")
    expect(rows.first).to_contain_text("$.how: value must be one of")
    page.go_back()
    line.get_by_role("link", name=re.compile(r"^\d+ failed$")).click()
    # What the tool's name and the badge say already is left out of the one line there is.
    expect(rows.first.locator(".summary")).to_have_text("RuntimeError: out of paper")


def test_files_of_an_inline_run_can_be_kept_while_an_older_calls_cannot(site: Site, app: App) -> None:
    """The answer does not name its call: files count as its own whose id was made while it ran."""
    older = app.call("report", {}, {"executionMode": "inline"})
    (uri, *_) = [block["uri"] for block in older["content"] if block["type"] == "resource_link"]

    def with_another(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        told["content"].append({"type": "resource_link", "uri": made_before(uri), "name": "old.csv"})
        route.fulfill(response=answer, json=told)

    site.page.route("**/mcp/tools/report", with_another)
    page = site.open("#/tools/report")
    page.get_by_role("button", name="Run", exact=True).click()
    came = page.get_by_role("region", name="What came of it")
    expect(came.get_by_text("old.csv")).to_be_visible()
    expect(came.get_by_role("button", name="Download old.csv")).to_have_count(0)
    with page.expect_download() as caught:
        came.get_by_role("button", name="Download report.csv").click()
    assert caught.value.path().read_text() == "name,amount\nparts,31\n"


def made_before(uri: str) -> str:
    """The same address of a call that came a minute earlier."""
    found = uri.removeprefix("artifact://")
    call, _, name = found.partition("/")
    return f"artifact://{ids.new_id(ids.milliseconds_of(call) - 60_000)}/{name}"
