"""What a tool in a process of its own asks the worker for: the process's end.

The worker has the storage and the catalogue; the process sends what it wants, and gets an answer. Any thread
may ask, and several may wait at once.
"""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shared import errors, redaction
from shared.errors import JobCancelledError, ToolboxError, ToolError
from shared.jobs.isolation import frames
from shared.jobs.isolation.channel import Channel
from shared.tool.spec import JsonObject

if TYPE_CHECKING:
    from shared.tool.context import Context


class Asker:
    """Asks, and hands each answer to whoever waits for it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        #: Number -> who is told the answer, on the thread that reads the pipe.
        self._waiting: dict[int, Callable[[JsonObject], object]] = {}

    def ask(self, what: str, **given: Any) -> Any:
        """The answer's value. Blocks. Raises what the worker answered with."""
        arrived = threading.Event()
        answers: list[JsonObject] = []

        def take(message: JsonObject) -> None:
            answers.append(message)
            arrived.set()

        self._send(take, what, given)
        arrived.wait()
        return value_of(answers[0])

    async def ask_later(self, what: str, **given: Any) -> Any:
        """The same in asynchronous code. When the awaiting task is cancelled, the worker gives it up."""
        import asyncio

        loop = asyncio.get_running_loop()
        answered: asyncio.Future[JsonObject] = loop.create_future()

        def settle(message: JsonObject) -> None:
            if not answered.done():
                answered.set_result(message)

        def take(message: JsonObject) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, message)

        number = self._send(take, what, given)
        try:
            return value_of(await answered)
        except asyncio.CancelledError:
            with self._lock:
                self._waiting.pop(number, None)
            self._channel.send({"type": "drop", "number": number})
            raise

    def answered(self, message: JsonObject) -> None:
        """On the thread that reads the pipe."""
        with self._lock:
            take = self._waiting.pop(message["number"], None)
        if take is not None:  # else nobody waits any more
            take(message)

    def _send(self, take: Callable[[JsonObject], object], what: str, given: JsonObject) -> int:
        if not self._channel.is_open:
            raise ToolError("Only the tool's own process can ask for this, not one that it forked.")
        number = next(self._numbers)
        frame = frames.packed({"type": "ask", "number": number, "what": what, "given": given})
        if len(frame) > frames.FRAME_LIMIT:
            raise ToolError(f"{what}: {len(frame)} bytes are more than a tool's own process can send")
        with self._lock:
            self._waiting[number] = take
        self._channel.send_frame(frame)
        return number


def value_of(answer: JsonObject) -> Any:
    """Raises the error that the worker answered with."""
    if not answer["error"]:
        return answer["value"]
    kind = getattr(errors, answer["error"], ToolError)
    error: ToolboxError = kind(answer["message"])
    raise error


class AskingSettings:
    """A `SettingsStore`. Whose settings they are, the worker knows by itself."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def read(self, owner: str, tool: str) -> tuple[JsonObject, str]:
        values, version = self._asker.ask("settings.read")
        return values, version

    def write(self, owner: str, tool: str, values: JsonObject, version: str) -> None:
        self._asker.ask("settings.write", values=values, version=version)


class AskingLauncher:
    """A `Launcher`. For whom, and how deep within other calls, the worker knows by itself."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def launch(self, context: Context, tool: str, arguments: JsonObject) -> JsonObject:
        try:
            written = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ToolError(f"Failed to launch tool: its input cannot be written as JSON ({error})") from None
        # Tokens that this process got for connections: the worker does not know yet what it must not show.
        secrets = redaction.remembered_in(written)
        found: JsonObject = await self._asker.ask_later(
            "tools.launch", tool=str(tool), arguments=arguments, secrets=secrets
        )
        return found

    def find(self, capabilities: Sequence[str]) -> list[JsonObject]:
        found: list[JsonObject] = self._asker.ask("tools.find", capabilities=[str(tag) for tag in capabilities])
        return found

    def capabilities(self) -> list[str]:
        found: list[str] = self._asker.ask("tools.capabilities")
        return found


class AskingCheckpoint:
    """`context.checkpoint`. `value`: what an earlier attempt has saved; it came with the launch."""

    def __init__(
        self, asker: Asker, value: JsonObject | None, unwanted: Callable[[], JobCancelledError | None]
    ) -> None:
        self._asker = asker
        self._unwanted = unwanted
        self.value = value

    def parts(self) -> Iterator[bytes]:
        for number in itertools.count():
            part = self._asker.ask("checkpoint.part", number=number)
            if part is None:
                return
            yield base64.b64decode(part)

    def save(self, value: JsonObject, part: bytes = b"") -> None:
        from shared.jobs.checkpoint import check_part, written

        if (reason := self._unwanted()) is not None:
            raise reason
        # Checked here as on a thread: the worker would take anything else for a process gone wrong.
        written(value)
        check_part(part)
        self._asker.ask("checkpoint.save", value=value, part=base64.b64encode(part).decode("ascii"))

    def clear(self) -> None:
        self.value = None
        self._asker.ask("checkpoint.clear")
