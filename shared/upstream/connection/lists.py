"""The tools and prompts of one connection: read when it opens, again when the server says so or somebody
asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp_types import METHOD_NOT_FOUND

from shared.errors import MCPError, MCPProtocolError, MCPTimeoutError
from shared.upstream.connection.dead import DeadConnectionError
from shared.upstream.connection.link import ListKind
from shared.upstream.connection.listing import list_all
from shared.upstream.connection.refresh import Refresher
from shared.upstream.model import UpstreamPrompt, UpstreamTool

if TYPE_CHECKING:
    from shared.upstream.config.model import ServerConfig
    from shared.upstream.connection.link import Link
    from shared.upstream.connection.tail import Tail
    from shared.upstream.settings import UpstreamSettings


class Lists:
    """`fetch`: asks for one page of one list."""

    def __init__(
        self,
        config: ServerConfig,
        settings: UpstreamSettings,
        tail: Tail,
        fetch: Callable[[ListKind, Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
    ) -> None:
        self._config = config
        self._seconds = config.connect_timeout(settings)
        self._tail = tail
        self._fetch = fetch
        self._link: Link | None = None
        self._reading: dict[ListKind, asyncio.Task[None]] = {}
        self._refreshers = {
            kind: Refresher(partial(self.read, kind), partial(self._failed, kind)) for kind in ListKind
        }
        self.tools: tuple[UpstreamTool, ...] = ()
        self.prompts: tuple[UpstreamPrompt, ...] = ()
        self.tools_by_name: Mapping[str, UpstreamTool] = {}
        self.revision = 0
        #: Why the prompts could not be read the last time; None where they could, or nobody asked.
        self.prompts_error: MCPError | None = None

    async def read_first(self, link: Link) -> None:
        """What is configured to be loaded. Tools that cannot be listed are an error; prompts are a remark."""
        self._link = link
        if self._config.load_tools:
            await asyncio.shield(self._reading_of(ListKind.TOOLS))
        if self._config.load_prompts and "prompts" in link.capabilities:
            try:
                await asyncio.shield(self._reading_of(ListKind.PROMPTS))
            except MCPError as error:
                self._failed(ListKind.PROMPTS, error)

    async def read(self, kind: ListKind) -> None:
        """Ask the server. Readers at the same time share one reading; one that is cancelled stops nobody else.

        `DeadConnectionError` when the connection is closed meanwhile: that cancels the reading, no reader.
        """
        task = self._reading_of(kind)
        await asyncio.wait({task})
        if task.cancelled():
            text = f"Server '{self._config.name}': the connection was closed while its {kind} were read."
            raise DeadConnectionError(text, self._config.name, sent=False)
        task.result()

    def _reading_of(self, kind: ListKind) -> asyncio.Task[None]:
        task = self._reading.get(kind)
        if task is None or task.done():
            task = asyncio.create_task(self._read(kind))
            self._reading[kind] = task
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return task

    async def _read(self, kind: ListKind) -> None:
        try:
            await self._read_once(kind)
        except MCPError as error:
            if kind is ListKind.PROMPTS:
                self.prompts_error = error
            raise
        if kind is ListKind.PROMPTS:
            self.prompts_error = None

    async def _read_once(self, kind: ListKind) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                if kind is ListKind.TOOLS:
                    await self._read_tools()
                else:
                    await self._read_prompts()
        except TimeoutError:
            text = f"Server '{self._config.name}' did not list its {kind} within {self._seconds:g} s"
            raise MCPTimeoutError(f"{text} (init_timeout).", self._config.name, timeout=self._seconds) from None
        except MCPProtocolError as error:
            # A server without such a list; only its announced capabilities say so beforehand.
            if error.error_code != METHOD_NOT_FOUND:
                raise

    async def _read_tools(self) -> None:
        fetch = partial(self._fetch, ListKind.TOOLS)
        listing = await list_all(fetch, ListKind.TOOLS, UpstreamTool.from_wire, self._config.name)
        self._remark(listing.remarks)
        usable = tuple(tool for tool in listing.entries if not self._refused(tool))
        if usable != self.tools:
            self.tools, self.tools_by_name = usable, {tool.name: tool for tool in usable}
            self.revision += 1

    async def _read_prompts(self) -> None:
        fetch = partial(self._fetch, ListKind.PROMPTS)
        listing = await list_all(fetch, ListKind.PROMPTS, UpstreamPrompt.from_wire, self._config.name)
        self._remark(listing.remarks)
        if listing.entries != self.prompts:
            self.prompts = listing.entries
            self.revision += 1

    def _refused(self, tool: UpstreamTool) -> bool:
        reason = None if self._link is None else self._link.refuses(tool.name, tool.input_schema)
        if reason is not None:
            self._remark([f"the tool '{tool.name}' is left out: {reason}"])
        return reason is not None

    def _remark(self, remarks: tuple[str, ...] | list[str]) -> None:
        for remark in remarks:
            self._tail.add(f"[list] {remark}")

    def _failed(self, kind: ListKind, error: Exception) -> None:
        self._tail.add(f"[list] the {kind} could not be read, what was known of them stays: {error}")

    def changed(self, kind: ListKind) -> None:
        """The server says that a list has changed."""
        wanted = self._config.load_tools if kind is ListKind.TOOLS else self._config.load_prompts
        if wanted and self._link is not None:
            self._refreshers[kind].trigger()

    def cancel(self) -> None:
        """Nothing can be read any more."""
        for task in self._tasks():
            task.cancel()

    async def stop(self) -> None:
        self.cancel()
        if tasks := self._tasks():
            await asyncio.wait(tasks)

    def _tasks(self) -> list[asyncio.Task[None]]:
        refreshing = (refresher.task for refresher in self._refreshers.values())
        return [*self._reading.values(), *(task for task in refreshing if task is not None)]
