"""Threads for synchronous tools.

Why not `concurrent.futures`: a tool past its deadline cannot be stopped, only abandoned. Its executor would
keep waiting for it at exit, and an abandoned tool would occupy one of the pool's places for good. Here threads
are daemons, and an abandoned call gives its place back at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


class Call:
    """One call on its way to a thread and back. `done` is settled on the event loop that made it."""

    __slots__ = ("_args", "_failed", "_function", "_loop", "_scope", "_value", "abandoned", "done", "started")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self._loop.create_future()
        self._function = function
        self._args = args
        # The tool sees the context variables of the call, as it would on the event loop.
        self._scope = contextvars.copy_context()
        self._value: Any = None
        self._failed: BaseException | None = None
        self.started = False
        self.abandoned = False

    def run(self) -> None:
        """On the thread. Whatever the function raises is kept, `SystemExit` included."""
        try:
            self._value = self._scope.run(self._function, *self._args)
        except BaseException as error:
            self._failed = error

    def bring_back(self) -> None:
        """On the thread, as its last act: what it does after this competes with the event loop for the lock."""
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            return  # the loop is closed: an abandoned tool has come back after the end

    def _settle(self) -> None:
        failed = self._failed
        if self.done.done():
            return
        if failed is None:
            self.done.set_result(self._value)
        elif isinstance(failed, Exception) and not isinstance(failed, StopIteration):
            self.done.set_exception(failed)
        else:
            # A future refuses StopIteration, and SystemExit would end the worker.
            self.done.set_exception(RuntimeError(f"the tool raised {type(failed).__name__}: {failed}"))


class ThreadPool:
    """At most `size` calls run at once, abandoned ones not counted. Threads start when first needed."""

    def __init__(self, size: int, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        # Guards the counters.
        self._lock = threading.Lock()
        self._size = size
        self._threads = 0
        #: Idle threads less waiting calls; below zero when calls wait.
        self._free = 0

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """The function's value. When the awaiting task is cancelled, the call is dropped or abandoned."""
        call = Call(function, args)
        with self._lock:
            start = self._free <= 0 and self._threads < self._size
            if start:
                self._threads += 1
            else:
                self._free -= 1
        self._calls.put(call)
        if start:
            self._start_thread()
        try:
            return await call.done
        except asyncio.CancelledError:
            self._give_up(call)
            raise

    def _give_up(self, call: Call) -> None:
        with self._lock:
            if not call.started or call.abandoned:
                return
            call.abandoned = True
            self._size += 1
            # Calls that wait for this place would otherwise wait for a later call to bring a thread.
            start = self._free < 0
            if start:
                self._threads += 1
                self._free += 1
        if start:
            self._start_thread()

    def _start_thread(self) -> None:
        threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            with self._lock:
                wanted = not call.done.cancelled()
                call.started = wanted
            if wanted:
                call.run()
            with self._lock:
                call.started = False
                if call.abandoned:
                    self._size -= 1
                surplus = self._threads > self._size
                if surplus:
                    self._threads -= 1
                else:
                    self._free += 1
            if wanted:
                call.bring_back()
            if surplus:
                return


_counting = threading.Lock()
_abandoned = 0


def abandoned() -> int:
    """How many calls of `run_on_new_thread` were given up and still run."""
    return _abandoned


async def run_on_new_thread(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """The function's value, from a thread of its own that nothing else waits for.

    When the awaiting task is cancelled, the thread goes on and counts as abandoned until it ends.
    """
    global _abandoned
    call = Call(function, args)
    call.started = True

    def work() -> None:
        global _abandoned
        call.run()
        with _counting:
            call.started = False
            if call.abandoned:
                _abandoned -= 1
        call.bring_back()

    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        return await call.done
    except asyncio.CancelledError:
        with _counting:
            if call.started:
                call.abandoned = True
                _abandoned += 1
        raise
