"""What a tool in a process of its own asks the worker for: the worker's end.

Whose call it is, and how deep it is within others, is what the worker knows of the job; nothing that the
process says about it counts. Each question is answered by a task of the worker's event loop; when the attempt
ends, what is not answered yet is given up.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, Final

from shared import redaction, storage
from shared.apis import ports
from shared.errors import ToolboxError, ToolError
from shared.jobs.checkpoint import JobCheckpoint
from shared.jobs.isolation.files import decoded, known_kind
from shared.jobs.isolation.frames import FrameError
from shared.tool.context import Context
from shared.tool.spec import JsonObject

_LOG = logging.getLogger(__name__)

#: Questions of one process whose answers it has not read. With so many, the next one waits in its pipe.
MOST_OPEN: Final = 256
#: Seconds that a task has to end once it was given up.
GRACE: Final = 2.0

type Answer = Callable[[JsonObject], None]


class Desk:
    """Answers one process. Made on the event loop that the answers are made on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._room = threading.BoundedSemaphore(MOST_OPEN)
        self._is_closed = False
        #: On the loop only.
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: Answers are written by a thread of their own: a process may be slow to read, or never do.
        self._ready: queue.SimpleQueue[tuple[Answer, JsonObject] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None

    # On the thread that reads the pipe.

    def asked(self, message: JsonObject, answer: Answer) -> None:
        """Begins to answer an `ask`, whose shape was checked. Raises `FrameError` for what is no base64."""
        given = message["given"]
        if message["what"] == "checkpoint.save":
            given = {**given, "part": decoded(given["part"])}
        while not self._room.acquire(timeout=1):
            if self._is_closed:
                return
        self._on_loop(self._begin, message["number"], message["what"], given, answer)

    def drop(self, number: int) -> None:
        """The process does not wait for that answer any more."""
        self._on_loop(self._give_up, number)

    def _on_loop(self, function: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    # On the event loop.

    async def close(self) -> None:
        """Gives up what is not answered yet."""
        self._is_closed = True
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE)
        self._ready.put(None)

    def _begin(self, number: int, what: str, given: JsonObject, answer: Answer) -> None:
        if self._is_closed or number in self._tasks:
            self._room.release()
            return
        task = self._loop.create_task(self._answer(number, what, given, answer))
        self._tasks[number] = task
        task.add_done_callback(lambda task: self._over(number, task))

    def _over(self, number: int, task: asyncio.Task[None]) -> None:
        del self._tasks[number]
        if task.cancelled():
            self._room.release()  # there is no answer to write

    def _give_up(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def _answer(self, number: int, what: str, given: JsonObject, answer: Answer) -> None:
        told: JsonObject = {"type": "answer", "number": number, "value": None, "error": "", "message": ""}
        try:
            told["value"] = await self._value(what, given)
        except ToolboxError as error:
            told |= {"error": known_kind(error), "message": error.message}
        except Exception as error:
            _LOG.warning("job %s: %s was not answered", self._context.job_id, what, exc_info=True)
            told |= {"error": ToolError.__name__, "message": f"{what} has failed ({type(error).__name__})"}
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="answers", daemon=True)
            self._writer.start()
        self._ready.put((answer, told))

    def _write(self) -> None:
        while (ready := self._ready.get()) is not None and not self._is_closed:
            answer, told = ready
            try:
                answer(told)
            except (FrameError, TypeError, ValueError, RecursionError) as error:
                # It cannot travel, and whoever asked would wait for it.
                reason = str(error) if isinstance(error, FrameError) else "the answer cannot be written as JSON"
                answer({**told, "value": None, "error": ToolError.__name__, "message": reason})
            self._room.release()

    async def _value(self, what: str, given: JsonObject) -> Any:
        context = self._context
        match what:
            case "settings.read":
                store = ports.settings_store()
                return list(await storage.run(store.read, context.owner, context.tool_name))
            case "settings.write":
                store = ports.settings_store()
                values, version = given["values"], given["version"]
                return await storage.run(store.write, context.owner, context.tool_name, values, version)
            case "tools.launch":
                for secret in given["secrets"]:
                    redaction.remember(secret)
                return await ports.launcher().launch(context, given["tool"], given["arguments"])
            case "tools.find":
                return ports.launcher().find(given["capabilities"])
            case "tools.capabilities":
                return ports.launcher().capabilities()
            case "checkpoint.part":
                return await storage.run(_part, context, given["number"])
            case "checkpoint.save":
                return await storage.run(context.checkpoint.save, given["value"], given["part"])
            case "checkpoint.clear":
                return await storage.run(context.checkpoint.clear)
        raise ToolError(f"{what} cannot be asked for")


def _part(context: Context, number: int) -> str | None:
    checkpoint = context.checkpoint
    if not isinstance(checkpoint, JobCheckpoint) or number >= checkpoint.part_count:
        return None
    return base64.b64encode(checkpoint.part(number)).decode("ascii")
