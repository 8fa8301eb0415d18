"""`inline_call`: what a decorated tool costs over a bare trigger function, both through the worker library.

Bounds: a synchronous tool makes at least 0.6, an asynchronous one at least 1.0 of the bare synchronous
function's calls per second. Rounds of the three are interleaved in one process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from infra.local.host.values import Kind, Value
from infra.local.host.worker import Worker
from tests.benchmarks.measure import median, ratios, report

ROUNDS = 31
CALLS = 320
APP = Path(__file__).parent / "apps" / "echo"
PAYLOAD = {
    "arguments": {"text": "hello"},
    "sessionid": "x" * 16 + "|" + "y" * 16,
    "transport": {
        "name": "http-streamable",
        "sessionId": "x" * 16 + "|" + "y" * 16,
        "properties": {
            "headers": {
                "Host": "127.0.0.1:7071",
                "Accept": "application/json, text/event-stream",
                "Content-Type": "application/json",
                "User-Agent": "benchmark",
                "x-functions-key": "a-function-key-of-some-length-0123456789",
            }
        },
    },
}


async def measure(worker: Worker, concurrency: int) -> list[dict[str, float]]:
    functions = {function.name: function for function in worker.functions}

    async def call(name: str) -> str:
        outcome = await worker.invoke(functions[name], "id", [("payload", payloads[name])], {})
        return str(outcome.returned.data) if outcome.returned is not None else ""

    async def rate(name: str, calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls // concurrency):
            await asyncio.gather(*(call(name) for _ in range(concurrency)))
        return calls / (time.perf_counter() - started)

    names = ("bare", "echo_sync", "echo_async")
    payloads = {name: Value(Kind.STRING, json.dumps({"name": name, **PAYLOAD})) for name in names}
    for name in names:
        assert "hello" in await call(name)
        await rate(name, 64)
    rounds = []
    for number in range(ROUNDS):
        order = names if number % 2 else names[::-1]
        rounds.append({name: await rate(name, CALLS) for name in order})
    return rounds


def main() -> None:
    os.environ.setdefault("AzureWebJobsStorage", "UseDevelopmentStorage=true")
    sys.path.insert(0, str(APP))
    os.chdir(APP)

    async def both() -> None:
        worker = await Worker.load(APP)
        for concurrency in (1, 16):
            rounds = await measure(worker, concurrency)
            report(
                "inline_call",
                concurrency=concurrency,
                sync_ratio=ratios(rounds, "echo_sync", "bare"),
                async_ratio=ratios(rounds, "echo_async", "bare"),
                bare_per_second=median([figures["bare"] for figures in rounds]),
            )

    asyncio.run(both())


if __name__ == "__main__":
    main()
