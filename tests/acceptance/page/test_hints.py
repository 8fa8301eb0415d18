"""What the page says of a tool's annotations."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from tests.acceptance.page.conftest import Site

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize(
    ("hints", "told"),
    [
        ({"destructiveHint": False, "openWorldHint": False}, ["not destructive"]),
        (
            {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
            ["destructive", "idempotent", "open world"],
        ),
    ],
    ids=["not-destructive", "destructive"],
)
def test_hints_are_told_in_words(site: Site, hints: dict[str, bool], told: list[str]) -> None:
    """Without a word of it a tool counts as destructive, so that a tool's no is told too."""

    def answer(route: Route) -> None:
        answered = route.fetch()
        listed = answered.json()
        (many,) = [tool for tool in listed["tools"] if tool["name"] == "many"]
        many["annotations"] = hints
        route.fulfill(response=answered, json=listed)

    site.page.route("**/mcp/tools", answer)
    page = site.open("#/tools/many")
    chips = page.get_by_role("list", name="What it does to its surroundings").get_by_role("listitem")
    expect(chips).to_have_text(told)
