"""Pages, guards, and how notifications become few listings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from shared.errors import MCPProtocolError
from shared.upstream.connection.link import ListKind
from shared.upstream.connection.listing import Listing, list_all
from shared.upstream.connection.refresh import Refresher
from shared.upstream.model import UpstreamTool
from tests.support.links import Fake, plain
from tests.support.upstream import until


def page(names: Sequence[object], cursor: object = None) -> dict[str, Any]:
    return {"tools": [{"name": name} for name in names], **({} if cursor is None else {"nextCursor": cursor})}


def listing_of(found: Mapping[Any, Mapping[str, Any]], **bounds: int) -> Listing[UpstreamTool]:
    async def fetch(params: Mapping[str, Any]) -> Mapping[str, Any]:
        assert "cursor" not in params or params["cursor"] is not None
        return found[params.get("cursor")]

    return asyncio.run(list_all(fetch, ListKind.TOOLS, UpstreamTool.from_wire, "demo", **bounds))


def names(listing: Listing[UpstreamTool]) -> list[str]:
    return [tool.name for tool in listing.entries]


def test_pages_in_order() -> None:
    assert names(listing_of({None: page("ab", "2"), "2": page("c", ""), "": page("d")})) == ["a", "b", "c", "d"]
    assert names(listing_of({None: page("")})) == []


@pytest.mark.parametrize(
    ("pages", "text"),
    [
        ({None: page("a", "1"), "1": page("b", "2"), "2": page("c", "1")}, "in a circle"),
        ({None: page("a", "1"), "1": page("b", "1")}, "in a circle"),
        ({None: {"tools": None}}, "without a list"),
        ({None: {}}, "without a list"),
        ({None: page("a", 5)}, "no text"),
        ({None: page("a", "1"), "1": {"tools": {}}}, "without a list"),
    ],
)
def test_list_that_cannot_be_read_to_its_end_is_no_list(
    pages: Mapping[Any, Mapping[str, Any]], text: str
) -> None:
    with pytest.raises(MCPProtocolError, match=text) as error:
        listing_of(pages)
    assert error.value.server == "demo"


def test_bounds() -> None:
    endless = {None: page("a", "1")} | {str(n): page([f"t{n}"], str(n + 1)) for n in range(1, 20)}
    with pytest.raises(MCPProtocolError, match="more than 5 pages"):
        listing_of(endless, pages=5)
    with pytest.raises(MCPProtocolError, match="more than 3 tools"):
        listing_of(endless, most=3)


def test_names_that_come_twice_or_not_at_all() -> None:
    listing = listing_of({None: page(["a", "b", "a"], "1"), "1": page(["a", None, 7, "A"])})
    assert names(listing) == ["a", "b", "A"]
    assert listing.remarks == (
        "the tool 'a' is listed twice: the first is kept",
        "2 tools without a usable name are left out",
    )


def test_burst_is_one_listing_and_one_more_for_what_came_meanwhile() -> None:
    """Row 8."""

    async def main() -> None:
        runs = 0
        running = asyncio.Event()
        go = asyncio.Event()

        async def refresh() -> None:
            nonlocal runs
            runs += 1
            running.set()
            await go.wait()

        refresher = Refresher(refresh, lambda _: None, pause=0.001)
        for _ in range(20):
            refresher.trigger()
        await running.wait()
        for _ in range(20):
            refresher.trigger()
        go.set()
        await until(lambda: runs == 2)
        await asyncio.sleep(0.05)
        assert runs == 2
        assert refresher.task is not None
        refresher.task.cancel()

    asyncio.run(main())


def test_server_that_notifies_at_each_listing_is_listed_ever_more_rarely() -> None:
    """Row 8."""

    async def main() -> None:
        runs = 0

        async def refresh() -> None:
            nonlocal runs
            runs += 1
            refresher.trigger()

        refresher = Refresher(refresh, lambda _: None, pause=0.01, longest=10)
        refresher.trigger()
        await asyncio.sleep(0.5)
        assert 3 <= runs <= 6
        assert refresher.task is not None
        refresher.task.cancel()

    asyncio.run(main())


def test_refresh_that_fails_keeps_the_old_list_and_is_told() -> None:
    """Decision 8."""

    async def main() -> None:
        fake = Fake()
        one = fake.connection()
        await one.connect()
        assert fake.events is not None

        async def broken(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            return {"tools": "none today"} if method == "tools/list" else await plain(method, params)

        fake.opened[0].answer = broken
        fake.events.changed(ListKind.TOOLS)
        await until(lambda: "without a list of tools" in one.log())
        assert [tool.name for tool in one.tools] == ["work", "slow"]
        assert (await one.call_tool("work")).success
        assert one.revision == 1
        await one.disconnect()

    asyncio.run(main())


def test_revision_goes_up_only_when_a_list_has_really_changed() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection(load_prompts=True)
        await one.connect()
        assert one.revision == 1
        await one.list_tools()
        assert one.revision == 1

        async def grown(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            return page(["work", "new"]) if method == "tools/list" else await plain(method, params)

        fake.opened[0].answer = grown
        assert [tool.name for tool in await one.list_tools()] == ["work", "new"]
        assert one.revision == 2
        await one.disconnect()

    asyncio.run(main())


def test_notification_for_a_list_that_is_not_wanted() -> None:
    async def main() -> None:
        fake = Fake()
        one = fake.connection(load_tools=False)
        await one.connect()
        assert fake.events is not None
        fake.events.changed(ListKind.TOOLS)
        await asyncio.sleep(0.1)
        assert fake.opened[0].requests == []
        await one.disconnect()

    asyncio.run(main())
