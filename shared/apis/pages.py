"""All rows of a query, page by page, for `for` and for `async for`.

    for row in dataverseAPI.iterateFetchXml(query): …
    async for page in dataverseAPI.iterateFetchXml(query).pages(): …

Pages are asked for one at a time, when the rows before are used up: memory holds one page.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from shared.apis import bridge
from shared.apis.record import Record


@dataclass(frozen=True, slots=True)
class Page:
    """`number`: 1 for the first page that this iteration asked for."""

    number: int
    records: list[Record]
    #: Where the next page begins: a text to store, and to give to the same query to go on. None: the end.
    cursor: str | None

    @property
    def last(self) -> bool:
        return self.cursor is None


type _Step = Callable[[int, str | None], Coroutine[Any, Any, Page]]


class Pages:
    """The pages; each iteration begins anew."""

    def __init__(self, step: _Step, cursor: str | None) -> None:
        self._step = step
        self._cursor = cursor

    def __iter__(self) -> Iterator[Page]:
        _not_here()
        number, cursor = 1, self._cursor
        while True:
            page: Page = bridge.call(functools.partial(self._step, number, cursor))
            yield page
            if page.cursor is None:
                return
            number, cursor = number + 1, page.cursor

    async def __aiter__(self) -> AsyncIterator[Page]:
        number, cursor = 1, self._cursor
        while True:
            page: Page = await bridge.call(functools.partial(self._step, number, cursor))
            yield page
            if page.cursor is None:
                return
            number, cursor = number + 1, page.cursor


class Rows:
    """The rows of all pages; each iteration begins anew. `pages()` gives them by page."""

    def __init__(self, step: _Step, cursor: str | None = None) -> None:
        self._step = step
        self._cursor = cursor

    def pages(self) -> Pages:
        return Pages(self._step, self._cursor)

    def __iter__(self) -> Iterator[Record]:
        for page in self.pages():
            yield from page.records

    async def __aiter__(self) -> AsyncIterator[Record]:
        async for page in self.pages():
            for record in page.records:
                yield record


def _not_here() -> None:
    """`for` would wait for the network and hold up everything else on the running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("In asynchronous code, iterate with `async for`")
