"""The queue listener with a queue in memory: what is hard to provoke with a real one."""

from __future__ import annotations

import asyncio
import base64
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from infra.local.host.config import QueueOptions
from infra.local.host.queue_messages import Backoff
from infra.local.host.queues import QueueListener
from infra.local.host.storage import LostMessageError
from infra.local.host.values import Outcome
from tests.unit.host.helpers import trigger

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.host.invoker import Invoker
    from infra.local.host.storage import Queue

OPTIONS = QueueOptions(batch_size=4, new_batch_threshold=2, max_dequeue_count=3)


def message(number: int = 1, dequeue_count: int = 1) -> Any:
    """A message as the SDK gives it."""
    return SimpleNamespace(
        id=f"m{number}",
        content=base64.b64encode(b"{}").decode(),
        dequeue_count=dequeue_count,
        pop_receipt="r0",
        inserted_on=None,
        expires_on=None,
        next_visible_on=None,
    )


class MemoryQueue:
    """What a listener asks of a queue; ``calls`` is what was asked, in order."""

    name = "jobs"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[Any] = []
        self.receives = 0
        self.sent = asyncio.Event()
        self.fail: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def receive(self, count: int, visibility: int) -> list[Any]:
        self.receives += 1
        await asyncio.sleep(0)  # a listener that polls without pause must not starve the test
        if self.receives > 100:
            await asyncio.Event().wait()
        await self.gate.wait()
        answer = self.answers.pop(0) if self.answers else []
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    async def send(self, content: str) -> None:
        self._note("send", content)

    async def delete(self, message_id: str, receipt: str) -> None:
        self._note("delete", message_id, receipt)

    async def set_visibility(self, message_id: str, receipt: str, seconds: float) -> str:
        self._note("hide", message_id, receipt, seconds)
        return receipt + "+"

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.fail is not None:
            raise self.fail


class Runs:
    """An invoker whose function does what ``work`` says."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.count = 0

    async def run(self, *_: Any, **__: Any) -> Outcome:
        self.count += 1
        result = self.work()
        return Outcome(ok=await result if asyncio.iscoroutine(result) else result)


def listener(
    queue: MemoryQueue, runs: Runs, poison: MemoryQueue | None = None, **options: Any
) -> QueueListener:
    return QueueListener(
        trigger("queueTrigger")[0],
        cast("Queue", queue),
        cast("Queue", poison),
        cast("Invoker", runs),
        OPTIONS,
        **options,
    )


async def until(look: Callable[[], Any]) -> None:
    async with asyncio.timeout(5):
        while not look():
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def rare_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an empty poll the next one comes in an hour."""
    monkeypatch.setattr(Backoff, "next", lambda _: 3600.0)


def test_own_output_is_seen_without_waiting_for_the_next_poll() -> None:
    async def scenario() -> None:
        queue = MemoryQueue()
        made = listener(queue, Runs(lambda: True))
        made.start()
        await until(lambda: queue.receives == 1)
        queue.answers.append([message()])
        queue.sent.set()
        await until(lambda: ("delete", "m1", "r0") in queue.calls)
        for _ in range(50):
            await asyncio.sleep(0)
        assert queue.receives <= 4  # the notice is used up: no polling without pause
        await made.stop()

    asyncio.run(scenario())


def test_message_received_while_stopping_is_given_back() -> None:
    async def scenario() -> None:
        queue = MemoryQueue([message()])
        queue.gate.clear()
        runs = Runs(lambda: True)
        made = listener(queue, runs)
        made.start()
        await until(lambda: queue.receives == 1)
        stopping = asyncio.create_task(made.stop())
        await asyncio.sleep(0)
        queue.gate.set()
        await stopping
        assert queue.calls == [("hide", "m1", "r0", 0)]
        assert runs.count == 0

    asyncio.run(scenario())


def test_renewed_receipt_is_the_one_that_deletes() -> None:
    async def scenario() -> None:
        queue = MemoryQueue([message()])
        done = asyncio.Event()

        async def work() -> bool:
            await done.wait()
            return True

        made = listener(queue, Runs(work), visibility=0)  # renewed as often as the loop turns
        made.start()
        await until(lambda: len(queue.calls) >= 3)
        done.set()
        await made.stop()
        renewals = queue.calls[:-1]
        assert {call[0] for call in renewals} == {"hide"}
        assert queue.calls[-1] == ("delete", "m1", "r0" + "+" * len(renewals))

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [LostMessageError("gone"), OSError("network")])
@pytest.mark.parametrize("ok", [True, False])
def test_message_that_cannot_be_updated_does_not_stop_the_listener(error: Exception, ok: bool) -> None:
    async def scenario() -> None:
        queue = MemoryQueue([message(1)], [message(2)])
        queue.fail = error
        runs = Runs(lambda: ok)
        made = listener(queue, runs)
        made.start()
        await until(lambda: len(queue.calls) == 2)
        await made.stop()
        assert runs.count == 2

    asyncio.run(scenario())


def test_poison_that_cannot_be_written_keeps_the_message() -> None:
    async def scenario() -> None:
        queue, poison = MemoryQueue([message(dequeue_count=3)]), MemoryQueue()
        poison.fail = OSError("network")
        made = listener(queue, Runs(lambda: False), poison)
        made.start()
        await until(lambda: poison.calls)
        await made.stop()
        assert queue.calls == []

    asyncio.run(scenario())


def test_without_a_poison_queue_the_message_stays_hidden() -> None:
    async def scenario() -> None:
        queue = MemoryQueue([message(1, dequeue_count=3), message(2, dequeue_count=4), message(3)])
        runs = Runs(lambda: False)
        made = listener(queue, runs)
        made.start()
        await until(lambda: queue.calls)
        await made.stop()
        assert queue.calls == [("hide", "m3", "r0", 0)]
        assert runs.count == 2  # the message that came too often is not tried again

    asyncio.run(scenario())


def test_batch_is_not_asked_for_before_there_is_room() -> None:
    async def scenario() -> None:
        queue = MemoryQueue([message(n) for n in range(4)], [message(9)])
        gates = [asyncio.Event() for _ in range(5)]
        waiting = iter(gates)

        async def work() -> bool:
            await next(waiting).wait()
            return True

        runs = Runs(work)
        made = listener(queue, runs)
        made.start()
        await until(lambda: runs.count == 4)
        gates[0].set()
        await until(lambda: len(queue.calls) == 1)
        assert queue.receives == 1  # three still run, the threshold is two
        gates[1].set()
        await until(lambda: runs.count == 5)
        for gate in gates:
            gate.set()
        await made.stop()

    asyncio.run(scenario())
