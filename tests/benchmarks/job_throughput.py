"""`job_throughput`: jobs a second of the engine against a raw loop that makes the same storage requests.

Goal: at least 0.7 of the loop's, at 1 and at 16 under way. Measured in one process: for the engine, submit, the
host's receive, `Worker.handle`, the host's delete; for the loop, the same requests and nothing else (see
`job_engine`). Both use one Azurite, on disk, and take turns. The whole app in the local host stands beside it
for orientation: there the calls come over MCP, and the host takes at most four messages at a time.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.acceptance.conftest import start_app
from tests.benchmarks.job_engine import Engine, Raw, both_sides, own_azurite, raw_queue, same_requests
from tests.benchmarks.measure import median, ratios, report

ROUNDS = 7
JOBS = {1: 32, 16: 160}
APP = Path(__file__).parent / "apps" / "jobs"
ONE_WAY = {"mode": "one-way", "executionMode": "headless"}


async def turn(engine: Engine, raw: Raw, name: str, jobs: int, concurrency: int) -> float:
    if name == "engine":
        return await engine.run(jobs, concurrency)
    return await asyncio.to_thread(raw.run, jobs, concurrency)


async def measure(engine: Engine, raw: Raw, concurrency: int) -> list[dict[str, float]]:
    rounds = []
    for number in range(ROUNDS):
        figures: dict[str, float] = {}
        for name in ("engine", "raw") if number % 2 else ("raw", "engine"):
            jobs = JOBS[concurrency]
            # Connections were closed during the other's turn: the first jobs open new ones and do not count.
            await turn(engine, raw, name, concurrency, concurrency)
            before = time.process_time()
            figures[name] = await turn(engine, raw, name, jobs, concurrency)
            figures[f"{name}_cpu_ms"] = (time.process_time() - before) * 1000 / jobs
        rounds.append(figures)
    return rounds


def whole_app(folder: Path, connection: str, jobs: int = 160) -> float:
    """Jobs a second of the app in the local host: sixteen callers, until the last message is deleted."""
    app = start_app(folder, connection, app_dir=APP)
    queue = raw_queue(connection, connections=1)

    def call(_: int) -> None:
        assert app.call("trivial", {"text": "hello"}, ONE_WAY)["structuredContent"]["status"] == "accepted"

    def run(count: int) -> float:
        started = time.perf_counter()
        list(callers.map(call, range(count)))
        while queue.get_queue_properties().approximate_message_count:
            time.sleep(0.05)
        return count / (time.perf_counter() - started)

    try:
        with ThreadPoolExecutor(16) as callers:
            run(32)
            return run(jobs)
    finally:
        app.stop()


async def main_async() -> None:
    with own_azurite() as azurite:
        engine, raw = await both_sides(azurite)
        report("job_throughput", **await same_requests(azurite))
        for concurrency in JOBS:
            polls = engine.queue.polls, raw.queue.polls
            rounds = await measure(engine, raw, concurrency)
            report(
                "job_throughput",
                concurrency=concurrency,
                ratio=ratios(rounds, "engine", "raw"),
                cpu_ratio=ratios(rounds, "engine_cpu_ms", "raw_cpu_ms"),
                **{
                    f"{name}_per_second": median([figures[name] for figures in rounds])
                    for name in ("engine", "raw")
                },
                **{
                    name: median([figures[name] for figures in rounds])
                    for name in ("engine_cpu_ms", "raw_cpu_ms")
                },
                empty_receives=(engine.queue.polls - polls[0], raw.queue.polls - polls[1]),
            )
        rate = await asyncio.to_thread(whole_app, azurite.data_dir, azurite.connection_string)
        report("job_throughput", whole_app_per_second=round(rate, 3), callers=16)


def main() -> None:
    asyncio.run(main_async())


if __name__ == "__main__":
    main()
