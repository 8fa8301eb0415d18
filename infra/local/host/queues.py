"""Queue triggers: polling, invoking, retrying and poisoning as the Storage.Queues extension does it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra.local.host.errors import HostError
from infra.local.host.queue_messages import Backoff, binding_data, decode_body, poison_name, trigger_metadata
from infra.local.host.settings import connection_string, resolve
from infra.local.host.storage import LostMessageError
from infra.local.host.values import Kind, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.storage.queue import QueueMessage

    from infra.local.host.config import QueueOptions
    from infra.local.host.invoker import Invoker
    from infra.local.host.storage import Queue, QueueStorage
    from infra.local.host.values import Binding, Function

logger = logging.getLogger("host.queues")

VISIBILITY: Final = 600  # seconds a received message stays hidden; renewed at half of it
VISIBILITY_SETTING: Final = "HOST_QUEUE_VISIBILITY_SECONDS"  # for tests of the renewal
REASON: Final = "New queue message detected on '{}'."


@dataclass(slots=True)
class _Received:
    """A message while it is worked on; ``receipt`` changes with every renewal."""

    id: str
    content: str
    dequeue_count: int
    receipt: str
    raw: QueueMessage


class QueueListener:
    """Polls one queue for one function."""

    def __init__(
        self,
        function: Function,
        queue: Queue,
        poison: Queue | None,
        invoker: Invoker,
        options: QueueOptions,
        *,
        binary: bool = False,
        visibility: int = VISIBILITY,
    ) -> None:
        self._function = function
        self._queue = queue
        self._poison = poison
        self._invoker = invoker
        self._options = options
        self._binary = binary
        self._visibility = visibility
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._stopping = False
        self._poller: asyncio.Task[None] | None = None
        self._unreachable = False

    def start(self) -> None:
        """Begin to poll."""
        self._poller = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Stop polling and wait for the messages under way."""
        self._stopping = True
        self._queue.sent.set()
        self._room.set()
        if self._poller is not None:
            await self._poller
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _poll(self) -> None:
        backoff = Backoff(self._options.max_polling_interval)
        while not self._stopping:
            self._queue.sent.clear()
            messages = await self._receive()
            for message in messages:
                self._begin(message)
            if messages:
                backoff.reset()
                await self._room.wait()
                continue
            try:
                async with asyncio.timeout(backoff.next()):
                    await self._queue.sent.wait()
            except TimeoutError:
                continue

    async def _receive(self) -> list[QueueMessage]:
        try:
            messages = await self._queue.receive(self._options.batch_size, self._visibility)
        except Exception as error:  # storage is away: say so once and go on polling
            if not self._unreachable:
                text = "Queue '%s' cannot be polled, trying again: %s"
                logger.warning(
                    text, self._queue.name, str(error).splitlines()[0] if str(error) else repr(error)
                )
            self._unreachable = True
            return []
        self._unreachable = False
        return messages

    def _begin(self, raw: QueueMessage) -> None:
        message = _Received(
            str(raw.id), str(raw.content), int(raw.dequeue_count or 0), str(raw.pop_receipt), raw
        )
        work = self._release(message) if self._stopping else self._process(message)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        if len(self._tasks) > self._options.new_batch_threshold:
            self._room.clear()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if len(self._tasks) <= self._options.new_batch_threshold:
            self._room.set()

    async def _release(self, message: _Received) -> None:
        """Give back a message that arrived while the host was stopping."""
        await self._quietly(self._queue.set_visibility(message.id, message.receipt, 0))

    async def _process(self, message: _Received) -> None:
        body = decode_body(message.content, base64_encoded=self._options.base64)
        if body is None:
            logger.error("A message in queue '%s' is not base64: it is not processed.", self._queue.name)
            await self._move_to_poison(message)
            return
        if message.dequeue_count > self._options.max_dequeue_count:
            await self._move_to_poison(message)
            return
        done = asyncio.Event()
        renewal = asyncio.create_task(self._renew(message, done))
        try:
            succeeded = await self._invoke(message, body)
        finally:
            done.set()
            await renewal
        if succeeded:
            await self._quietly(self._queue.delete(message.id, message.receipt))
        elif message.dequeue_count >= self._options.max_dequeue_count:
            await self._move_to_poison(message)
        else:
            delay = self._options.visibility_timeout
            await self._quietly(self._queue.set_visibility(message.id, message.receipt, delay))

    async def _invoke(self, message: _Received, body: bytes) -> bool:
        text = body.decode("utf-8", "replace")
        value = Value(Kind.BYTES, body) if self._binary else Value(Kind.STRING, text)
        metadata = trigger_metadata(message.raw, text)
        outcome = await self._invoker.run(
            self._function,
            value,
            metadata,
            data=binding_data(metadata, text) if self._function.outputs else None,
            reason=REASON.format(self._queue.name),
        )
        return outcome.ok

    async def _renew(self, message: _Received, done: asyncio.Event) -> None:
        """Keep the message hidden for as long as the function runs."""
        while True:
            try:
                async with asyncio.timeout(self._visibility / 2):
                    await done.wait()
                return
            except TimeoutError:
                pass
            try:
                message.receipt = await self._queue.set_visibility(
                    message.id, message.receipt, self._visibility
                )
            except LostMessageError:
                logger.warning("A message of queue '%s' is no longer this host's.", self._queue.name)
                return
            except Exception as error:  # the next renewal may still be in time
                logger.warning("Visibility of a message in queue '%s' not renewed: %r", self._queue.name, error)

    async def _move_to_poison(self, message: _Received) -> None:
        if self._poison is None:
            return  # as in the real host: it stays hidden until its visibility runs out
        count = self._options.max_dequeue_count
        text = "Message has reached MaxDequeueCount of %d. Moving message to queue '%s'."
        logger.warning(text, count, self._poison.name)
        try:
            await self._poison.send(message.content)
        except Exception as error:  # not deleted, so nothing is lost
            logger.error("Queue '%s' cannot be written: %r", self._poison.name, error)
            return
        await self._quietly(self._queue.delete(message.id, message.receipt))

    async def _quietly(self, call: Any) -> None:
        """A message that is somebody else's by now is ignored; it will come back, or has been dealt with."""
        try:
            await call
        except LostMessageError:
            pass
        except Exception as error:
            logger.warning("A message of queue '%s' cannot be updated: %r", self._queue.name, error)


def build_listeners(
    triggers: list[tuple[Function, Binding]],
    storage: QueueStorage,
    invoker: Invoker,
    options: QueueOptions,
    environment: Mapping[str, str],
) -> list[QueueListener]:
    """One listener for each queue trigger. Raises HostError for a setting that is missing."""
    visibility = environment.get(VISIBILITY_SETTING, str(VISIBILITY))
    if not visibility.isdigit() or int(visibility) < 1:
        raise HostError(f"{VISIBILITY_SETTING} must be a number of seconds, not {visibility!r}.")
    listeners = []
    for function, binding in triggers:
        where = f"queueTrigger of function '{function.name}'"
        name = resolve(binding.text("queueName"), environment, f"queueName of the {where}").lower()
        if not name:
            raise HostError(f"The {where} has no queueName.")
        connection = connection_string(binding.text("connection"), environment, f"The {where}")
        poison = poison_name(name)
        listeners.append(
            QueueListener(
                function,
                storage.queue(connection, name),
                None if poison is None else storage.queue(connection, poison),
                invoker,
                options,
                binary=binding.text("dataType").lower() == "binary",
                visibility=int(visibility),
            )
        )
    return listeners
