"""`toolboxAPI.utils`. What needs a screen goes to the job's log instead, as in the original's headless mode."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from shared.apis.bridge import settled
from shared.apis.launch import current
from shared.apis.toolbox.events import happened
from shared.apis.toolbox.spelling import TwoSpellings
from shared.text import kind_of

#: Functions that `executeParallel` runs at once in synchronous code.
THREADS: Final = 8


class UtilsApi(TwoSpellings):
    """Small services."""

    def show_notification(self, options: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """`{title, body, type?, duration?}`: a line in the log, and an event."""
        given = {**(options or {}), **named}
        context = current("toolboxAPI.utils.showNotification")
        level = (
            "error" if given.get("type") == "error" else "warn" if given.get("type") == "warning" else "info"
        )
        context.sink.log(level, f"[Notification] {given.get('title', '')}: {given.get('body', '')}")
        happened(context, "notification", given)
        return settled(None)

    def copy_to_clipboard(self, text: str) -> Any:
        """Nobody's clipboard is here: a line in the log says so, without the text."""
        context = current("toolboxAPI.utils.copyToClipboard")
        context.logger.info(
            f"[Clipboard] {len(str(text))} characters were not copied: there is no clipboard here"
        )
        return settled(None)

    def open_external(self, url: str) -> Any:
        current("toolboxAPI.utils.openExternal").logger.info(f"[External] {url} was not opened: nobody is here")
        return settled(None)

    def get_current_theme(self) -> Any:
        return settled("light")

    def execute_parallel(self, *work: Awaitable[Any] | Callable[[], Any]) -> Any:
        """The values of functions and awaitables, in their order; all run at once. The first error is raised.

        In synchronous code functions only: each runs on a thread that sees this invocation.
        """
        current("toolboxAPI.utils.executeParallel")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _on_threads(work)
        return _gathered(work)


async def _gathered(work: tuple[Any, ...]) -> list[Any]:
    async def one(item: Any) -> Any:
        value = item() if callable(item) and not inspect.isawaitable(item) else item
        return await value if inspect.isawaitable(value) else value

    return list(await asyncio.gather(*map(one, work)))


def _on_threads(work: tuple[Any, ...]) -> list[Any]:
    for item in work:
        if not callable(item):
            raise TypeError(
                f"toolboxAPI.utils.executeParallel: in synchronous code, pass functions, not {kind_of(item)}"
            )
    with ThreadPoolExecutor(THREADS, thread_name_prefix="parallel") as pool:
        started = [pool.submit(contextvars.copy_context().run, item) for item in work]
        return [future.result() for future in started]
