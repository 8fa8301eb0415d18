"""Storage queues over the Azure SDK, off the event loop.

The SDK is synchronous here: its calls run on a few threads of their own, never on the app's pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.storage.queue import QueueClient, QueueMessage

_THREADS: Final = 8
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 30
_RETRIES: Final = 4
_LOST_RECEIPT: Final = frozenset({"MessageNotFound", "PopReceiptMismatch", "QueueNotFound"})


class QueueStorage:
    """Makes queues and runs their calls on its threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="host-storage")
        self._queues: dict[tuple[str, str], Queue] = {}

    def queue(self, connection: str, name: str) -> Queue:
        """The queue of that lower-cased name in the account of a connection string. Makes no request."""
        key = (connection, name.lower())
        if key not in self._queues:
            self._queues[key] = Queue(key[1], _client(*key), self._threads)
        return self._queues[key]

    def close(self) -> None:
        """Stop the threads without waiting for calls under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class Queue:
    """One storage queue. ``sent`` is set whenever this process adds a message, so that a listener need not wait
    for its next poll (the real host's listeners share such a notice with its output bindings)."""

    def __init__(self, name: str, client: QueueClient, threads: ThreadPoolExecutor) -> None:
        self.name = name
        self.sent = asyncio.Event()
        self._client = client
        self._threads = threads

    async def _call[T](self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def receive(self, count: int, visibility: int) -> list[QueueMessage]:
        """At most ``count`` (1 to 32) messages, invisible to others for ``visibility`` seconds.

        A queue that does not exist is an empty one.
        """
        from azure.core.exceptions import ResourceNotFoundError

        def call() -> list[QueueMessage]:
            pages = self._client.receive_messages(
                messages_per_page=count, visibility_timeout=visibility
            ).by_page()
            return list(next(pages, ()))

        try:
            return await self._call(call)
        except ResourceNotFoundError:
            return []

    async def send(self, content: str) -> None:
        """Add a message; creates the queue when it is missing."""
        from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

        def call() -> None:
            try:
                self._client.send_message(content)
            except ResourceNotFoundError:
                with contextlib.suppress(ResourceExistsError):  # another process was quicker
                    self._client.create_queue()
                self._client.send_message(content)

        await self._call(call)
        self.sent.set()

    async def delete(self, message_id: str, receipt: str) -> None:
        """Delete a message. Raises LostMessageError when the receipt is no longer valid."""
        await self._owned(functools.partial(self._client.delete_message, message_id, receipt))

    async def set_visibility(self, message_id: str, receipt: str, seconds: float) -> str:
        """Hide a message for that long from now; returns its new receipt. Raises LostMessageError."""
        update = functools.partial(
            self._client.update_message, message_id, receipt, visibility_timeout=int(seconds)
        )
        return str((await self._owned(update)).pop_receipt)

    async def _owned(self, call: Callable[[], Any]) -> Any:
        from azure.core.exceptions import HttpResponseError

        try:
            return await self._call(call)
        except HttpResponseError as error:
            if getattr(error, "error_code", None) in _LOST_RECEIPT or error.status_code == 404:
                raise LostMessageError(str(error.message)) from None
            raise


class LostMessageError(Exception):
    """Somebody else has received, changed or deleted the message since."""


def _client(connection: str, name: str) -> QueueClient:
    from azure.storage.queue import QueueClient

    return QueueClient.from_connection_string(
        connection,
        name,
        retry_policy=_retry_policy()(retry_total=_RETRIES),
        connection_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
    )


@functools.cache
def _retry_policy() -> Any:
    """A retry policy for loopback: the first retry is immediate, since Azurite closes connections that were
    idle for 5 s; the next ones wait 0.5, 1, 2 s. The SDK's default waits about 15 s before its first."""
    from azure.storage.queue import ExponentialRetry

    class Retry(ExponentialRetry):
        def get_backoff_time(self, settings: dict[str, Any]) -> float:
            count = int(settings["count"])
            return 0.0 if count <= 1 else float(0.5 * 2 ** (count - 2))

    return Retry
